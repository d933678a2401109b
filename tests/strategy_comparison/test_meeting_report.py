"""The page for the meeting: what it says, that texts stay texts, and that a browser draws it."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import polars as pl
import pytest
import yaml
from measured_corpus import SUBJECTS, MeasuredCorpus, write_measured_corpus
from small_corpus import write_document

from chunking_assets.errors import CorpusError
from evals.ragas_scores.build import RAGAS_SCORES
from evals.ragas_scores.frames import SCORES
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.retrieval_scores.spans import Span
from evals.strategy_comparison import flipped_questions as flipped
from evals.strategy_comparison.build import STRATEGY_COMPARISONS
from evals.strategy_comparison.meeting_report import (
    CHANGED_SINCE,
    SECTIONS,
    main,
    meeting,
    meeting_page,
    report_file,
    report_inputs,
    write_configured,
)

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A project in which `fixed` wins eleven questions and loses one, and one question is stale."""
    root = tmp_path_factory.mktemp("measured")
    file = write_measured_corpus(root)
    questions = yaml.safe_load((root / "gold.yaml").read_text())
    questions["questions"][0]["question"] += f" {HOSTILE}"
    gone = {"id": "gone", "question": "What did it say?", "answer": "It is gone."}
    evidence = [{"doc_id": "docs/1.md", "quote": "Words that nobody finds any more."}]
    questions["questions"].append({**gone, "language": "en", "evidence": evidence})
    (root / "gold.yaml").write_text(yaml.safe_dump(questions))
    subject = f"{SUBJECTS[0]}."
    text = (root / "docs" / "0.md").read_text().replace(subject, f"{subject} {HOSTILE}")
    write_document(root, "0.md", text)
    corpus = MeasuredCorpus(file)
    corpus.measure()
    give(corpus, "recursive", 0.0, but={"q9": 1.0})
    give(corpus, "fixed", 1.0, but={"q9": 0.0})
    corpus.compare()
    judge(corpus, "fixed")
    return root


def give(corpus, strategy, recall, but):
    """Replace a strategy's recall@5 and its version, which a comparison goes by."""
    table = corpus.workspace.table(RETRIEVAL_SCORES)
    manifest = table.manifest(strategy)
    given = pl.col("question_id").replace_strict(but, default=recall, return_dtype=pl.Float64)
    is_primary = (pl.col("metric") == "recall") & (pl.col("cutoff") == "5")
    rows = table.read(strategy).with_columns(
        value=pl.when(is_primary).then(given).otherwise("value")
    )
    table.replace(rows, strategy, version=f"{manifest.version}+", details=manifest.details)


def judge(corpus, strategy):
    rows = [
        {"question_id": "q1", "status": "ok", "value": 0.5, "error_kind": None},
        {"question_id": "q2", "status": "error", "value": None, "error_kind": "timeout"},
    ]
    common = {"strategy": strategy, "metric": "faithfulness", "judge": "model at host"}
    frame = pl.DataFrame([{**common, **row} for row in rows], schema=SCORES)
    corpus.workspace.table(RAGAS_SCORES).replace(frame, strategy, version="1")


@pytest.fixture
def corpus(measured, tmp_path):
    return MeasuredCorpus(shutil.copytree(measured, tmp_path / "project") / "corpus.yaml")


def shown(corpus):
    config = corpus.config
    return meeting(corpus.workspace, list(config.chunker_versions), list(config.shards()))


def test_the_page_says_the_verdict_in_words(corpus):
    data = shown(corpus)
    assert data["headline"] == "fixed is better than recursive by recall@5."
    assert data["facts"][0] == "Compared with recursive, the reference."
    assert "12 questions over 12 documents" in data["facts"][1]
    (verdict,) = data["verdicts"]
    assert (verdict["strategy"], verdict["verdict"]) == ("fixed", "better")
    assert verdict["text"].startswith("+83.3 points (95% interval ")


