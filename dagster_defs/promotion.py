"""Promotion by name, as the terminal and the jobs ask for it: the gate with everything it needs.

A stored verdict that would do is looked at again by the gate of the measurement, which knows
whether it is of the index and the questions as they are now, and what else speaks against it.
"""

from collections.abc import Sequence
from typing import Any

from chunking_assets.config import Config
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import promote
from chunking_assets.workspace import Workspace
from evals.gold_questions.build import content_now
from evals.ragas_scores.build import judge_identity
from evals.strategy_comparison.gate import gate


def promote_declared(
    config: Config, workspace: Workspace, name: str, *, reason: str = "", force: bool = False
) -> dict[str, Any]:
    """Make the strategy of that name live if the gate lets it through; the recorded event.

    Raises:
        PromotionRefused: with what was found and the way to insist.
        CorpusError: no strategy of that name is declared.
    """
    strategies, shards = config.strategies, list(config.shards())
    if name not in strategies:
        raise CorpusError(f"unknown strategy {name!r}. Declared: {', '.join(strategies)}.")

    def doubts(live: str) -> Sequence[str]:
        if live not in strategies:
            return [f"the live {live} is not declared, so that its scores are not kept current"]
        found = gate(
            workspace,
            strategies,
            shards,
            config.comparison,
            name,
            live,
            asked_as=content_now(workspace, config.question_files(), config.root, shards),
            min_difference=config.promotion.min_difference,
            judged_as=judge_identity(config.ragas, config.root),
        )
        return [] if found.outcome == "pass" else [found.reason]

    return promote(
        workspace,
        strategies[name],
        shards,
        settings=config.promotion,
        prices=config.prices,
        batch_chunks=config.embedding.batch_chunks,
        doubts=doubts,
        reason=reason,
        force=force,
    )
