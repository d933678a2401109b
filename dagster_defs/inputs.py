"""What every partition would be built from now: the other half of its stamp.

One function an asset says which content keys its partition depends on; None says that an input is
not there yet, or not fit to be used. A stamp holds that digest as it was when the partition was
built, or says that what was built failed a blocking check.
"""

from collections.abc import Callable, Sequence

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, is_indexed, ledger
from chunking_assets.chunk_sets.build import CHUNKS, EXCLUDED_SPANS, cell
from chunking_assets.config import Config
from chunking_assets.cost_ledger import COSTS
from chunking_assets.keys import digest, file_sha
from chunking_assets.live_index.gate import UNSOUND
from chunking_assets.live_index.promotion import PROMOTIONS, live
from chunking_assets.live_index.retire import undeclared_shards
from chunking_assets.parsed_elements.build import DOCUMENTS, ELEMENTS
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.registry import MODELS, PARSERS, parser_fingerprint
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.workspace import WHOLE, Table, Workspace
from dagster_defs.partitions import cell_parts
from evals.database import definition, strategy_rows
from evals.gold_questions.build import GOLD_EVIDENCE, GOLD_QUESTIONS, scored_version
from evals.gold_questions.locate import VERSION as LOCATING
from evals.gold_questions.resolve import VERSION as RESOLVING
from evals.ragas_scores.build import (
    ANSWERS,
    JUDGE_AGREEMENT,
    RAGAS_SCORES,
    RAGAS_STATEMENTS,
    judge_identity,
    labels_identity,
)
from evals.retrieval_scores.build import RETRIEVAL_SCORES, measurement, scored_from
from evals.strategy_comparison.build import (
    QUESTION_CHANGES,
    STRATEGY_COMPARISONS,
    STRATEGY_SLICES,
    comparison_version,
    scored_strategies,
)
from evals.strategy_comparison.meeting_report import report_file, report_inputs

RAW_DOCUMENTS = "raw_documents"

BEGUN = "begun"
"""The stamp of a partition whose build has not ended: it is out of date."""


def is_out_of_date(config: Config, workspace: Workspace, asset: str, key: str = WHOLE) -> bool:
    """Whether a partition could be built now, and was not from these inputs or is gone since."""
    now = wanted(config, workspace, asset, key)
    if now is None:
        return False
    return now != workspace.stamps.read(asset, key) or not STORED[asset](config, workspace, key)


def is_unsound(workspace: Workspace, asset: str, key: str) -> bool:
    """Whether a blocking check failed on the last build of a partition."""
    return workspace.stamps.read(asset, key) == UNSOUND


def begin(config: Config, workspace: Workspace, asset: str, key: str = WHOLE) -> str | None:
    """What a partition is about to be built from, its stamp taken back until it is built.

    The last stamp would vouch for what this build leaves, should it be killed before it writes its
    own and its inputs return to what they were.
    """
    if workspace.stamps.read(asset, key) not in (None, UNSOUND):
        workspace.stamps.write(asset, BEGUN, key)
    return wanted(config, workspace, asset, key)


def wanted(config: Config, workspace: Workspace, asset: str, key: str = WHOLE) -> str | None:
    """The digest of the inputs a partition would be built from now; None if one is missing."""
    return WANTED[asset](config, workspace, key)


def out_of_date(config: Config, workspace: Workspace, asset: str, keys: Sequence[str]) -> list[str]:
    """Those of `keys` that are out of date, in their order."""
    return [key for key in keys if is_out_of_date(config, workspace, asset, key)]


def shards_to_retire(config: Config, workspace: Workspace) -> list[str]:
    """Shards no longer declared; none while a declared one is not in every index yet, so that a
    collection cut anew is served from its old shard until the new ones are complete."""
    partitions = [ledger(i, shard) for i in config.index_versions for shard in config.shards()]
    if _versions(workspace.table(EMBEDDED_CHUNKS), partitions) is None:
        return []
    return undeclared_shards(workspace, config.shards())


