"""Judged scores in the comparison, from a judge on loopback to the verdict, the gate and the page."""

import html
import json
import re
import shutil
import subprocess

import polars as pl
import pytest
import yaml
from chat_server import KEY, serving
from judge_server import JudgeServer
from measured_corpus import SUBJECTS, MeasuredCorpus, question, write_measured_corpus

from chunking_assets.live_index.promotion import PromotionRefused, promote
from evals.gold_questions.build import read_gold
from evals.ragas_scores.build import (
    RAGAS_SCORES,
    judge_identity,
    measure_agreement,
    update_ragas_scores,
)
from evals.strategy_comparison.__main__ import main
from evals.strategy_comparison.build import STRATEGY_COMPARISONS, read_scores
from evals.strategy_comparison.gate import gate
from evals.strategy_comparison.meeting_report import meeting, write_configured

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
RAGAS = {"answer_model": "ok", "judge_model": "ok"}
HARD = (0, 1)
"""Numbers of the questions that `fixed` answers wrongly."""


class PartialJudge(JudgeServer):
    """`verdicts` overrides what it says of a statement; of those in `silent` it says nothing."""

    def __init__(self):
        super().__init__()
        self.verdicts, self.silent = {}, set()

    def judged(self, messages):
        output = super().judged(messages)
        for statement in output.get("statements", []):
            if isinstance(statement, dict):
                text = statement["statement"]
                if text in self.silent:
                    self.released.wait()
                statement["verdict"] = self.verdicts.get(text, statement["verdict"])
        return output


def claims(number):
    """The two statements of every answer to a question."""
    return [f"{SUBJECTS[number].capitalize()}.", f"So says page {number}."]


@pytest.fixture(scope="module")
def server():
    with serving(PartialJudge()) as running:
        running.answers.update({question(n)["question"]: claims(n) for n in range(len(SUBJECTS))})
        yield running


