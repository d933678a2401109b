"""Asset checks, one evaluation a partition; blocking where a bad index would be served."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg
import polars as pl
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, ledger
from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.chunk_embeddings.reconcile import reconcile
from chunking_assets.chunk_sets.statistics import (
    ChunkSetStatistics,
    chunk_set_statistics,
    compared_with_previous,
)
from chunking_assets.chunk_sets.verify import verify_chunk_set
from chunking_assets.live_index.gate import UNSOUND
from chunking_assets.live_index.promotion import live
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.parsed_elements.health import parse_health
from chunking_assets.parsed_elements.parse import READABLE
from dagster_defs.freshness import collections_fresh
from dagster_defs.inputs import is_out_of_date
from dagster_defs.partitions import cell_parts, cells, chunker_versions, corpus_shards
from dagster_defs.resources import Corpus
from evals.coverage import NO_JUDGE, covered_by_metric
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS, lost_quotes
from evals.gold_questions.report import lost_passages
from evals.ragas_scores.build import RAGAS_SCORES
from evals.strategy_comparison.build import STRATEGY_COMPARISONS

LISTED = 20
MANY_UNREAD = 0.1
"""A share of documents without text that says something about the source, not about documents."""
MANY_DUPLICATES = 0.2
"""A share of equal chunks that a corpus rarely has without a cause: copies, or boilerplate."""
IN_LINE = (0.5, 2.0)
"""How many times as many chunks a new version makes of the same documents, unless it errs."""


@dataclass(frozen=True)
class Finding:
    """What a check found in one partition."""

    passed: bool
    metadata: Mapping[str, Any]
    severe: bool = False
    """Worth more than a warning, though nothing is blocked."""


def partition_check(
    name: str,
    asset: str,
    partitions_def: dg.PartitionsDefinition[Any],
    look: Callable[[Corpus, str], Finding],
    description: str,
    *,
    blocking: bool = False,
) -> dg.AssetChecksDefinition:
    """A check that looks at every partition of a run and says so for each.

    Dagster records one evaluation without a partition when a run covers a range, be it of one;
    those of its partitions are logged here, and the returned one blocks the step if any failed.
    A later run would not be blocked by that, so the partition is marked as unsound as well.
    """

    @dg.asset_check(
        name=name,
        asset=asset,
        partitions_def=partitions_def,
        blocking=blocking,
        description=description,
    )
    def check(context: dg.AssetCheckExecutionContext, corpus: Corpus) -> dg.AssetCheckResult:
        keys = [str(key) for key in context.partition_keys]
        findings = {key: look(corpus, key) for key in keys}
        failed = [key for key, finding in findings.items() if not finding.passed]
        severity = _severity(blocking, *findings.values())
        for key in failed if blocking else ():
            corpus.workspace.stamps.write(asset, UNSOUND, key)
        if context.op_execution_context.has_partition_key:
            metadata = dict(findings[keys[0]].metadata)
            return dg.AssetCheckResult(passed=not failed, severity=severity, metadata=metadata)
        for key, finding in findings.items():
            context.op_execution_context.log_event(
                dg.AssetCheckEvaluation(  # type: ignore[arg-type]  # recorded, if not annotated
                    asset_key=dg.AssetKey(asset),
                    check_name=name,
                    passed=finding.passed,
                    partition=key,
                    severity=_severity(blocking, finding),
                    blocking=blocking,
                    target_materialization_data=_target(context.instance, asset, key),
                    metadata={k: _value(v) for k, v in finding.metadata.items()},
                )
            )
        return dg.AssetCheckResult(
            passed=not failed,
            severity=severity,
            metadata={
                "failed": dg.MetadataValue.json(failed),
                **(findings[failed[0]].metadata if failed else {}),
            },
        )

    return check


def _severity(blocking: bool, *findings: Finding) -> dg.AssetCheckSeverity:
    severe = blocking or any(finding.severe for finding in findings)
    return dg.AssetCheckSeverity.ERROR if severe else dg.AssetCheckSeverity.WARN


def _value(value: object) -> dg.MetadataValue[Any]:
    if isinstance(value, dg.MetadataValue):
        return value
    if isinstance(value, int):
        return dg.MetadataValue.int(value)
    if isinstance(value, float):
        return dg.MetadataValue.float(value)
    return dg.MetadataValue.text(str(value))


def _target(
    instance: dg.DagsterInstance, asset: str, key: str
) -> AssetCheckEvaluationTargetMaterializationData | None:
    """The materialization looked at: an evaluation without one does not count as current."""
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[key]), limit=1
    ).records
    return (
        AssetCheckEvaluationTargetMaterializationData(
            storage_id=records[0].storage_id,
            run_id=records[0].run_id,
            timestamp=records[0].timestamp,
        )
        if records
        else None
    )


def _listed(ids: tuple[str, ...]) -> str:
    return ", ".join(ids[:LISTED]) + (" …" if len(ids) > LISTED else "") or "none"


def _documents_parsed(corpus: Corpus, shard: str) -> Finding:
    health = parse_health(corpus.workspace, [shard], LISTED)
    unread = health.without_text / max(health.documents, 1)
    shards = next(
        shards
        for name, collection in corpus.config.collections.items()
        if shard in (shards := collection.shards_of(name))
    )
    built = [s for s in shards if corpus.workspace.table(DOCUMENTS).manifest(s)]
    whole = parse_health(corpus.workspace, built, 0)
    return Finding(
        not health.without_text,
        {
            "documents": health.documents,
            "without_text": health.without_text,
            "statuses": _counted(health.statuses),
            "statuses_in_collection": _counted(whole.statuses),
            "worst": _table(health.worst),
        },
        severe=unread > MANY_UNREAD,
    )


def _counted(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {status}" for status, n in statuses.items()) or "none"


def _table(rows: pl.DataFrame) -> dg.TableMetadataValue:
    records = [dg.TableRecord(row) for row in rows.iter_rows(named=True)]
    columns = [dg.TableColumn(name) for name in rows.columns]
    return dg.MetadataValue.table(records, dg.TableSchema(columns))


def _spans_exact(corpus: Corpus, key: str) -> Finding:
    health = verify_chunk_set(corpus.workspace, *cell_parts(key))
    return Finding(
        not (health.inexact or health.uncovered or health.duplicates),
        {
            "chunks": health.chunks,
            "inexact": _listed(health.inexact),
            "documents_losing_text": _listed(health.uncovered),
            "duplicate_ids": _listed(health.duplicates),
            "over_budget": _listed(health.over_budget),
        },
    )


def _within_budget(corpus: Corpus, key: str) -> Finding:
    numbers = _numbers(corpus, key)
    return Finding(
        not numbers.beyond,
        {"chunks_beyond_budget": len(numbers.beyond), "chunk_ids": _listed(numbers.beyond)},
    )


def _few_duplicates(corpus: Corpus, key: str) -> Finding:
    numbers = _numbers(corpus, key)
    return Finding(
        numbers.duplicates <= MANY_DUPLICATES,
        {"share_of_duplicates": numbers.duplicates, "most": MANY_DUPLICATES},
    )


def _numbers(corpus: Corpus, key: str) -> ChunkSetStatistics:
    version, shard = cell_parts(key)
    declared = corpus.config.chunker_versions[version]
    numbers = chunk_set_statistics(corpus.workspace, declared, shard)
    assert numbers is not None
    return numbers


def _count_in_line(corpus: Corpus, key: str) -> Finding:
    compared = compared_with_previous(corpus.workspace, *cell_parts(key))
    if compared is None:
        return Finding(True, {"previous": "none"})
    least, most = IN_LINE
    return Finding(
        least <= compared.ratio <= most,
        {
            "previous": compared.previous,
            "documents_in_common": compared.documents,
            "chunks": compared.chunks,
            "chunks_before": compared.chunks_before,
            "ratio": compared.ratio,
        },
    )


def _reconciled(corpus: Corpus, key: str) -> Finding:
    version, shard = cell_parts(key)
    results = [reconcile(corpus.workspace, i, shard) for i in corpus.config.indexes_of(version)]

    def every(kind: str) -> tuple[str, ...]:
        return tuple(chunk_id for r in results for chunk_id in getattr(r.rows, kind))

    return Finding(
        all(r.agrees for r in results),
        {
            "rows": sum(r.rows.rows for r in results),
            "damage": "; ".join(d for r in results for d in r.damage) or "none",
            "misstated_documents": _listed(tuple(d for r in results for d in r.misstated)),
            "missing": _listed(every("missing")),
            "extra": _listed(every("extra")),
            "duplicate_ids": _listed(every("duplicates")),
            "altered": _listed(every("altered")),
            "unusable_vectors": _listed(every("unusable")),
            "unindexed_rows": sum(r.unindexed_rows for r in results),
        },
    )


def _documents_indexed(corpus: Corpus, key: str) -> Finding:
    """Documents against chunk set and ledgers; `_reconciled` looks at their chunks."""
    version, shard = cell_parts(key)
    workspace = corpus.workspace
    if any(
        is_out_of_date(corpus.config, workspace, asset, key)
        for asset in ("chunk_sets", "chunk_embeddings")
    ):
        return Finding(True, {"waits": "a document or chunk set is newer than the index"})
    documents = workspace.table(DOCUMENTS).read(shard, ["doc_id", "status"])
    assert documents is not None
    readable = {*documents.filter(pl.col("status").is_in(READABLE))["doc_id"]}
    ledgers = [
        workspace.table(EMBEDDED_CHUNKS).manifest(ledger(index.name, shard))
        for index in corpus.config.indexes_of(version)
    ]
    held = [{*stated.keys} if stated else set[str]() for stated in ledgers]
    missing = sorted({doc_id for doc_ids in held for doc_id in readable - doc_ids})
    extra = sorted({doc_id for doc_ids in held for doc_id in doc_ids - readable})
    return Finding(
        not (missing or extra),
        {
            "documents": len(readable),
            "missing": _listed(tuple(missing)),
            "no_longer_there": _listed(tuple(extra)),
        },
    )


def _rows_indexed(corpus: Corpus, key: str) -> Finding:
    unindexed = {
        index.name: LanceIndex(corpus.workspace, index.name).unindexed_rows()
        for index in corpus.config.indexes_of(cell_parts(key)[0])
    }
    return Finding(not any(unindexed.values()), {"unindexed_rows": sum(unindexed.values())})


def _within_model_limit(corpus: Corpus, key: str) -> Finding:
    version, shard = cell_parts(key)
    beyond: list[str] = []
    for index in corpus.config.indexes_of(version):
        rows = corpus.workspace.table(EMBEDDED_CHUNKS).read(ledger(index.name, shard))
        if rows is not None:
            beyond += rows.filter(pl.col("n_windows") > 1)["chunk_id"].to_list()
    return Finding(
        not beyond, {"chunks_beyond_limit": len(beyond), "chunk_ids": _listed(tuple(beyond))}
    )


def _gold_found(corpus: Corpus) -> Finding:
    questions = corpus.workspace.table(GOLD_QUESTIONS).read(columns=["question_id", "status"])
    assert questions is not None
    stale = questions.filter(pl.col("status") == "stale")["question_id"].to_list()
    evidence = corpus.workspace.table(GOLD_EVIDENCE).read()
    assert evidence is not None
    lost = lost_quotes(evidence.filter(pl.col("question_id").is_in(stale)))
    return Finding(
        not stale,
        {
            "questions": questions.height,
            "stale": len(stale),
            "which": _listed(tuple(stale)),
            "passages": dg.MetadataValue.md(lost_passages(lost)),
        },
    )


def _judged(corpus: Corpus, version: str) -> Finding:
    strategies = [s.name for s in corpus.config.strategies_of(version)]
    scores = corpus.workspace.table(RAGAS_SCORES).read_all(strategies, ["status", "error_kind"])
    if scores is None:  # of a version that no strategy uses
        return Finding(True, {})
    counts = dict(scores.group_by("status").len().iter_rows())
    return Finding(not counts.get("error"), counts)


def _coverage(corpus: Corpus, version: str) -> Finding:
    """As the view `score_coverage` counts; where there is no judge, nobody was asked."""
    columns = ["metric", "status", "error_kind", "value"]
    judged, asked, shares, passed = 0, 0, {}, True
    for strategy in corpus.config.strategies_of(version):
        scores = corpus.workspace.table(RAGAS_SCORES).read(strategy.name, columns)
        assert scores is not None
        nobody = {*scores.filter(pl.col("error_kind") == NO_JUDGE)["metric"]}
        for metric, found in covered_by_metric(scores).items():
            judged, asked = judged + found.n_scored, asked + found.n_total
            if found.coverage is not None:
                shares[f"coverage of {metric}, {strategy.name}"] = found.coverage
                passed &= found.is_enough or metric in nobody
    return Finding(passed, {"judged": judged, "asked": asked, **shares})


def _live_holds(corpus: Corpus) -> Finding:
    rows = corpus.workspace.table(STRATEGY_COMPARISONS).read()
    assert rows is not None
    by_verdict = {
        verdict: tuple(rows.filter(is_primary=True, verdict=verdict)["strategy"])
        for verdict in ("better", "worse")
    }
    current = live(corpus.workspace)
    return Finding(
        current is None or not by_verdict["better"],
        {
            "live": current.strategy if current else "none",
            "better_than_live": _listed(by_verdict["better"]),
            "worse_than_live": _listed(by_verdict["worse"]),
        },
    )


documents_parsed = partition_check(
    "documents_parsed",
    "parsed_elements",
    corpus_shards,
    _documents_parsed,
    "Every document of the shard has a canonical text, if only in part; counts by status, and the "
    "worst with their error and what to do.",
)
spans_exact = partition_check(
    "spans_exact",
    "chunk_sets",
    cells,
    _spans_exact,
    "Every chunk is the slice of the canonical text it says it is, ids are unique, and no "
    "character is lost.",
    blocking=True,
)
within_budget = partition_check(
    "within_budget",
    "chunk_sets",
    cells,
    _within_budget,
    "No chunk has more tokens than its version gives the language of its document; single "
    "characters that alone have more are marked, and allowed.",
)
few_duplicates = partition_check(
    "few_duplicates",
    "chunk_sets",
    cells,
    _few_duplicates,
    "At most a fifth of the chunks have a text that another chunk has too.",
)
count_in_line = partition_check(
    "count_in_line",
    "chunk_sets",
    cells,
    _count_in_line,
    "The version makes half to twice as many chunks of the same documents as the version of the "
    "same name before it. Passes where there is none.",
)
index_reconciled = partition_check(
    "index_reconciled",
    "chunk_embeddings",
    cells,
    _reconciled,
    "Chunk set, ledger and the rows readers are served hold the same chunks, every column and "
    "vector whole. An update compares them before it serves anything; the job `repair` heals.",
    blocking=True,
)
documents_indexed = partition_check(
    "documents_indexed",
    "chunk_embeddings",
    cells,
    _documents_indexed,
    "Every document with a text is in every index of the version, and no other is.",
    blocking=True,
)
rows_indexed = partition_check(
    "rows_indexed",
    "chunk_embeddings",
    cells,
    _rows_indexed,
    "Full text and filters cover every row of the tables; others are searched one by one.",
)
within_model_limit = partition_check(
    "within_model_limit",
    "chunk_embeddings",
    cells,
    _within_model_limit,
    "No chunk is longer than the model reads at once; longer ones are read in windows and named.",
)
judged_without_errors = partition_check(
    "judged_without_errors",
    "ragas_scores",
    chunker_versions,
    _judged,
    "No judgement failed. Skipped and not applicable rows are counted, not held against it.",
)

judge_coverage = partition_check(
    "judge_coverage",
    "ragas_scores",
    chunker_versions,
    _coverage,
    "At least 95 % of what applies is scored, by strategy and metric. Passes without a judge.",
)


@dg.asset_check(
    asset="strategy_comparison",
    description=(
        "No strategy is better than the live one by the metric that decides. Passes while none is "
        "live."
    ),
)
def live_holds(corpus: Corpus) -> dg.AssetCheckResult:
    finding = _live_holds(corpus)
    return dg.AssetCheckResult(
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=dict(finding.metadata),
    )


@dg.asset_check(
    asset="gold_questions",
    description="Every quote is still found in its document; stale questions are not scored.",
)
def gold_found(corpus: Corpus) -> dg.AssetCheckResult:
    finding = _gold_found(corpus)
    return dg.AssetCheckResult(
        passed=finding.passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=dict(finding.metadata),
    )


CHECKS = [
    documents_parsed,
    spans_exact,
    within_budget,
    few_duplicates,
    count_in_line,
    index_reconciled,
    documents_indexed,
    rows_indexed,
    within_model_limit,
    gold_found,
    judged_without_errors,
    judge_coverage,
    live_holds,
    collections_fresh,
]