def parsed_from(raw_version: str, collection: Collection, limits: Limits) -> str:
    """The stamp of documents of this content version under today's parsers and limits."""
    used = {collection.read_by(media_type) for media_type in PARSERS if media_type not in MODELS}
    parsers = sorted((media_type, parser_fingerprint(media_type)) for media_type in used)
    told = [*collection.read_as.items()]
    return digest(
        "parsed_elements", raw_version, parsers, collection.max_bytes, told, limits.model_dump()
    )


def _parsed_elements(config: Config, workspace: Workspace, shard: str) -> str | None:
    raw, name = workspace.stamps.read(RAW_DOCUMENTS, shard), config.shards().get(shard)
    if raw is None or name is None:
        return None
    return parsed_from(raw, config.collections[name], config.parsing)


def _chunk_sets(config: Config, workspace: Workspace, key: str) -> str | None:
    version, shard = cell_parts(key)
    documents = workspace.table(DOCUMENTS).manifest(shard)
    if documents is None or version not in config.chunker_versions:
        return None
    return digest(
        "chunk_sets",
        documents.details["content_version"],
        config.chunker_versions[version].digest,
    )


def _chunk_embeddings(config: Config, workspace: Workspace, key: str) -> str | None:
    version, shard = cell_parts(key)
    chunks = workspace.table(CHUNKS).manifest(cell(version, shard))
    if chunks is None or is_unsound(workspace, "chunk_sets", key):
        return None
    models = sorted((i.name, i.model.declaration()) for i in config.indexes_of(version))
    return digest("chunk_embeddings", chunks.version, models)


def _gold_questions(config: Config, workspace: Workspace, key: str) -> str | None:
    manifests = [workspace.table(DOCUMENTS).manifest(shard) for shard in config.shards()]
    texts = [manifest.details["content_version"] for manifest in manifests if manifest]
    if len(texts) < len(manifests):
        return None
    files = [file_sha(file) for file in config.question_files()]
    return digest("gold_questions", LOCATING, RESOLVING, files, texts)


def _retrieval_scores(config: Config, workspace: Workspace, version: str) -> str | None:
    """None until questions and index are of the same texts: spans of others would be compared."""
    gold = workspace.table(GOLD_QUESTIONS).manifest()
    cells = [cell(version, shard) for shard in config.shards()]
    if gold is None or is_out_of_date(config, workspace, "gold_questions"):
        return None
    if any(out_of_date(config, workspace, a, cells) for a in ("chunk_sets", "chunk_embeddings")):
        return None
    partitions = [
        ledger(index.name, shard)
        for index in config.indexes_of(version)
        for shard in config.shards()
    ]
    indexed = _versions(workspace.table(EMBEDDED_CHUNKS), partitions)
    if indexed is None:
        return None
    strategies = sorted((s.name, s.digest) for s in config.strategies_of(version))
    measured = measurement(str(gold.details["golden_version"]))
    return digest("retrieval_scores", measured, strategies, scored_version(gold), indexed)


def _ragas_scores(config: Config, workspace: Workspace, version: str) -> str | None:
    strategies = [s.name for s in config.strategies_of(version)]
    retrieved = _versions(workspace.table(RETRIEVAL_SCORES), strategies)
    if retrieved is None:
        return None
    judge = judge_identity(config.ragas, config.root)
    return digest("ragas_scores", retrieved, judge, labels_identity(config.ragas, config.root))


def _strategy_comparison(config: Config, workspace: Workspace, key: str) -> str | None:
    """None while the baseline has no score on today's questions: nothing can be compared.

    Judged scores count as far as there are any; nothing waits for a judge.
    """
    gold = workspace.table(GOLD_QUESTIONS).manifest()
    if gold is None:
        return None
    scored = scored_strategies(
        workspace, list(config.strategies), str(gold.details["golden_version"])
    )
    comparable = [name for name, scores in scored.items() if not scores.changed]
    current = live(workspace)
    baseline = current.strategy if current else config.comparison.baseline
    if not comparable or (baseline in config.strategies and baseline not in comparable):
        return None
    return comparison_version(workspace, scored, config.comparison, baseline)


