"""The comparison as pictures: inline SVG that needs no library, no font and no network.

Each drawing stands on its own card, so that it reads in a light and in a dark page, embedded or as
an image; colours follow the reader's scheme.
"""

import math
import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

import polars as pl

from evals.retrieval_scores.registry import LOWER_IS_BETTER
from evals.strategy_comparison.verdict import explain

_STYLE = """<style>
.sc-card{fill:#ffffff;stroke:#d0d7de}.sc-text{fill:#1f2328;font-family:system-ui,sans-serif;font-size:12px}
.sc-faint{fill:#59636e;font-family:system-ui,sans-serif;font-size:11px}
.sc-line{stroke:#59636e;stroke-width:1}
.sc-grid{stroke:#d0d7de;stroke-width:1}.sc-better{fill:#1a7f37;stroke:#1a7f37}
.sc-worse{fill:#cf222e;stroke:#cf222e}.sc-baseline{fill:#0969da;stroke:#0969da}
.sc-unclear{fill:#59636e;stroke:#59636e}
@media (prefers-color-scheme:dark){
.sc-card{fill:#0d1117;stroke:#3d444d}.sc-text{fill:#f0f6fc}.sc-faint{fill:#9198a1}
.sc-line{stroke:#9198a1}.sc-grid{stroke:#3d444d}.sc-better{fill:#3fb950;stroke:#3fb950}
.sc-worse{fill:#f85149;stroke:#f85149}.sc-baseline{fill:#4493f8;stroke:#4493f8}
.sc-unclear{fill:#9198a1;stroke:#9198a1}}
</style>"""
_MARKS = {"better": "sc-better", "worse": "sc-worse", "baseline": "sc-baseline"}
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_NAME_WIDTH, _PLOT_WIDTH, _WORDS_WIDTH = 230, 320, 560
_ROW, _TOP, _BOTTOM, _MARGIN = 26, 52, 34, 14
_NAME_CHARS = 34


def leaderboard_svg(table: pl.DataFrame) -> str:
    """The primary metric per strategy: difference to the baseline with its interval, and verdict.

    Takes the comparison table; strategies stand in its order, the vertical line is the baseline.
    """
    rows = table.filter("is_primary").rows(named=True)
    if not rows:
        return _message("No comparison yet.")
    metric = rows[0]["metric"]
    unit, scale = ("tokens", 1) if _is_cost(metric) else ("points", 100)
    ends = [0.0] + [
        scale * row[key]
        for row in rows
        for key in ("ci_low", "ci_high", "difference")
        if row[key] is not None
    ]
    x = _Scale(min(ends), max(ends), _NAME_WIDTH, _NAME_WIDTH + _PLOT_WIDTH)
    width, bottom = _NAME_WIDTH + _PLOT_WIDTH + _WORDS_WIDTH, _TOP + _ROW * len(rows)
    parts = [
        _text(_MARGIN, 20, f"{metric}: difference to {rows[0]['baseline']}, {unit}"),
        _text(
            _MARGIN,
            37,
            f"{rows[0]['confidence']:.0%} intervals, documents resampled {rows[0]['resamples']:,} "
            f"times (seed {rows[0]['seed']})",
            "sc-faint",
        ),
    ]
    for tick in x.ticks():
        parts.append(_line(x(tick), _TOP, x(tick), bottom, "sc-grid"))
        parts.append(
            _text(x(tick), bottom + 16, f"{tick:+g}" if tick else "0", "sc-faint", "middle")
        )
    parts.append(_line(x(0), _TOP - 4, x(0), bottom + 4, "sc-line"))
    for number, row in enumerate(rows):
        y = _TOP + _ROW * (number + 0.5)
        mark = _MARKS.get(row["verdict"], "sc-unclear")
        mean = "–" if row["mean"] is None else f"{scale * row['mean']:.1f}"
        parts.append(_named(_MARGIN, y + 4, row["strategy"]))
        parts.append(_text(_NAME_WIDTH + _PLOT_WIDTH + 56, y + 4, mean, anchor="end"))
        parts.append(_text(_NAME_WIDTH + _PLOT_WIDTH + 68, y + 4, explain(row)))
        if row["difference"] is None:
            continue
        if row["ci_low"] is not None:
            parts.append(_line(x(scale * row["ci_low"]), y, x(scale * row["ci_high"]), y, mark, 2))
        parts.append(_circle(x(scale * row["difference"]), y, mark))
    return _svg(width, bottom + _BOTTOM, f"Leaderboard by {metric}", parts)