@pytest.fixture(autouse=True)
def endpoint(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def says(server, strategy, silent=()):
    """What the judge makes of a strategy: `recursive` has half of every answer supported, `fixed`
    all of the easy ones and nothing of the hard ones."""
    for number in range(len(SUBJECTS)):
        first, second = (1, 0) if strategy == "recursive" else (number not in HARD,) * 2
        server.verdicts.update(zip(claims(number), (int(first), int(second)), strict=True))
    server.silent = {claims(number)[0] for number in silent}


def judge(corpus, server, strategy, silent=()):
    says(server, strategy, silent)
    config = corpus.config
    return update_ragas_scores(corpus.workspace, strategy, config.ragas, config.root)


@pytest.fixture(scope="module")
def measured(server, tmp_path_factory):
    """A project whose answers were judged, all of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("NO_PROXY", "127.0.0.1")
        root = tmp_path_factory.mktemp("judged")
        corpus = MeasuredCorpus(write_measured_corpus(root, ragas=RAGAS))
        gold = yaml.safe_load((root / "gold.yaml").read_text())
        gold["questions"][-1]["question"] = "what about the moon?"
        (root / "gold.yaml").write_text(yaml.safe_dump(gold))
        corpus.measure()
        for strategy in corpus.config.strategies:
            judge(corpus, server, strategy)
        corpus.compare()
    return root


@pytest.fixture
def corpus(measured, tmp_path, monkeypatch):
    file = shutil.copytree(measured, tmp_path / "project") / "corpus.yaml"
    monkeypatch.setenv("CORPUS_CONFIG", str(file))
    return MeasuredCorpus(file)


def declare(corpus, **changes):
    """Replace sections of corpus.yaml."""
    file = corpus.config.file
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))
    return MeasuredCorpus(file)


def decided_by_faithfulness(corpus, **ragas):
    comparison = {"metric": "faithfulness", "resamples": 200, "baseline": "recursive"}
    return declare(corpus, comparison=comparison, ragas=RAGAS | ragas)


def row(corpus, metric, strategy="fixed"):
    table = corpus.workspace.table(STRATEGY_COMPARISONS).read()
    (found,) = table.filter(metric=metric, strategy=strategy).rows(named=True)
    return found


def test_judged_metrics_stand_beside_those_of_retrieval_and_decide_nothing(corpus):
    table = corpus.workspace.table(STRATEGY_COMPARISONS).read()
    assert table.filter("is_primary")["metric"].unique().to_list() == ["recall@5"]
    assert {"faithfulness", "context_recall", "answered_answerable"} <= {*table["metric"]}
    found = row(corpus, "faithfulness")
    assert (found["baseline_mean"], found["mean"]) == (0.5, pytest.approx(10 / 12))
    assert (found["n_scored"], found["n_total"], found["is_primary"]) == (12, 12, False)


def forget_hard_questions(corpus, strategy):
    """As if the judge had failed on them, so that they alone are asked again."""
    table = corpus.workspace.table(RAGAS_SCORES)
    manifest = table.manifest(strategy)
    hard = pl.col("question_id").is_in([f"q{n}" for n in HARD]) & (
        pl.col("metric") == "faithfulness"
    )
    rows = table.read(strategy).with_columns(
        status=pl.when(hard).then(pl.lit("error")).otherwise("status"),
        value=pl.when(~hard).then("value"),
    )
    table.replace(rows, strategy, version=manifest.version, details=manifest.details)
    shutil.rmtree(corpus.workspace.caches / "judge")


def test_a_judge_silent_on_one_strategy_s_hard_questions_does_not_let_it_win(corpus, server):
    assert row(corpus, "faithfulness")["verdict"] == "cannot tell"  # all judged: not shown
    forget_hard_questions(corpus, "fixed")
    update = judge(declare(corpus, ragas=RAGAS | {"timeout": 3}), server, "fixed", silent=HARD)
    assert update.statuses["error"] == 2
    corpus.compare()
    found = row(corpus, "faithfulness")
    # What is left is half a point ahead on every question, and that would be a win.
    assert (found["n_questions"], found["mean"], found["baseline_mean"]) == (10, 1.0, 0.5)
    assert found["ci_low"] > 0
    assert found["p_holm"] < 0.05
    assert found["verdict"] == "cannot tell"
    assert found["reason"] == "10 of 12 questions are scored (2 timeout), 95% are needed"
    assert found["mean_low"] < row(corpus, "faithfulness", "recursive")["mean_high"] + 0.5
    assert (found["state"], found["p_best"]) == ("in play", None)


def test_without_a_judge_retrieval_is_compared_as_ever_and_the_rest_says_why(
    corpus, monkeypatch, tmp_path
):
    on_spans = ~pl.col("metric").is_in(["faithfulness", "context_recall"])
    alone = MeasuredCorpus(write_measured_corpus(tmp_path))
    alone.measure()
    before = alone.workspace.table(STRATEGY_COMPARISONS).read()
    monkeypatch.delenv("OPENAI_BASE_URL")
    monkeypatch.delenv("OPENAI_API_KEY")
    for strategy in alone.config.strategies:
        update_ragas_scores(alone.workspace, strategy, alone.config.ragas, alone.config.root)
    alone.compare()
    after = alone.workspace.table(STRATEGY_COMPARISONS).read()
    assert after.filter(on_spans).equals(before)
    found = row(alone, "faithfulness")
    assert (found["verdict"], found["mean"]) == ("cannot tell", None)
    assert found["reason"] == "no question was scored for both (13 no_judge)"


def test_another_judge_makes_judged_metrics_incomparable_and_nothing_else(corpus, server):
    before = row(corpus, "recall@5")
    other = declare(corpus, ragas=RAGAS | {"judge_model": "fenced"})
    judge(other, server, "fixed")
    assert "faithfulness: not comparable: measured with another judge" in (
        other.compare().judged_markdown
    )
    found = row(other, "faithfulness")
    assert (found["verdict"], found["changed"], found["mean"]) == ("not comparable", "judge", None)
    assert row(other, "recall@5") == before
    assert row(other, "answered_answerable")["verdict"] == "cannot tell"
    judge(other, server, "recursive")
    other.compare()
    assert row(other, "faithfulness")["verdict"] != "not comparable"


def test_answers_of_another_model_are_not_compared_where_answers_are_read(corpus, server):
    other = declare(corpus, ragas=RAGAS | {"answerer": "extractive"})
    judge(other, server, "fixed")
    other.compare()
    assert row(other, "faithfulness")["changed"] == "answerer"
    assert row(other, "answered_answerable")["changed"] == "answerer"
    assert row(other, "context_recall")["changed"] is None


def test_what_was_judged_of_other_passages_waits_to_be_judged_again(corpus, server):
    file = corpus.config.root / "docs" / "0.md"
    file.write_text(file.read_text().replace("nothing new", "hardly anything new"))
    corpus.update()
    corpus.resolve()
    for strategy in corpus.config.strategies:
        corpus.score(strategy)
    corpus.compare()
    found = row(corpus, "faithfulness")
    assert (found["verdict"], found["changed"]) == ("not comparable", "retrieval")
    for strategy in corpus.config.strategies:
        judge(corpus, server, strategy)
    corpus.compare()
    assert row(corpus, "faithfulness")["changed"] is None


def test_abstaining_is_right_where_the_documents_do_not_say_and_wrong_where_they_do(corpus, server):
    found = row(corpus, "answered_answerable")
    assert (found["mean"], found["n_total"], found["coverage"]) == (1.0, 12, 1.0)
    assert row(corpus, "abstained_unanswerable")["mean"] == 1.0
    asked = question(0)["question"]
    given = server.answers.pop(asked)
    try:
        other = declare(corpus, ragas=RAGAS | {"answer_model": "nousage"})
        judge(other, server, "fixed")
        judge(other, server, "recursive")
    finally:
        server.answers[asked] = given
    other.compare()
    assert row(other, "answered_answerable")["mean"] == pytest.approx(11 / 12)
    # An answer that was not given is not judged; it is not missing either.
    assert row(other, "faithfulness")["n_total"] == 11


def test_repeated_judgements_put_their_noise_beside_the_difference(corpus, server):
    assert row(corpus, "faithfulness")["judge_noise"] is None
    noisy = declare(corpus, ragas=RAGAS | {"judge_model": "noisy", "judge_repeats": 2})
    for strategy in noisy.config.strategies:
        judge(noisy, server, strategy)
    noisy.compare()
    assert row(noisy, "faithfulness")["judge_noise"] > 0
    assert row(noisy, "recall@5")["judge_noise"] is None


def win(corpus, server):
    """`fixed` is better on every question."""
    for strategy in corpus.config.strategies:
        says(server, strategy)
        if strategy == "fixed":
            server.verdicts.update(dict.fromkeys((c for n in HARD for c in claims(n)), 1))
        update_ragas_scores(corpus.workspace, strategy, corpus.config.ragas, corpus.config.root)
    corpus.compare()


def write_labels(corpus, right=40, wrong=0):
    """Labels of which the judge, which goes by substring, gets so many right and wrong."""
    texts = [(f"Claim {n} holds.", n % 2 == 0) for n in range(right)]
    texts += [(f"Claim {n} is said otherwise.", True) for n in range(right, right + wrong)]
    label = {
        "question": "q",
        "contexts": [" ".join(text for text, holds in texts[:right] if holds)],
        "statements": [{"text": text, "supported": holds} for text, holds in texts],
    }
    (corpus.config.root / "labels.yaml").write_text(yaml.safe_dump({"labels": [label]}))


@pytest.fixture
def deciding(corpus, server):
    """Faithfulness decides, and `fixed` is better by it; a fresh judge, so that it is asked."""
    (corpus.config.root / "labels.yaml").write_text("labels: []")
    deciding = decided_by_faithfulness(corpus, judge_labels="labels.yaml", judge_model="nousage")
    win(deciding, server)
    return deciding


def gated(corpus):
    config = corpus.config
    return gate(
        corpus.workspace,
        config.strategies,
        list(config.shards()),
        config.comparison,
        "fixed",
        "recursive",
        asked_as=read_gold(corpus.workspace).content,
        judged_as=judge_identity(config.ragas, config.root),
    )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (None, "this judge was not compared with people. Name a file of labels"),
        ({"right": 12}, "on 12 of 12 labels, 30 are needed"),
        ({"right": 20, "wrong": 20}, "agrees with people by kappa 0.2"),
    ],
)
def test_a_judge_nobody_agrees_with_decides_nothing(deciding, labels, said):
    if labels:
        write_labels(deciding, **labels)
        measure_agreement(deciding.workspace, deciding.config.ragas, deciding.config.root)
    found = gated(deciding)
    assert (found.outcome, "python -m evals.ragas_scores agreement" in found.reason) == (
        "cannot decide",
        True,
    )
    assert said in found.reason
    deciding.compare()
    assert said in row(deciding, "faithfulness")["reason"]
    config = deciding.config
    promote(deciding.workspace, config.strategies["recursive"], list(config.shards()))
    with pytest.raises(PromotionRefused, match="cannot tell"):
        promote(deciding.workspace, config.strategies["fixed"], list(config.shards()))


def test_a_judge_that_agrees_with_people_decides(deciding):
    write_labels(deciding)
    measure_agreement(deciding.workspace, deciding.config.ragas, deciding.config.root)
    assert gated(deciding).outcome == "pass"
    deciding.compare()
    assert row(deciding, "faithfulness")["verdict"] == "better"
    config = deciding.config
    promote(deciding.workspace, config.strategies["recursive"], list(config.shards()))
    event = promote(deciding.workspace, config.strategies["fixed"], list(config.shards()))
    assert event["verdict"] == "better"


def test_the_gate_does_not_decide_on_what_was_judged_otherwise_than_is_configured(
    deciding, monkeypatch
):
    write_labels(deciding)
    measure_agreement(deciding.workspace, deciding.config.ragas, deciding.config.root)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    found = gated(deciding)
    assert found.outcome == "cannot decide"
    assert "was judged under other settings, or at another endpoint" in found.reason


def test_a_comparison_to_look_at_shows_the_figures_and_the_agreement(deciding, capsys):
    recall = declare(deciding, comparison={"metric": "recall@5", "baseline": "recursive"})
    assert main(["compare", "fixed", "recursive", "--metric", "faithfulness"]) == 0
    text = capsys.readouterr().out
    assert "better: +50.0 points" in text
    assert "(not the metric that decides, which is recall@5)" in text
    assert "not compared with people" in text
    write_labels(recall)
    measure_agreement(recall.workspace, recall.config.ragas, recall.config.root)
    main(["compare", "fixed", "recursive", "--metric", "faithfulness"])
    assert "against people, all: accuracy 1.00" in capsys.readouterr().out


def test_only_so_many_questions_judged_are_a_sample_not_a_loss(corpus, server):
    some = declare(corpus, ragas=RAGAS | {"max_questions": 11})
    for strategy in some.config.strategies:
        judge(some, server, strategy)
    some.compare()
    found = row(some, "context_recall")
    assert found["coverage"] == 1.0
    assert found["n_total"] in (10, 11)  # one of the thirteen is unanswerable


def test_what_is_compared_is_what_is_stored(corpus):
    stored = read_scores(corpus.workspace, list(corpus.config.strategies))
    judged = stored.judged["fixed"].scores
    assert set(judged["status"]) <= {"ok", "error", "not_applicable", "skipped"}
    assert judged.filter((pl.col("status") == "ok") != pl.col("value").is_not_null()).is_empty()
    assert set(judged["cutoff"]) == {""}


def test_the_page_shows_verdicts_on_answers_abstentions_and_the_agreement(deciding):
    write_labels(deciding)
    measure_agreement(deciding.workspace, deciding.config.ragas, deciding.config.root)
    deciding.compare()
    config = deciding.config
    data = meeting(deciding.workspace, list(config.chunker_versions), list(config.shards()))
    assert data["headline"] == "fixed is better than recursive by faithfulness."
    assert {c["strategy"]: c["cells"][:4] for c in data["abstention"]} == {
        "fixed": ["12 of 12 (100%)", "0", "1 of 1 (100%)", "0"],
        "recursive": ["12 of 12 (100%)", "0", "1 of 1 (100%)", "0"],
    }
    told = {v["metric"]: v for v in data["judge"]["verdicts"]}
    assert (told["faithfulness"]["verdict"], told["faithfulness"]["cells"][0]) == (
        "better",
        "+50.0",
    )
    assert data["judge"]["agreement"][0][:3] == ["all", "40 of 40", "100%"]
    assert [q["change"] for q in data["flipped"]["questions"]] == ["won"] * 12


def test_what_decides_stands_against_what_the_answers_were_made_from(deciding):
    config = deciding.config
    data = meeting(deciding.workspace, list(config.chunker_versions), list(config.shards()))
    frontier = data["frontier"]
    assert (frontier["quality"], frontier["cost"]) == ("faithfulness", "context_tokens@served")
    assert frontier["questions"] == 12  # an unanswerable question has no cost that is scored
    means = {point["strategy"]: point["quality"] for point in frontier["points"]}
    told = {row["strategy"]: float(row["mean"]) for row in data["leaderboard"]}
    assert means == pytest.approx(told, abs=5)


PROBE = """<script>
document.querySelectorAll("details").forEach(d => { d.open = true; });
const rgb = text => { const c = text.match(/[\\d.]+/g).map(Number); return c.length < 4 ? [...c, 1] : c; };
const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]));
const paper = e => {
  if (e === null) return [255, 255, 255];
  const own = rgb(getComputedStyle(e).backgroundColor);
  return own[3] === 1 ? own : over(own, paper(e.parentElement));
};
const luminance = c => c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const texts = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || e.closest("script, noscript, title, .unseen")) continue;
  const style = getComputedStyle(e), ink = rgb(e instanceof SVGElement ? style.fill : style.color), under = paper(e);
  texts.push([contrast(over(ink, under), under), walker.currentNode.data.slice(0, 40), e.tagName + "." + e.getAttribute("class")]);
}
const all = selector => [...document.querySelectorAll(selector)];
const found = {
  dark: matchMedia("(prefers-color-scheme: dark)").matches, width: innerWidth,
  overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth, texts: texts.length,
  faint: texts.filter(([ratio]) => ratio < 4.5),
  unnamed: [
    ...all("table").filter(t => !t.caption || !t.caption.textContent.trim()),
    ...all("th").filter(t => !t.scope || !t.textContent.trim()),
    ...all("svg").filter(s => s.getAttribute("aria-hidden") !== "true" && !(s.getAttribute("role") === "img" && s.getAttribute("aria-label"))),
    ...all("[role=region], nav").filter(r => !r.getAttribute("aria-label")),
    ...all("main > section").filter(s => !document.getElementById(s.getAttribute("aria-labelledby"))),
    ...all("img:not([alt])"), ...all("summary, a").filter(e => !e.textContent.trim()),
    ...all("nav a").filter(a => !document.querySelector(a.getAttribute("href"))),
  ].map(e => e.outerHTML.slice(0, 120)),
  jumps: all("h1, h2, h3, h4").map(h => +h.tagName[1]).filter((level, at, levels) => level > (levels[at - 1] || 0) + 1),
  landmarks: ["header", "nav", "main", "html[lang]"].map(name => all(name).length),
  sections: all("main > section").map(s => s.id),
};
parent.document.getElementById("probe").textContent = JSON.stringify(found);
</script>"""


def probed(corpus, folder, width, *, is_dark):
    """What a browser makes of the page, every fold of it open."""
    page = write_configured(corpus.config).path.read_text()
    # The page's own policy would not let the probe run.
    free = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, count=1)
    framed = html.escape(free.replace("</body>", f"{PROBE}</body>"))
    # A window is never narrower than 500 pixels; a frame is.
    frame = f'<iframe style="width:{width}px;height:900px;border:0" srcdoc="{framed}"></iframe>'
    file = folder / "probed.html"
    file.write_text(f'<!doctype html><meta charset="utf-8"><pre id="probe"></pre>{frame}')
    drawn = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
            f"--blink-settings=preferredColorScheme={0 if is_dark else 1}",
            f"--user-data-dir={folder / 'profile'}", "--dump-dom", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in drawn.stderr
    return json.loads(html.unescape(re.search(r'<pre id="probe">(.*?)</pre>', drawn.stdout)[1]))


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize(("width", "is_dark"), [(390, True), (1200, False)])
def test_the_page_can_be_read_on_a_phone_in_the_dark_and_by_a_screen_reader(
    deciding, tmp_path, width, is_dark
):
    write_labels(deciding)
    measure_agreement(deciding.workspace, deciding.config.ragas, deciding.config.root)
    deciding.compare()
    found = probed(deciding, tmp_path, width, is_dark=is_dark)
    assert (found["dark"], found["width"], found["overflow"]) == (is_dark, width, 0)
    assert found["texts"] > 200
    assert found["faint"] == []
    assert found["unnamed"] == []
    assert found["jumps"] == []
    assert found["landmarks"] == [1, 1, 1, 1]
    assert {"abstention", "judge", "flipped"} <= {*found["sections"]}
