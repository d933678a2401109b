import json
import os
import subprocess
import sys
import textwrap

import polars as pl
import pytest

from chunking_assets.errors import CorpusError
from chunking_assets.workspace import UNREFERENCED_GRACE_SECONDS, Workspace, encode


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
