"""The check of what parsing came to, as it is recorded for each shard."""

import dagster as dg
import pytest


def evaluation(corpus, shard):
    """The last recorded one of a shard, whichever run it was of."""
    records = corpus.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey("parsed_elements"), "documents_parsed"), limit=20
    )
    found = [r.event.dagster_event.asset_check_evaluation_data for r in records if r.event]
    return next(e for e in found if e.partition == shard)


@pytest.mark.parametrize(("broken", "severity"), [(1, "WARN"), (2, "ERROR")])
def test_the_worst_documents_are_in_a_table_and_many_are_an_error(corpus, broken, severity):
    corpus.declare(collections={"docs": {"path": "docs", "settle_seconds": 0}})
    corpus.load()
    for n in range(12 - broken):
        corpus.write(f"docs/{n}.md", "# Fees")
    for n in range(broken):
        corpus.write(f"docs/{n}.pdf", "no pdf")
    corpus.write("docs/half.eml", "From: a\nSubject: b\nContent-Type: text/plain\n\nx")
    corpus.write("docs/none.md", "")
    corpus.materialize("parsed_elements")
    found = evaluation(corpus, "docs")
    assert (found.passed, found.severity.name) == (False, severity)
    assert found.metadata["without_text"].value == broken
    assert found.metadata[
        "statuses"
    ].value == f"{13 - broken} ok, 1 empty, {broken} failed".replace(
        "1 empty, 2 failed", "2 failed, 1 empty"
    )
    rows = [record.data for record in found.metadata["worst"].records]
    assert [row["status"] for row in rows] == ["failed"] * broken + ["empty"]
    assert all(row["cure"] for row in rows)


def test_what_is_read_in_part_or_empty_is_no_failure(corpus):
    corpus.write("docs/empty.md", " ")
    mail = 'From: a\nSubject: b\nContent-Type: multipart/mixed; boundary="x"\n\n--x\n\nHi\n--x\n'
    mail += "Content-Disposition: attachment; filename=a.pdf\nContent-Type: application/pdf\n\n"
    corpus.write("docs/attached.eml", f"{mail}%PDF\n--x--\n")
    corpus.materialize("parsed_elements")
    found = evaluation(corpus, "docs")
    assert found.passed
    assert found.metadata["statuses"].value == "3 ok, 1 empty, 1 partial"
    assert evaluation(corpus, "notes").metadata["statuses_in_collection"].value == "3 ok"