def frontier_svg(
    scores: pl.DataFrame,
    baseline: str,
    quality: str = "recall@5",
    cost: str = "context_tokens@5",
) -> str:
    """Quality against context tokens, each strategy a point; the line joins those nothing beats.

    Takes the scores that `compare` takes.
    """
    points = quality_and_cost(scores, quality, cost).select("strategy", "cost", "quality").rows()
    if not points:
        return _message(f"No question has both {quality} and {cost} for every strategy.")
    width, right, height, left, base = 660, 400, 300, 60, 254
    x = _Scale(0, max(tokens for _, tokens, _ in points), left, right)
    values = [100 * score for _, _, score in points]
    y = _Scale(min(values), max(values), base, 54)
    parts = [_text(_MARGIN, 20, f"{quality} (points) against {cost}: up and left is better")]
    for tick in x.ticks():
        parts.append(_line(x(tick), 46, x(tick), base, "sc-grid"))
        parts.append(_text(x(tick), base + 16, f"{tick:,.0f}", "sc-faint", "middle"))
    for tick in y.ticks():
        parts.append(_line(left, y(tick), right, y(tick), "sc-grid"))
        parts.append(_text(left - 6, y(tick) + 4, f"{tick:g}", "sc-faint", "end"))
    corner = [
        (x(tokens), y(100 * score))
        for _, tokens, score in points
        if not any(
            other_tokens <= tokens and other >= score and (other_tokens, other) != (tokens, score)
            for _, other_tokens, other in points
        )
    ]
    path = " ".join(f"{px:.1f},{py:.1f}" for px, py in corner)
    parts.append(f'<polyline points="{path}" fill="none" class="sc-line" style="fill:none"/>')
    for strategy, tokens, score in points:
        px, py = x(tokens), y(100 * score)
        parts.append(_circle(px, py, "sc-baseline" if strategy == baseline else "sc-unclear"))
        parts.append(_named(px + 8, py + 4, strategy))
    return _svg(width, height, f"{quality} against {cost}", parts)


def quality_and_cost(scores: pl.DataFrame, quality: str, cost: str) -> pl.DataFrame:
    """The means of two scores over the questions on which every strategy has both.

    One row per strategy that has any, cheapest first: `strategy, cost, quality, n_questions`.
    """
    cutoff = pl.col("cutoff")
    measure = pl.col("metric") + pl.when(cutoff == "").then(cutoff).otherwise("@" + cutoff)
    wide = (
        scores.with_columns(measure=measure, value=pl.col("value").fill_nan(None))
        .filter(pl.col("measure").is_in([quality, cost]) & pl.col("value").is_not_null())
        .pivot(
            on="measure",
            on_columns=[quality, cost],
            index=["strategy", "question_id"],
            values="value",
            aggregate_function="first",
        )
        .drop_nulls()
    )
    n_strategies = wide["strategy"].n_unique()
    return (
        wide.filter(pl.col("strategy").n_unique().over("question_id") == n_strategies)
        .group_by("strategy")
        .agg(cost=pl.col(cost).mean(), quality=pl.col(quality).mean(), n_questions=pl.len())
        .sort("cost", "quality", "strategy")
    )


class _Scale:
    """A linear axis from values to pixels, with round ticks inside it."""

    def __init__(self, low: float, high: float, first: float, last: float) -> None:
        margin = (high - low or abs(high) or 1) * 0.06
        self.low, self.high = (low - margin if low else 0.0), high + margin
        if low == high == 0:
            self.low = -self.high
        self.first, self.last = first, last

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.first + share * (self.last - self.first)

    def ticks(self) -> Sequence[float]:
        rough = (self.high - self.low) / 8
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [round(n * step, 10) for n in range(first, last + 1)]


def _is_cost(measure: str) -> bool:
    return measure.partition("@")[0] in LOWER_IS_BETTER


def _xml(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text), {'"': "&quot;"})


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}">'
        f"<title>{_xml(title)}</title>{_STYLE}"
        f'<rect class="sc-card" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" '
        f'rx="6"/>{"".join(parts)}</svg>'
    )


def _message(text: str) -> str:
    return _svg(560, 60, text, [_text(_MARGIN, 35, text)])


def _text(x: float, y: float, text: str, kind: str = "sc-text", anchor: str = "start") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_xml(text)}</text>'
    )


def _named(x: float, y: float, name: str) -> str:
    shown = name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…"
    return f"<g><title>{_xml(name)}</title>{_text(x, y, shown)}</g>"


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, width: int = 1) -> str:
    return (
        f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'style="stroke-width:{width}"/>'
    )


def _circle(x: float, y: float, kind: str) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