def test_the_leaderboard_stands_best_first_and_its_intervals_hold_the_differences(corpus):
    fixed, recursive = shown(corpus)["leaderboard"]
    assert (fixed["strategy"], fixed["mean"], fixed["difference"]) == ("fixed", "91.7", "+83.3")
    low, difference, high = fixed["drawn"]
    assert low < difference < high
    table = corpus.workspace.table(STRATEGY_COMPARISONS).read().filter("is_primary")
    (row,) = table.filter(strategy="fixed").rows(named=True)
    assert fixed["detectable"] == f"{100 * row['minimum_detectable_difference']:.1f}"
    assert recursive["detectable"] == ""
    assert (recursive["verdict"], recursive["interval"]) == ("baseline", "")


def test_the_frontier_joins_what_nothing_beats(corpus):
    points = {p["strategy"]: p for p in shown(corpus)["frontier"]["points"]}
    assert points["fixed"]["unbeaten"]
    assert points["fixed"]["quality"] == pytest.approx(100 * 11 / 12)
    cheaper = points["recursive"]["cost"] < points["fixed"]["cost"]
    assert points["recursive"]["unbeaten"] == cheaper


def test_a_flipped_question_shows_its_evidence_and_both_sides_lost_ones_first(corpus):
    questions = shown(corpus)["flipped"]["questions"]
    assert [q["change"] for q in questions] == ["lost"] + ["won"] * 11
    lost = questions[0]
    assert lost["question_id"] == "q9"
    assert [piece for piece, is_evidence in lost["gold"][0]["text"] if is_evidence] == [SUBJECTS[9]]
    for side in ("baseline", "other"):
        assert 1 <= len(lost[side]["passages"]) <= flipped.MOST_PASSAGES
        assert "evidence" in lost[side]["why"]
        for passage in lost[side]["passages"]:
            document = (corpus.config.root / passage["doc_id"]).read_text()
            for piece, is_evidence in passage["text"]:
                assert piece.strip(" …") in document
                assert not is_evidence or piece in SUBJECTS[9]


def test_why_says_where_the_evidence_was_met():
    def row(rank, start, end):
        return {"rank": rank, "doc_id": "d", "start": start, "end": end, "n_tokens": 1}

    near, far = row(1, 0, 10), row(7, 20, 30)
    gold = [Span("d", 0, 10), Span("d", 20, 30)]
    assert flipped.why(gold, [near], [near, far]) == (
        "All of evidence 1, at rank 1. "
        "None of evidence 2, first met at rank 7; 1 of 1 passages is from its document."
    )
    assert "not among the first 1" in flipped.why(gold, [near], [near])
    assert flipped.why(gold, [], []) == "Nothing was returned."


@pytest.mark.parametrize("most", [50, 600])
def test_an_excerpt_is_bounded_and_holds_the_evidence(most):
    text = "a" * 5000 + "EVIDENCE" + "b" * 5000
    pieces = flipped.excerpt(text, 0, len(text), [Span("d", 5000, 5008)], most)
    assert sum(len(piece) for piece, _ in pieces) <= most + 4
    assert most < 100 or [p for p, is_evidence in pieces if is_evidence] == ["EVIDENCE"]


def test_few_of_many_flipped_questions_are_shown(corpus, monkeypatch):
    monkeypatch.setattr(flipped, "MOST_QUESTIONS", 3)
    data = shown(corpus)["flipped"]
    assert (len(data["questions"]), data["total"]) == (3, 12)


def test_questions_scored_on_other_texts_are_left_out(corpus):
    write_document(corpus.config.root, "3.md", f"First of all.\n\n{SUBJECTS[3]}")
    corpus.parse()
    corpus.resolve()
    data = shown(corpus)
    assert (data["flipped"]["questions"], data["flipped"]["moved"]) == ([], 12)
    assert data["facts"][0] == CHANGED_SINCE


def test_a_stale_question_shows_what_became_of_its_passage(corpus):
    file = corpus.config.root / "docs" / "3.md"
    write_document(corpus.config.root, "3.md", file.read_text().replace("Lisbon", "Porto"))
    corpus.parse()
    corpus.resolve()
    stale = {one["question_id"]: one for one in shown(corpus)["stale"]["questions"]}
    assert stale["q3"]["reason"] == "evidence 1: quote not found in docs/3.md"
    assert "[-Lisbon-]{+Porto+}" in stale["q3"]["lost"][0]["diff"]


