"""Jobs: plan a build, promote, roll back, evaluate everything, drop what is no longer declared."""

import json
from typing import Any

import dagster as dg

from chunking_assets.live_index.promotion import rollback
from chunking_assets.live_index.retire import retire_shards
from dagster_defs.inputs import shards_to_retire
from dagster_defs.plan import markdown, plan
from dagster_defs.promotion import promote_declared
from dagster_defs.resources import Corpus
from dagster_defs.upkeep import forget_partitions

SCORE_AGAIN = {"ops": {"retrieval_scores": {"config": {"again": True}}}}

evaluate_everything = dg.define_asset_job(
    "evaluate_everything",
    config=SCORE_AGAIN,
    selection=dg.AssetSelection.assets("retrieval_scores", "ragas_scores"),
    description="Score every strategy again, and judge again what failed to be judged.",
)


class PromoteConfig(dg.Config):
    """`strategy`: a name of corpus.yaml; `force` overrides the verdict and is recorded."""

    strategy: str
    reason: str = ""
    force: bool = False


class RollBackConfig(dg.Config):
    """`reason` is kept with the event."""

    reason: str = ""


@dg.op(description="Make a strategy live if the gate lets it through.")
def promote_strategy(context: dg.OpExecutionContext, config: PromoteConfig, corpus: Corpus) -> None:
    event = promote_declared(
        corpus.config,
        corpus.workspace,
        config.strategy,
        reason=config.reason,
        force=config.force,
    )
    _tell(context, event)


@dg.op(description="Make live what was live before the last promotion.")
def roll_back_promotion(
    context: dg.OpExecutionContext, config: RollBackConfig, corpus: Corpus
) -> None:
    _tell(context, rollback(corpus.workspace, corpus.config.strategies, reason=config.reason))


@dg.job(name="promote", description="Promote a strategy to the live index.")
def promote_job() -> None:
    promote_strategy()


@dg.job(name="roll_back", description="Return the live index to what it was before.")
def roll_back_job() -> None:
    roll_back_promotion()


@dg.op(description="Say what a build would do and cost; nothing is written.")
def plan_build(context: dg.OpExecutionContext, corpus: Corpus) -> None:
    found = plan(corpus.config)
    cost = found.cost
    numbers = {
        f"{name}_to_{stage}": found.total(stage, name)
        for stage, name in (("parse", "documents"), ("chunk", "chunks"), ("embed", "chunks"))
    }
    numbers |= {f"calls_to_{stage}": found.total(stage, "calls") for stage in ("answer", "judge")}
    numbers["tokens_to_embed"] = found.total("embed", "tokens")
    context.add_output_metadata(
        {
            "plan": dg.MetadataValue.md(markdown(found)),
            **{name: "unknown" if value is None else value for name, value in numbers.items()},
            "cost": "unknown" if cost is None else " + ".join(map(str, cost)) or "nothing",
            "minutes": "unknown" if found.minutes is None else found.minutes,
        }
    )
    context.log.info(str(found))


@dg.job(name="plan", description="What a build would parse, chunk, embed and judge, and its cost.")
def plan_job() -> None:
    plan_build()


@dg.op(description="Drop what the stores hold of shards that corpus.yaml no longer declares.")
def retire_undeclared_shards(context: dg.OpExecutionContext, corpus: Corpus) -> None:
    shards = shards_to_retire(corpus.config, corpus.workspace)
    retire_shards(corpus.workspace, shards)
    forget_partitions(context.instance, corpus.config, corpus.workspace)
    context.log.info(f"retired: {', '.join(shards) or 'nothing'}")


@dg.job(name="retire_shards", description="Forget collections taken out of corpus.yaml.")
def retire_job() -> None:
    retire_undeclared_shards()


def live_event(event: dict[str, Any]) -> dg.AssetMaterialization:
    """The event as the live_index asset shows it."""
    shown = ("action", "strategy", "previous", "verdict", "reason", "forced", "by")
    numbers = json.loads(event["numbers"] or "{}")
    overridden = "\n".join(f"- {reason}" for reason in event["overridden"])
    return dg.AssetMaterialization(
        "live_index",
        metadata={
            **{key: event[key] for key in shown if event[key] is not None},
            **({"numbers": dg.MetadataValue.json(numbers)} if numbers else {}),
            **({"overridden": dg.MetadataValue.md(overridden)} if overridden else {}),
        },
        tags={"dagster/data_version": event["event_id"]},
    )


def _tell(context: dg.OpExecutionContext, event: dict[str, Any]) -> None:
    context.log_event(live_event(event))
    context.log.info(f"live: {event['strategy']} (was {event['previous'] or 'nothing'})")
