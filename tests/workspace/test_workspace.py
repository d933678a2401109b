import json
import os
import subprocess
import sys
import textwrap

import polars as pl
import pytest

from chunking_assets.errors import CorpusError
from chunking_assets.workspace import UNREFERENCED_GRACE_SECONDS, Workspace, encode, one_of


def frame(*values):
    return pl.DataFrame({"value": list(values)})


def test_a_partition_is_replaced_whole(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1, 2), "a", keys={"d": "1"})
    table.replace(frame(3), "b", keys={"e": "1"})
    table.replace(frame(4), "a", keys={"d": "2"})
    assert table.read("a")["value"].to_list() == [4]
    assert table.read_all()["value"].to_list() == [4, 3]
    assert table.partitions() == ["a", "b"]


def test_a_partition_never_written_is_none_and_an_empty_one_is_not(tmp_path):
    table = Workspace(tmp_path).table("t")
    assert table.read("a") is None
    assert table.read_all() is None
    table.replace(frame(1).clear(), "a")
    assert table.read("a").height == 0


def test_the_version_follows_the_keys(tmp_path):
    table = Workspace(tmp_path).table("t")
    one = table.replace(frame(1), keys={"a": "1", "b": "2"}).version
    assert table.replace(frame(1), keys={"b": "2", "a": "1"}).version == one
    assert table.replace(frame(1), keys={"a": "12", "b": ""}).version != one


def test_a_reader_with_an_old_manifest_still_finds_its_files(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), "a")
    files = table.files(["a"])
    table.replace(frame(2), "a")
    assert pl.read_parquet(files)["value"].to_list() == [1]


def test_files_nobody_names_go_after_a_while(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), "a")
    old = table.files(["a"])[0]
    past = old.stat().st_mtime - UNREFERENCED_GRACE_SECONDS - 1
    os.utime(old, (past, past))
    table.replace(frame(2), "a")
    assert old.exists(), "the grace begins when a file is replaced, however old it is"
    os.utime(old, (past, past))
    table.replace(frame(3), "a")
    assert not old.exists()
    assert table.read("a")["value"].to_list() == [3]


def test_damaged_history_is_not_advised_to_be_removed(tmp_path):
    table = Workspace(tmp_path).table("promotions")
    table.append(frame(1))
    table.files()[0].write_bytes(b"")
    with pytest.raises(CorpusError, match="cannot be computed again: restore it"):
        table.read()


def words(count):
    return pl.DataFrame({"id": [f"{n:05}" for n in range(count)], "word": ["w" * 90] * count})


def replaced(table, rows, sizes):
    """The bytes of a partition to which rows came in pieces of these sizes."""
    with table.replacement(rows.schema) as content:
        first = 0
        for size in [*sizes, rows.height]:
            content.add(rows[first : first + size])
            first += size
        content.commit(keys={"a": "1"})
    return table.files()[0].read_bytes()


def test_rows_that_come_piece_by_piece_make_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr("chunking_assets.workspace.ROW_GROUP_BYTES", 10_000)
    table, rows = Workspace(tmp_path).table("t"), words(500)
    table.replace(rows, keys={"a": "1"})
    (whole,) = table.files()
    content = whole.read_bytes()
    for sizes in ([1, 2, 3, 120, 0, 7], [499], [70, 70]):
        assert replaced(table, rows, sizes) == content
    assert table.read().equals(rows)


def test_no_more_than_a_row_group_is_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("chunking_assets.workspace.ROW_GROUP_BYTES", 10_000)
    table, rows = Workspace(tmp_path).table("t"), words(500)
    snapshot = table.snapshot(table.replace(rows))
    pieces = list(snapshot.pieces())
    assert len(pieces) > 5
    assert max(piece.height for piece in pieces) * 100 <= 10_000
    assert pl.concat(pieces).equals(rows)


def test_rows_without_a_commit_are_nobodys(tmp_path):
    table = Workspace(tmp_path).table("t")
    before = table.replace(frame(1), "a")

    def add(rows):
        with table.replacement(rows.schema, "a") as content:
            content.add(rows)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add(frame(2))
    assert table.manifest("a") == before
    assert len(list((tmp_path / "tables/t/a").glob("*.parquet"))) == 1


def test_a_snapshot_stays_what_it_was(tmp_path):
    table = Workspace(tmp_path).table("t")
    snapshot = table.snapshot(table.replace(words(3)))
    table.replace(words(1))
    assert snapshot.read(["id"], one_of("id", ["00002", "00001", "x"]))["id"].to_list() == [
        "00001",
        "00002",
    ]
    assert sum(piece.height for piece in snapshot.pieces()) == 3