def test_sizes_stale_questions_and_the_judge_are_there(corpus):
    data = shown(corpus)
    assert {c["version"] for c in data["chunks"]} == {"recursive-20@1", "fixed-20@1"}
    for c in data["chunks"]:
        assert f"{sum(c['bars']):,}" == c["cells"][0]
    assert data["stale"]["total"] == 1
    assert data["stale"]["questions"][0]["lost"][0]["quote"].startswith("Words that nobody")
    (judged,) = data["judge"]["rows"]
    assert judged["cells"][:4] == ["1 of 2", "50%", "50.0", "25.0 to 75.0"]
    assert (judged["low_coverage"], judged["cells"][4]) == (True, "1 error: timeout")


class _Outline(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def test_hostile_text_ends_no_script_and_is_read_back_as_it_was(corpus):
    data = shown(corpus)
    page = meeting_page(data)
    assert HOSTILE in json.dumps(data)
    assert HOSTILE not in page
    outline = _Outline()
    outline.feed(page)
    assert [tag for tag, _ in outline.tags].count("script") == 2
    assert "img" not in {tag for tag, _ in outline.tags}
    content = re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1)
    assert json.loads(content) == json.loads(json.dumps(data))


def test_the_page_refers_to_nothing_outside_itself_and_may_not(corpus):
    outline = _Outline()
    page = meeting_page(shown(corpus))
    outline.feed(page)
    assert not [a for _, a in outline.tags if {"src", "srcset", "href", "data"} & a.keys()]
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(|innerHTML", page)
    (policy,) = [a["content"] for _, a in outline.tags if "http-equiv" in a]
    assert policy.startswith("default-src 'none';")
    assert "script-src 'sha256-" in policy


def test_the_same_tables_give_the_same_page_and_other_scores_another_version(corpus):
    before = write_configured(corpus.config)
    content = before.path.read_bytes()
    assert write_configured(corpus.config) == before
    assert before.path.read_bytes() == content
    assert [f.name for f in before.path.parent.iterdir()] == ["report.html"]
    give(corpus, "fixed", 0.5, but={"q0": 0.5})
    assert report_inputs(corpus.workspace) != before.version


def test_nothing_compared_is_an_error_that_names_the_cure(tmp_path):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path))
    assert report_inputs(corpus.workspace) is None
    with pytest.raises(CorpusError, match="Build strategy_comparison first"):
        write_configured(corpus.config)


def test_a_corpus_without_questions_has_a_page_that_says_so(tmp_path):
    corpus = MeasuredCorpus(write_measured_corpus(tmp_path))
    (tmp_path / "gold.yaml").write_text("questions: []")
    corpus.measure()
    assert write_configured(corpus.config).headline.startswith("No gold question could be scored")


def test_the_command_prints_where_the_page_is(corpus, monkeypatch, capsys):
    monkeypatch.setenv("CORPUS_CONFIG", str(corpus.config.root / "corpus.yaml"))
    assert main() == 0
    assert capsys.readouterr().out.strip() == str(report_file(corpus.workspace))


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("is_empty", [False, True])
def test_a_browser_draws_it_without_an_error_and_runs_no_text(corpus, tmp_path, is_empty):
    if is_empty:
        (corpus.config.root / "gold.yaml").write_text("questions: []")
        corpus.resolve()
        for strategy in corpus.config.strategies:
            corpus.score(strategy)
        corpus.compare()
    update = write_configured(corpus.config)
    drawn = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", update.path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in drawn.stderr
    outline = _Outline()
    outline.feed(drawn.stdout)
    headline = re.search(r'id="headline">([^<]*)<', drawn.stdout).group(1)
    assert headline == update.headline
    assert f"<title>{update.headline}</title>" in drawn.stdout
    sections = [a["id"] for tag, a in outline.tags if tag == "section" and "id" in a]
    assert {"verdict", "flipped", "stale", "judge"} <= {*sections}
    assert "img" not in {tag for tag, _ in outline.tags}
    if not is_empty:
        assert sections == [name for name in SECTIONS if name != "abstention"]  # nothing answered
        assert "<mark>" in drawn.stdout
        assert [tag for tag, _ in outline.tags].count("caption") >= 5
        named = ("aria-label", "aria-hidden")
        assert all(any(n in a for n in named) for tag, a in outline.tags if tag == "svg")
        assert all("scope" in a for tag, a in outline.tags if tag == "th")
