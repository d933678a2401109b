"""What could not be read for a reason that may pass is read again, though nothing changed."""

import dagster as dg
import pytest
from parser_process import kill_once_given_a_file, waiting

from chunking_assets.parsed_elements import build, guard
from chunking_assets.parsed_elements.parse import ParsedDocument, parse_document


@pytest.fixture
def schedule(corpus):
    return corpus.defs.resolve_schedule_def("nightly_retry")


def tick(corpus, schedule):
    """A schedule is given a stored instance only, and this one has the shards of the corpus."""
    repository = corpus.defs.get_repository_def()
    with dg.instance_for_test() as instance:
        instance.add_dynamic_partitions("corpus_shard", ["docs", "notes"])
        with dg.build_schedule_context(
            instance=instance, repository_def=repository, resources=corpus.resources
        ) as context:
            return schedule.evaluate_tick(context)


def crash(corpus, monkeypatch, name):
    """Let the parser die of one document; returns what lets it live."""
    whole = build.parse_document

    def parse(data, of, *rest):
        if of == name:
            return ParsedDocument.failure("crashed", f"{of}: died", "It is tried again.")
        return whole(data, of, *rest)

    monkeypatch.setattr(build, "parse_document", parse)
    return lambda: monkeypatch.setattr(build, "parse_document", whole)


def statuses(corpus, shard):
    rows = corpus.workspace.table("documents").read(shard, ["doc_id", "status"])
    return dict(rows.iter_rows())


def test_the_nightly_schedule_reads_the_shards_again_that_hold_such_documents(
    corpus, schedule, monkeypatch
):
    corpus.write("docs/dies.md", "Some text.")
    mend = crash(corpus, monkeypatch, "dies.md")
    corpus.write("notes/1.md", "")  # empty, which is no failure
    corpus.materialize("parsed_elements")
    assert statuses(corpus, "docs")["docs/dies.md"] == "crashed"
    corpus.look()
    assert "parsed_elements" not in corpus.tick()
    mend()
    (request,) = tick(corpus, schedule).run_requests
    job = corpus.defs.get_repository_def().get_job(schedule.job_name)
    done = job.execute_in_process(instance=corpus.instance, tags=request.tags)
    built = done.asset_materializations_for_node("parsed_elements")
    assert {event.partition for event in built} == {"docs"}
    assert done.success
    assert set(statuses(corpus, "docs").values()) == {"ok"}
    assert tick(corpus, schedule).skip_message == "no document is worth another try"


def test_a_build_from_the_terminal_tries_again_and_redoes_nothing_else(corpus, monkeypatch):
    crash(corpus, monkeypatch, "1.md")
    corpus.materialize("chunk_embeddings")
    before = corpus.workspace.table("documents").files()
    again = corpus.materialize("chunk_embeddings")
    assert {a: n for a, n in again.items() if n} == {"parsed_elements": 2}  # of two shards
    assert corpus.workspace.table("documents").files() == before


def test_a_build_that_ended_before_its_stamp_is_redone_though_its_input_is_as_it_was(
    corpus, monkeypatch
):
    corpus.materialize("parsed_elements")
    file = corpus.root / "docs" / "1.md"
    before = file.read_text()
    file.write_text("Another text.")
    corpus.look()
    with monkeypatch.context() as patch:

        def killed(*_):
            raise RuntimeError("killed")

        patch.setattr(corpus.module("assets.parsed_elements"), "parsed_from", killed)
        corpus.run("parsed_elements", "docs")
    file.write_text(before)
    corpus.materialize("parsed_elements")
    rows = corpus.workspace.table("documents").read("docs", ["doc_id", "text"])
    assert dict(rows.iter_rows())["docs/1.md"] == before


def test_a_parser_killed_amid_a_file_costs_the_run_that_file_only(corpus, schedule):
    """The process is a real one, and so is its death."""
    corpus.write("docs/a.eml", "From: Ana\nSubject: Fees\n\nNone.\n")
    corpus.write("docs/b.html", "<h1>Fees</h1>")
    guard.close()
    parse_document(b"<p>a", "a.html", "text/html")
    killer = kill_once_given_a_file(waiting())
    corpus.materialize("parsed_elements")
    killer.join()
    found = statuses(corpus, "docs")
    assert found.pop("docs/a.eml") == "crashed"
    assert {*found.values(), *statuses(corpus, "notes").values()} == {"ok"}
    assert corpus.latest("parsed_elements", "docs").metadata["documents_failed"].value == 1
    (request,) = tick(corpus, schedule).run_requests
    job = corpus.defs.get_repository_def().get_job(schedule.job_name)
    assert job.execute_in_process(instance=corpus.instance, tags=request.tags).success
    assert {*statuses(corpus, "docs").values()} == {"ok"}
