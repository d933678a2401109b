from xml.etree import ElementTree

import polars as pl
import pytest

from evals.strategy_comparison.compare import TABLE_SCHEMA, compare
from evals.strategy_comparison.report import frontier_svg, leaderboard_svg

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<script>alert("x")</script> & \x07 co'


def scores(**means: tuple[float, float]) -> pl.DataFrame:
    """Recall and context tokens of each strategy, over 20 questions on 5 documents."""
    return pl.DataFrame(
        [
            (strategy, f"q{n}", metric, "5", value + (n % 5) * step)
            for strategy, (recall, tokens) in means.items()
            for metric, value, step in (("recall", recall, 0.01), ("context_tokens", tokens, 1.0))
            for n in range(20)
        ],
        schema=["strategy", "question_id", "metric", "cutoff", "value"],
        orient="row",
    )


CLUSTERS = {f"q{n}": f"d{n % 5}" for n in range(20)}


def table(frame: pl.DataFrame) -> pl.DataFrame:
    return compare(frame, CLUSTERS, "base", resamples=200).table


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_the_leaderboard_shows_every_strategy_with_interval_and_verdict() -> None:
    frame = scores(base=(0.5, 500), other=(0.6, 900))
    svg = leaderboard_svg(table(frame))
    shown = texts(svg)
    assert shown.index("other") < shown.index("base")
    assert "baseline" in shown
    assert any(text.startswith("cannot tell") or text.startswith("better") for text in shown)
    marks = list(ElementTree.fromstring(svg).iter(f"{SVG}circle"))
    assert [mark.get("class") for mark in marks][1:] == ["sc-baseline"]


def test_the_frontier_shows_every_strategy_and_joins_those_nothing_beats() -> None:
    frame = scores(base=(0.5, 500), dearer=(0.4, 900), better=(0.8, 700))
    svg = frontier_svg(frame, "base")
    assert {"base", "dearer", "better"} <= set(texts(svg))
    (line,) = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    assert len(line.get("points", "").split()) == 2


@pytest.mark.parametrize("draw", ["leaderboard", "frontier"])
def test_names_cannot_break_out_of_the_picture(draw: str) -> None:
    frame = scores(base=(0.5, 500), **{HOSTILE: (0.6, 900)})
    svg = leaderboard_svg(table(frame)) if draw == "leaderboard" else frontier_svg(frame, "base")
    assert "<script" not in svg
    assert any("<script>" in text for text in texts(svg))


@pytest.mark.parametrize("draw", ["leaderboard", "frontier"])
def test_a_picture_is_self_contained_and_follows_the_reader_s_scheme(draw: str) -> None:
    frame = scores(base=(0.5, 500))
    svg = leaderboard_svg(table(frame)) if draw == "leaderboard" else frontier_svg(frame, "base")
    assert "prefers-color-scheme:dark" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert ElementTree.fromstring(svg).tag == f"{SVG}svg"


def test_strategies_without_a_pair_are_listed_without_a_mark() -> None:
    base = scores(base=(0.5, 500))
    other = scores(other=(0.5, 500)).with_columns(question_id="x" + pl.col("question_id"))
    clusters = CLUSTERS | {f"x{question}": document for question, document in CLUSTERS.items()}
    svg = leaderboard_svg(compare(pl.concat([base, other]), clusters, "base", resamples=200).table)
    assert "cannot tell: no question was scored for both" in texts(svg)
    assert svg.count("<circle") == 1


def test_nothing_to_show_is_said() -> None:
    assert texts(leaderboard_svg(pl.DataFrame(schema=TABLE_SCHEMA))) == ["No comparison yet."]
    assert "No question has both" in texts(frontier_svg(scores(base=(0.5, 1)).clear(), "base"))[0]


def test_equal_scores_of_zero_still_draw() -> None:
    frame = scores(base=(0.0, 0.0), other=(0.0, 0.0)).with_columns(value=pl.lit(0.0))
    assert "nan" not in leaderboard_svg(table(frame)) + frontier_svg(frame, "base")
