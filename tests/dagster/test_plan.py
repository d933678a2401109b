"""What a build would do is said before it is done, and saying it leaves no trace."""

import shutil

import dagster as dg
import pytest
from chat_server import KEY, serving, without_endpoint
from embedding_server import DIMENSIONS, EmbeddingServer, word_tokenizer
from judge_server import JudgeServer
from small_corpus import CONFIGURATION

PRICES = [
    {"model": "hash", "unit": "1M input tokens", "price": 1.0, "as_of": "2020-01-01"},
    {"model": "gpt-4.1-mini", "unit": "1M input tokens", "price": 0.4, "as_of": "2020-01-01"},
    {"model": "gpt-4.1-mini", "unit": "1M output tokens", "price": 1.6, "as_of": "2020-01-01"},
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where the workspace is kept that every test begins with."""
    return tmp_path_factory.mktemp("kept") / "workspace"


@pytest.fixture
def built(corpus_of, kept):
    """Everything but the scores, which no plan looks at without a judge; built once."""
    corpus = corpus_of(prices=PRICES)
    if kept.exists():
        shutil.copytree(kept, corpus.workspace.root, symlinks=True)
    else:
        corpus.materialize("gold_questions")
        shutil.copytree(corpus.workspace.root, kept, symlinks=True)
    return corpus


def plan(corpus):
    return corpus.module("plan").plan(corpus.config)


def tree(corpus):
    """Every path below the workspace, and the bytes of every file."""
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in sorted(corpus.workspace.root.rglob("*"))
    }


def steps(found, stage):
    return {step.what: step for step in found.steps if step.stage == stage}


def test_a_first_build_is_planned_as_it_then_happens(corpus_of):
    corpus = corpus_of(prices=PRICES)
    found = plan(corpus)
    assert not corpus.workspace.root.exists()
    corpus.materialize("chunk_embeddings")
    builds = corpus.workspace.table("builds").read_all()
    assert (
        found.total("parse", "documents")
        == builds["documents_added"].filter(builds["asset"] == "parsed_elements").sum()
    )
    assert found.total("chunk", "chunks") == builds["chunks_redone"].sum()
    assert found.total("embed", "chunks") == builds["vectors_embedded"].sum()
    assert found.minutes is None


def test_nothing_to_do_is_0_of_everything(built):
    found = plan(built)
    assert (found.steps, found.cost, found.minutes) == ((), [], 0)
    assert str(found).startswith("Nothing to do: 0 parsed, 0 chunked, 0 embedded, 0 judged")


def test_an_edit_is_planned_to_the_chunk_the_token_and_the_cent(built, paragraphs):
    built.write("docs/1.md", paragraphs("docs 1", 6))
    before = {table: built.workspace.table(table).read_all() for table in ("builds", "costs")}
    found = plan(built)
    built.materialize("chunk_embeddings")
    builds, costs = (
        built.workspace.table(t)
        .read_all()
        .join(rows, on=rows.columns, how="anti", nulls_equal=True)
        for t, rows in before.items()
    )
    embedded = costs.filter(costs["work"] == "embed")
    assert found.total("parse", "documents") == 1
    assert found.total("chunk", "chunks") == builds["chunks_redone"].sum() > 0
    assert found.total("embed", "chunks") == builds["vectors_embedded"].sum() > 0
    assert found.total("embed", "tokens") == embedded["tokens_sent"].sum() > 0
    (cost,) = found.cost
    assert (cost.amount, cost.currency) == (pytest.approx(embedded["cost"].sum()), "USD")
    assert found.minutes > 0
    assert not any(step.is_estimate for step in found.steps)


def test_a_new_version_is_planned_before_it_is_ever_built(built):
    chunkers = {**CONFIGURATION["chunkers"], "fixed-30@1": {"kind": "fixed", "max_tokens": 30}}
    strategies = {
        **CONFIGURATION["strategies"],
        "longer": {"chunker": "fixed-30@1", "model": "hash", "profile": "vector"},
    }
    built.declare(chunkers=chunkers, strategies=strategies, prices=PRICES)
    built.load()
    found = plan(built)
    assert steps(found, "parse") == {}
    assert steps(found, "chunk").keys() == {"fixed-30@1"}
    assert steps(found, "embed").keys() == {"fixed-30@1+hash"}
    assert steps(found, "chunk")["fixed-30@1"].documents == 6
    built.materialize("chunk_embeddings")
    manifest = built.workspace.table("embedded_chunks").manifest("fixed-30@1+hash|docs")
    notes = built.workspace.table("embedded_chunks").manifest("fixed-30@1+hash|notes")
    assert steps(found, "chunk")["fixed-30@1"].chunks == manifest.rows + notes.rows


def test_planning_leaves_every_byte_of_the_workspace_as_it_was(
    built, paragraphs, capsys, monkeypatch
):
    built.write("docs/1.md", paragraphs("docs 1", 6))
    (built.root / "docs" / "2.md").unlink()
    before = tree(built)
    plan(built)
    monkeypatch.setattr("sys.argv", ["plan"])
    assert built.module("plan").main() == 0
    assert tree(built) == before
    printed = capsys.readouterr().out
    assert "1 documents are gone" in printed
    assert "recursive-20@1+hash" in printed


def test_a_deletion_a_person_must_confirm_is_said_with_the_command(built):
    for number in range(3):
        (built.root / "docs" / f"{number}.md").unlink()
    found = plan(built)
    assert any("confirm" in remark for remark in found.remarks)
    assert found.steps == ()


def asking(corpus_of, **chunker):
    """A corpus cut by a strategy that asks a model."""
    return corpus_of(
        chunkers={"asking-20@1": {**chunker, "max_tokens": 20}},
        strategies={"asking": {"chunker": "asking-20@1", "model": "hash", "profile": "vector"}},
        comparison={"baseline": "asking"},
        prices=PRICES,
    )


def test_a_chunker_that_asks_a_chat_model_is_estimated_and_not_run(corpus_of):
    found = plan(asking(corpus_of, kind="llm", model="m"))
    step = steps(found, "chunk")["asking-20@1"]
    assert (step.documents, step.chunks, step.calls, step.cost) == (6, None, None, None)
    assert step.is_estimate
    assert found.cost is None
    assert any("asking-20@1 asks a model where to cut" in remark for remark in found.remarks)


@pytest.mark.parametrize("kind", ["semantic", "cluster"])
def test_sentences_that_a_chunker_embeds_are_counted_and_its_chunks_estimated(
    corpus_of, paragraphs, kind
):
    corpus = asking(corpus_of, kind=kind)

    def compared(*, is_built_before):
        """What is planned, then paid: tokens of sentences, and of chunks."""
        costs = corpus.workspace.table("costs")
        before = costs.read_all() if is_built_before else None
        found = plan(corpus)
        sentences, chunks = steps(found, "embed").values()
        assert (sentences.what, chunks.what) == ("asking-20@1: sentences", "asking-20@1+hash")
        assert chunks.is_estimate
        assert (chunks.chunks is None) == (not is_built_before)
        assert found.cost[0].amount == pytest.approx((sentences.tokens + chunks.tokens) / 1e6)
        corpus.materialize("chunk_embeddings")
        paid = costs.read_all()
        if before is not None:
            paid = paid.join(before, on=paid.columns, how="anti", nulls_equal=True)
        spent = {
            work: paid.filter(work=work)["tokens_sent"].sum()
            for work in ("embed_sentences", "embed")
        }
        return (sentences.tokens, spent["embed_sentences"]), (chunks.tokens, spent["embed"])

    (planned, paid), (about, exactly) = compared(is_built_before=False)
    assert planned == paid > 0
    assert about >= exactly  # pieces that are chunks are there already
    corpus.write("docs/1.md", paragraphs("docs 1", 6))
    (planned, paid), (about, exactly) = compared(is_built_before=True)
    assert planned == paid > 0
    assert about >= exactly
    assert steps(plan(corpus), "embed") == {}


def test_what_is_chunked_and_not_embedded_yet_is_planned_once(corpus_of, paragraphs):
    corpus = asking(corpus_of, kind="semantic")
    corpus.materialize("chunk_sets")
    corpus.write("docs/1.md", paragraphs("docs 1", 6))
    planned = [step.documents for step in plan(corpus).steps if step.what == "asking-20@1+hash"]
    assert sum(planned) == corpus.workspace.table("documents").read_all().height


@pytest.mark.parametrize(
    ("batch_from", "prices", "cost", "said"),
    [
        (4, {"1M input tokens": 2.0, "1M batch input tokens": 1.0}, 1e-6, "batch API"),
        (4, {"1M input tokens": 2.0}, None, "batch API"),
        (99, {"1M input tokens": 2.0, "1M batch input tokens": 1.0}, 2e-6, ""),
    ],
)
def test_texts_for_the_batch_api_are_planned_at_its_price_and_said(
    corpus_of, tmp_path, batch_from, prices, cost, said
):
    remote = {
        "kind": "openai", "model": "any", "base_url": "http://127.0.0.1:9/v1", "dimensions": 8,
        "max_tokens": 200, "tokenizer": word_tokenizer(tmp_path), "batch_from": batch_from,
    }  # fmt: skip
    corpus = corpus_of(
        embedding_models={"remote": remote},
        chunkers={"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
        strategies={"one": {"chunker": "recursive-20@1", "model": "remote", "profile": "hybrid"}},
        prices=[
            {"model": "remote", "unit": unit, "price": price, "as_of": "2020-01-01"}
            for unit, price in prices.items()
        ],
    )
    found = plan(corpus)
    (step,) = steps(found, "embed").values()
    assert step.chunks > 4
    assert step.tokens_by_jobs == (step.tokens if said else 0)
    assert (step.cost and step.cost.amount) == (cost and pytest.approx(step.tokens * cost))
    shown = corpus.module("plan").markdown(found)
    assert ("batch API" in shown) == bool(said)


def test_texts_in_an_open_job_are_said_and_not_priced_again(corpus_of, tmp_path, monkeypatch):
    without_endpoint(monkeypatch)
    with serving(EmbeddingServer()) as server:
        remote = {
            "kind": "openai", "model": "good", "base_url": server.url, "dimensions": DIMENSIONS,
            "max_tokens": 200, "tokenizer": word_tokenizer(tmp_path), "batch_from": 1,
            "passage_prefix": "passage: ",
        }  # fmt: skip
        profile = {"chunker": "recursive-20@1", "model": "remote"}
        corpus = corpus_of(
            embedding_models={"remote": remote},
            chunkers={"recursive-20@1": {"kind": "recursive", "max_tokens": 20}},
            strategies={
                "one": {**profile, "profile": "hybrid"},
                "half": {**profile, "profile": "vector", "precision": "float16"},
            },
            comparison={"baseline": "one"},
            prices=[
                {"model": "remote", "unit": unit, "price": 1.0, "as_of": "2020-01-01"}
                for unit in ("1M input tokens", "1M batch input tokens")
            ],
        )
        before = plan(corpus)
        corpus.converge_until("chunk_embeddings")
        assert server.jobs
        found = plan(corpus)
        first, second = steps(found, "embed").values()
        assert (first.chunks, first.tokens, first.pending) == (
            0,
            0,
            before.total("embed", "chunks"),
        )
        assert (second.chunks, second.pending) == (0, 0)
        assert [cost.amount for cost in found.cost] == [0]
        assert f"{first.pending} more in jobs" in corpus.module("plan").markdown(found)
        corpus.write("docs/new.md", "One more text that is in no job.")
        assert plan(corpus).total("embed", "chunks") == 1
        assert server.requests == []


def test_a_part_of_a_plan_for_the_batch_api_is_said_in_tokens(corpus):
    planning = corpus.module("plan")
    step = planning.Step(stage="embed", what="x", model="m", tokens=1_500, tokens_by_jobs=1_000)
    assert planning.markdown(planning.Plan((step,))).endswith("| 1,000 tokens by batch API |\n")


def test_without_a_price_the_cost_is_unknown_and_not_0(corpus):
    found = plan(corpus)
    assert found.cost is None
    assert "cost unknown" in str(found)


def test_the_job_shows_the_plan_and_changes_nothing(built, paragraphs):
    built.write("docs/1.md", paragraphs("docs 1", 6))
    before = tree(built)
    result = built.defs.resolve_job_def("plan").execute_in_process(instance=built.instance)
    assert result.success
    (output,) = (e for e in result.all_events if e.event_type == dg.DagsterEventType.STEP_OUTPUT)
    shown = output.step_output_data.metadata
    assert shown["documents_to_parse"].value == 1
    assert "recursive-20@1+hash" in shown["plan"].value
    assert tree(built) == before


@pytest.fixture
def endpoint(monkeypatch):
    with serving(JudgeServer()) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield server


def test_judgements_are_estimated_at_most_and_nothing_is_asked(corpus_of, endpoint, monkeypatch):
    corpus = corpus_of(prices=PRICES)
    for name, value in (("OPENAI_BASE_URL", endpoint.url), ("OPENAI_API_KEY", KEY)):
        monkeypatch.setenv(name, value)
    found = plan(corpus)
    assert endpoint.requests == []
    assert found.total("answer", "calls") == 2 * 6
    assert found.total("judge", "calls") == 2 * 2 * 6
    assert found.total("judge", "tokens") is None
    assert all(step.is_estimate for step in found.steps if step.stage in ("answer", "judge"))
    corpus.materialize("ragas_scores")
    asked = len(endpoint.requests)
    assert plan(corpus).steps == ()
    assert len(endpoint.requests) == asked
    costs = corpus.workspace.table("costs").read_all().filter(asset="ragas_scores")
    assert costs["requests"].sum() == asked
    assert set(costs["work"]) == {"answer", "context_recall"}  # every answer abstains
    assert costs["strategy"].null_count() == costs["question_id"].null_count() == 0
    assert KEY not in costs.write_json()