def test_pieces_of_some_owners_skip_what_their_bounds_rule_out(tmp_path, monkeypatch):
    monkeypatch.setattr("chunking_assets.workspace.ROW_GROUP_BYTES", 1000)
    table, rows = Workspace(tmp_path).table("t"), words(100)
    snapshot = table.snapshot(table.replace(rows.with_columns(path=pl.lit(["a"]))))
    every, some = list(snapshot.pieces()), list(snapshot.pieces("id", ["00042", "00043", "x"]))
    assert len(some) <= 2 < len(every)
    assert pl.concat(some)["id"].to_list() == ["00042", "00043"]


def damaged(table, how):
    (file,) = table.files(["a"])
    manifest = file.parent / "_manifest.json"
    if how == "is lost":
        manifest.unlink()
    elif how == "is damaged":
        manifest.write_text("{")
    elif how == "cannot be read":
        file.write_bytes(file.read_bytes()[:-9])
    else:
        file.write_bytes((file.parent.parent / "b" / table.files(["b"])[0].name).read_bytes())


@pytest.mark.parametrize(
    "how", ["is lost", "is damaged", "cannot be read", "has 2 rows, its manifest says 1"]
)
def test_damage_is_named_with_its_partition(tmp_path, how):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), "a")
    table.replace(frame(1, 2), "b")
    assert table.damage("a") is None
    damaged(table, how)
    assert how in table.damage("a")
    assert "t" in table.damage("a")
    assert table.damage("b") is None
    assert table.damage("never written") is None


def test_a_damaged_file_read_in_pieces_is_named_with_its_cure(tmp_path):
    table = Workspace(tmp_path).table("t")
    snapshot = table.snapshot(table.replace(words(3)))
    snapshot.files[0].write_bytes(b"")
    with pytest.raises(CorpusError, match=r"table t cannot be read .* run again"):
        list(snapshot.pieces())


def test_a_log_grows(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.append(frame(1))
    table.append(frame(2))
    assert table.read()["value"].to_list() == [1, 2]


def test_a_removed_partition_is_gone(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), "a")
    table.remove("a")
    table.remove("a")
    assert table.partitions() == []


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../../etc", "a|b", "é", "%2F", ".hidden"])
def test_a_name_stays_one_component_of_its_folder(tmp_path, name):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), name)
    assert "/" not in encode(name)
    assert table.partitions() == [name]
    assert all(tmp_path / "tables" / "t" in f.parents for f in table.files())


def test_a_truncated_file_is_named_with_its_cure(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), "a")
    file = table.files(["a"])[0]
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(CorpusError, match=r"table t cannot be read .* run again"):
        table.read("a")


def test_a_damaged_manifest_is_named_with_its_cure(tmp_path):
    table = Workspace(tmp_path).table("t")
    table.replace(frame(1), "a")
    (tmp_path / "tables/t/a/_manifest.json").write_text("{")
    with pytest.raises(CorpusError, match="Remove it and run again"):
        table.read("a")


def test_stamps_say_what_was_built_from_what(tmp_path):
    stamps = Workspace(tmp_path).stamps
    assert stamps.read("asset", "a|b") is None
    stamps.write("asset", "one", "a|b")
    assert stamps.read("asset", "a|b") == "one"
    assert stamps.read("asset", "a|c") is None
    stamps.remove("asset", "a|b")
    assert stamps.read("asset", "a|b") is None


def test_a_writer_killed_at_any_moment_leaves_whole_content(tmp_path):
    program = textwrap.dedent(
        """
        import polars as pl, sys
        from chunking_assets.workspace import Workspace
        table = Workspace(sys.argv[1]).table("t")
        for n in range(10_000):
            table.replace(pl.DataFrame({"value": [n] * 1000}), "a", keys={"n": str(n)})
            print(n, flush=True)
        """
    )
    table = Workspace(tmp_path).table("t")
    for kill_after in (1, 2, 5, 9, 14):
        with subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(kill_after):
                writer.stdout.readline()
            writer.kill()
        values = table.read("a")["value"].unique().to_list()
        assert len(values) == 1
        assert json.loads((tmp_path / "tables/t/a/_manifest.json").read_text())["rows"] == 1000


def test_a_lock_excludes_another_process(tmp_path):
    program = (
        "import sys; from chunking_assets.workspace import Workspace\n"
        "with Workspace(sys.argv[1]).lock('x'): print('inside', flush=True)"
    )
    with Workspace(tmp_path).lock("x"):
        other = subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE
        )
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(timeout=1.5)
    assert other.wait(timeout=30) == 0
    other.stdout.close()
