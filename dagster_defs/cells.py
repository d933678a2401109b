"""Results of one run over many partitions: an exact version, metadata and fate for each.

Dagster stamps one data version on all partitions of a run, and one failure on all of them
(dagster issues 18649, 34013). Here each partition is stated again with its own version, and a
failing one fails alone.
"""

import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import dagster as dg

from chunking_assets.keys import digest
from chunking_assets.storage import Conflict, StorageUnavailable
from dagster_defs.progress import Log

DATA_VERSION = "dagster/data_version"
USER_PROVIDED = "dagster/data_version_is_user_provided"
PROVENANCE = ("dagster/input_", "dagster/code_version")


@dataclass(frozen=True)
class Built:
    """A partition that is done: the version of its content, and what people look at."""

    version: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


Outcome = Built | Exception


class Run(Protocol):
    """What a build knows of the run it is part of; an asset's context is one."""

    @property
    def run_id(self) -> str: ...

    @property
    def log(self) -> Log: ...


SHOWN_DIGITS = 4
CONFLICTS = 2
"""How often a partition is built again, on top of what another machine wrote meanwhile."""

AWAY_SECONDS = (30, 120)
"""How long is waited before a step is tried again whose bucket could not be asked, each time: its
client tried several times before."""

P = ParamSpec("P")
R = TypeVar("R")

CONTENT = "content"
CHANGED = "changed"
AS_BEFORE = "as before, so nothing that is built from it is redone"
"""What a page says of an early cut-off: the build led to what was there."""


def attempt_each(keys: Iterable[str], build: Callable[[str], Built]) -> dict[str, Outcome]:
    """Build partition by partition; the failure of one is its own."""
    return {key: _attempt(key, build) for key in map(str, keys)}


def attempt_together(
    groups: Iterable[Sequence[str]], build: Callable[[Sequence[str]], Mapping[str, Built]]
) -> dict[str, Outcome]:
    """Build each group of partitions in one go; one by one if that fails, so that a fault stays
    with its own."""
    outcomes: dict[str, Outcome] = {}
    for keys in groups:
        try:
            outcomes |= build(keys)
        except Exception as error:
            if len(keys) == 1 and isinstance(error, Conflict):
                outcomes |= attempt_each(keys, lambda key: build([key])[key])
            elif len(keys) == 1:
                outcomes[keys[0]] = noted(error)
            else:
                outcomes |= attempt_together([[key] for key in keys], build)
    return outcomes


def _attempt(key: str, build: Callable[[str], Built], conflicts: int = CONFLICTS) -> Outcome:
    try:
        return build(key)
    except Exception as error:
        # No input moves for it, so no tick would do it again.
        if isinstance(error, Conflict) and conflicts > 0:
            return _attempt(key, build, conflicts - 1)
        return noted(error)


def noted(error: Exception) -> Exception:
    """The error with the end of its traceback as a note, to be shown with its partition."""
    error.add_note("".join(traceback.format_exception(error, limit=-6)))
    return error


def patient(
    build: Callable[Concatenate[dg.AssetExecutionContext, P], R],
) -> Callable[Concatenate[dg.AssetExecutionContext, P], R]:
    """The function of an asset, tried again after a while if the bucket cannot be asked, and for
    nothing else: no input moves for it, so no tick would."""

    @wraps(build)
    def attempt(context: dg.AssetExecutionContext, /, *args: P.args, **named: P.kwargs) -> R:
        with _patiently(context):
            return build(context, *args, **named)

    @wraps(build)
    def attempt_piece_by_piece(
        context: dg.AssetExecutionContext, /, *args: P.args, **named: P.kwargs
    ) -> Generator[Any, Any, None]:
        with _patiently(context):
            yield from cast(Iterable[Any], build(context, *args, **named))

    if isgeneratorfunction(build):
        return cast(Any, attempt_piece_by_piece)  # type: ignore[no-any-return]
    return attempt


@contextmanager
def _patiently(context: dg.AssetExecutionContext) -> Iterator[None]:
    try:
        yield
    except StorageUnavailable as error:
        _try_again_later(context, error)
        raise


