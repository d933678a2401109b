"""May a strategy become live? A decision over numbers, so that it can be read, tested and recorded.

What cannot be decided is not let through: a number that is missing where the configuration sets a
limit refuses just as one beyond it. Who measured is no matter here: that is a stage above.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from chunking_assets.chunk_sets.build import cell
from chunking_assets.prices import Money
from chunking_assets.workspace import Workspace

UNSOUND = "failed a blocking check"
"""The stamp of a partition nothing may be built upon; its next build starts from nothing."""


class PromotionSettings(BaseModel):
    """`promotion:`: what a strategy must show before it is served.

    `min_difference` is how far the whole confidence interval must lie above the live strategy, in
    the unit of `comparison.metric` (0.02 is two points of recall); `min_coverage` the share of the
    questions that must be scored, for both. The ceilings, None for none: `max_context_tokens` per
    question as served, `max_reindex_cost` of embedding all of it anew, `max_storage_cost` per
    month; money in the currency of the prices. `retain` is how many strategies that were live
    before keep their index, whatever is retired or cleaned.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    min_difference: float = Field(default=0.0, ge=0)
    min_coverage: float = Field(default=0.95, gt=0, le=1)
    max_context_tokens: float | None = Field(default=None, gt=0)
    max_reindex_cost: float | None = Field(default=None, ge=0)
    max_storage_cost: float | None = Field(default=None, ge=0)
    retain: int = Field(default=2, ge=1, le=100)


NO_LIMITS = PromotionSettings()
"""Only the verdict counts."""


@dataclass(frozen=True)
class Evidence:
    """What is known of a strategy against the live one.

    `verdict` is the word of the stored comparison, `first` where nothing is live yet. `gain` is
    the end of the interval of the difference that is worse for the strategy, counted as better
    where positive. None is a number that is not known.
    """

    verdict: str
    metric: str | None = None
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    confidence: float | None = None
    gain: float | None = None
    n_questions: int | None = None
    coverage: float | None = None
    live_coverage: float | None = None
    context_tokens: float | None = None
    reindex_cost: Money | None = None
    storage_cost: Money | None = None

    def __str__(self) -> str:
        if self.ci_low is None or self.ci_high is None or self.difference is None:
            return f"({self.n_questions} questions)" if self.n_questions is not None else ""
        low, high = self.ci_low, self.ci_high
        return f"({self.metric} {self.difference:+.3f} [{low:+.3f}, {high:+.3f}])"


def refusals(evidence: Evidence, settings: PromotionSettings) -> list[str]:
    """Why the gate does not let a strategy through, a reason each; empty if it does.

    >>> refusals(Evidence("better", "recall@5", 0.03, 0.01, 0.05, 0.95, 0.01, 80, 1.0, 1.0),
    ...          PromotionSettings(min_difference=0.02))
    ['better, but recall@5 by +0.010 at least, and +0.020 are asked for']
    """
    reasons = []
    if evidence.verdict != "first":
        reasons += _by_comparison(evidence, settings)
    for what, value, most in (
        ("context tokens per question", evidence.context_tokens, settings.max_context_tokens),
        ("the cost of embedding it anew", evidence.reindex_cost, settings.max_reindex_cost),
        ("the cost of storing it a month", evidence.storage_cost, settings.max_storage_cost),
    ):
        if most is None:
            continue
        amount = value.amount if isinstance(value, Money) else value
        if amount is None:
            reasons.append(f"{what} is not known, and {most:g} is the most allowed")
        elif amount > most:
            reasons.append(f"{what}: {amount:,.6g}, and {most:g} is the most allowed")
    return reasons


def _by_comparison(evidence: Evidence, settings: PromotionSettings) -> list[str]:
    if evidence.verdict != "better":
        return [f"{evidence.verdict} {evidence}".rstrip()]
    reasons = []
    if evidence.gain is None or evidence.gain < settings.min_difference:
        least = "an unknown amount" if evidence.gain is None else f"{evidence.gain:+.3f} at least"
        reasons.append(
            f"better, but {evidence.metric} by {least}, and {settings.min_difference:+.3f} are "
            "asked for"
        )
    for whose, coverage in (("", evidence.coverage), ("live ", evidence.live_coverage)):
        if coverage is None or coverage < settings.min_coverage:
            shown = "an unknown share" if coverage is None else f"{coverage:.0%}"
            reasons.append(
                f"{shown} of the {whose}strategy's questions are scored, "
                f"{settings.min_coverage:.0%} are asked for"
            )
    return reasons


def unsound_cells(workspace: Workspace, chunker_version: str, shards: Sequence[str]) -> list[str]:
    """Partitions of a chunker version whose last build failed a blocking check."""
    return [
        f"{asset} of {key}"
        for asset in ("chunk_sets", "chunk_embeddings")
        for key in (cell(chunker_version, shard) for shard in shards)
        if workspace.stamps.read(asset, key) == UNSOUND
    ]