def _eval_tables(config: Config, workspace: Workspace, key: str) -> str | None:
    """Waits for the first comparison.

    What lies between documents and scores is published with them, and not on its own.
    """
    if workspace.table(STRATEGY_COMPARISONS).manifest() is None:
        return None
    tables = (
        DOCUMENTS,
        GOLD_QUESTIONS,
        RETRIEVAL_SCORES,
        RAGAS_SCORES,
        JUDGE_AGREEMENT,
        STRATEGY_COMPARISONS,
        PROMOTIONS,
        COSTS,
    )
    published = [_existing(workspace.table(t), workspace.table(t).partitions()) for t in tables]
    strategies = strategy_rows(config.strategies.values()).write_json()
    prices = [entry.model_dump(mode="json") for entry in config.prices.entries]
    return digest("eval_tables", definition(), published, strategies, prices)


def _report(config: Config, workspace: Workspace, key: str) -> str | None:
    """Waits for the comparison of the scores there are: the page shows both side by side."""
    if is_out_of_date(config, workspace, "strategy_comparison"):
        return None
    return report_inputs(workspace)


def _versions(table: Table, partitions: list[str]) -> list[tuple[str, str]] | None:
    """The content version of each partition; None if one was never written."""
    existing = _existing(table, partitions)
    return existing if len(existing) == len(partitions) else None


def _existing(table: Table, partitions: list[str]) -> list[tuple[str, str]]:
    manifests = [(p, table.manifest(p)) for p in partitions]
    return [(p, m.version) for p, m in manifests if m is not None]


WANTED: dict[str, Callable[[Config, Workspace, str], str | None]] = {
    "parsed_elements": _parsed_elements,
    "chunk_sets": _chunk_sets,
    "chunk_embeddings": _chunk_embeddings,
    "gold_questions": _gold_questions,
    "retrieval_scores": _retrieval_scores,
    "ragas_scores": _ragas_scores,
    "strategy_comparison": _strategy_comparison,
    "eval_tables": _eval_tables,
    "report": _report,
}


def _chunked(config: Config, workspace: Workspace, key: str) -> bool:
    is_clean = config.chunker_versions[cell_parts(key)[0]].chunker.clean is not None
    return _of_one_run(workspace, (CHUNKS, EXCLUDED_SPANS) if is_clean else (CHUNKS,), key)


def _indexed(config: Config, workspace: Workspace, key: str) -> bool:
    version, shard = cell_parts(key)
    return all(is_indexed(workspace, i.name, shard) for i in config.indexes_of(version))


def _scored(config: Config, workspace: Workspace, version: str) -> bool:
    return all(scored_from(workspace, s.name) for s in config.strategies_of(version))


def _judged(config: Config, workspace: Workspace, version: str) -> bool:
    tables = (ANSWERS, RAGAS_SCORES, RAGAS_STATEMENTS)
    return all(_of_one_run(workspace, tables, s.name) for s in config.strategies_of(version))


def _of_one_run(workspace: Workspace, tables: Sequence[str], partition: str = WHOLE) -> bool:
    """Whether all these tables are there, with content that belongs together."""
    manifests = [workspace.table(table).manifest(partition) for table in tables]
    return None not in manifests and len({m.version for m in manifests if m}) == 1


STORED: dict[str, Callable[[Config, Workspace, str], bool]] = {
    "parsed_elements": lambda c, workspace, key: _of_one_run(workspace, (DOCUMENTS, ELEMENTS), key),
    "chunk_sets": _chunked,
    "chunk_embeddings": _indexed,
    "gold_questions": lambda c, workspace, key: _of_one_run(
        workspace, (GOLD_QUESTIONS, GOLD_EVIDENCE)
    ),
    "retrieval_scores": _scored,
    "ragas_scores": _judged,
    "strategy_comparison": lambda c, workspace, key: _of_one_run(
        workspace, (STRATEGY_COMPARISONS, QUESTION_CHANGES, STRATEGY_SLICES)
    ),
    "eval_tables": lambda c, workspace, key: workspace.eval_database.exists(),
    "report": lambda c, workspace, key: report_file(workspace).exists(),
}
"""Whether what a stamp vouches for is still there: a folder may be removed to have it rebuilt."""