def _try_again_later(context: dg.AssetExecutionContext, error: StorageUnavailable) -> None:
    """
    Raises:
        dg.RetryRequested: unless that was done often enough.
    """
    attempts = context.op_execution_context.retry_number
    if attempts < len(AWAY_SECONDS):
        context.log.warning(f"To be tried again in {AWAY_SECONDS[attempts]} s: {error}")
        raise dg.RetryRequested(len(AWAY_SECONDS), AWAY_SECONDS[attempts]) from error


def report(
    context: dg.AssetExecutionContext, outcomes: Mapping[str, Outcome]
) -> Iterator[dg.MaterializeResult[Any] | dg.AssetMaterialization]:
    """Tell Dagster what became of each partition of this run.

    Raises:
        dg.Failure: some partitions failed; the others are recorded as materialized.
        dg.RetryRequested: one of them because the bucket could not be asked.
    """
    built = _compared(context, {k: o for k, o in outcomes.items() if isinstance(o, Built)})
    failed = {key: o for key, o in outcomes.items() if isinstance(o, Exception)}
    if failed:
        for key, outcome in built.items():
            yield _statement(context, key, outcome, {})
        for error in failed.values():
            if isinstance(error, StorageUnavailable):
                for key, other in failed.items():
                    context.log.error(f"{key}: {other}")
                _try_again_later(context, error)
        raise dg.Failure(
            f"{len(failed)} of {len(outcomes)} partitions failed: "
            + "; ".join(f"{key}: {error}" for key, error in list(failed.items())[:5]),
            metadata={
                key: dg.MetadataValue.text(
                    "\n".join([str(error), *getattr(error, "__notes__", [])])
                )
                for key, error in failed.items()
            },
            allow_retries=False,
        )
    for key, outcome in built.items():
        context.add_asset_metadata(dict(outcome.metadata), partition_key=key)
    if len(built) == 1:
        yield dg.MaterializeResult(data_version=dg.DataVersion(next(iter(built.values())).version))
        return
    versions = {key: outcome.version for key, outcome in built.items()}
    yield dg.MaterializeResult(data_version=dg.DataVersion(digest(versions)))
    provenance = _provenance(context, next(iter(built)))
    for key, outcome in built.items():
        context.log_event(_statement(context, key, outcome, provenance))


def _compared(context: dg.AssetExecutionContext, built: Mapping[str, Built]) -> dict[str, Built]:
    """What was built, with a word on its page on what follows from it."""
    before = context.instance.event_log_storage.get_latest_tags_by_partition(
        context.asset_key,
        dg.DagsterEventType.ASSET_MATERIALIZATION,
        [DATA_VERSION],
        asset_partitions=list(built),
    )
    shown: dict[str, Built] = {}
    for key, outcome in built.items():
        version = before.get(key, {}).get(DATA_VERSION)
        content = "new" if version is None else AS_BEFORE if version == outcome.version else CHANGED
        shown[key] = replace(outcome, metadata={CONTENT: content, **_rounded(outcome.metadata)})
    return shown


def _rounded(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {k: round(v, SHOWN_DIGITS) if isinstance(v, float) else v for k, v in metadata.items()}


def _statement(
    context: dg.AssetExecutionContext, key: str, outcome: Built, provenance: Mapping[str, str]
) -> dg.AssetMaterialization:
    return dg.AssetMaterialization(
        context.asset_key,
        partition=key,
        metadata=dict(outcome.metadata),
        tags={**provenance, DATA_VERSION: outcome.version, USER_PROVIDED: "true"},
    )


def _provenance(context: dg.AssetExecutionContext, key: str) -> dict[str, str]:
    """The input versions Dagster stamped on this run, to be kept when a partition is restated."""
    records = context.instance.fetch_materializations(
        dg.AssetRecordsFilter(context.asset_key, asset_partitions=[key]), limit=1
    ).records
    stamped = records[0].asset_materialization.tags if records else {}
    return {tag: value for tag, value in (stamped or {}).items() if tag.startswith(PROVENANCE)}
