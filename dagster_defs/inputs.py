"""What every partition would be built from now: the other half of its stamp.

One function an asset says which content keys its partition depends on; None says that an input is
not there yet. A stamp holds that digest as it was when the partition was built.
"""

from collections.abc import Callable, Sequence

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, ledger
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.config import Config
from chunking_assets.keys import digest, file_sha
from chunking_assets.live_index.promotion import live
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.parsed_elements.registry import PARSERS, parser_fingerprint
from chunking_assets.workspace import WHOLE, Table, Workspace
from dagster_defs.partitions import cell_parts
from evals.database import published_inputs, strategy_rows
from evals.gold_questions.build import GOLD_QUESTIONS
from evals.ragas_scores.build import judge_identity
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.build import STRATEGY_COMPARISONS

RAW_DOCUMENTS = "raw_documents"


def is_out_of_date(config: Config, workspace: Workspace, asset: str, key: str = WHOLE) -> bool:
    """Whether a partition could be built now from other inputs than it was built from."""
    now = wanted(config, workspace, asset, key)
    return now is not None and now != workspace.stamps.read(asset, key)


def wanted(config: Config, workspace: Workspace, asset: str, key: str = WHOLE) -> str | None:
    """The digest of the inputs a partition would be built from now; None if one is missing."""
    return WANTED[asset](config, workspace, key)


def out_of_date(config: Config, workspace: Workspace, asset: str, keys: Sequence[str]) -> list[str]:
    """Those of `keys` that are out of date, in their order."""
    return [key for key in keys if is_out_of_date(config, workspace, asset, key)]


def parsed_from(raw_version: str) -> str:
    """The stamp of documents of this content version under today's parsers."""
    parsers = sorted((media_type, parser_fingerprint(media_type)) for media_type in PARSERS)
    return digest("parsed_elements", raw_version, parsers)


def _parsed_elements(config: Config, workspace: Workspace, shard: str) -> str | None:
    raw = workspace.stamps.read(RAW_DOCUMENTS, shard)
    return None if raw is None or shard not in config.shards() else parsed_from(raw)


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
    if chunks is None:
        return None
    models = sorted((i.name, i.model.declaration()) for i in config.indexes_of(version))
    return digest("chunk_embeddings", chunks.version, models)


def _gold_questions(config: Config, workspace: Workspace, key: str) -> str | None:
    documents = _versions(workspace.table(DOCUMENTS), list(config.shards()))
    if documents is None:
        return None
    return digest("gold_questions", [file_sha(f) for f in config.question_files()], documents)


def _retrieval_scores(config: Config, workspace: Workspace, version: str) -> str | None:
    gold = workspace.table(GOLD_QUESTIONS).manifest()
    partitions = [
        ledger(index.name, shard)
        for index in config.indexes_of(version)
        for shard in config.shards()
    ]
    indexed = _versions(workspace.table(EMBEDDED_CHUNKS), partitions)
    if gold is None or indexed is None:
        return None
    strategies = sorted((s.name, s.digest) for s in config.strategies_of(version))
    return digest("retrieval_scores", strategies, gold.version, indexed)


def _ragas_scores(config: Config, workspace: Workspace, version: str) -> str | None:
    strategies = [s.name for s in config.strategies_of(version)]
    retrieved = _versions(workspace.table(RETRIEVAL_SCORES), strategies)
    if retrieved is None:
        return None
    return digest("ragas_scores", retrieved, judge_identity(config.ragas))


def _strategy_comparison(config: Config, workspace: Workspace, key: str) -> str | None:
    scored = _existing(workspace.table(RETRIEVAL_SCORES), list(config.strategies))
    if not scored:
        return None
    current = live(workspace)
    return digest(
        "strategy_comparison",
        scored,
        config.comparison.model_dump(mode="json"),
        current.strategy if current else None,
    )


def _eval_tables(config: Config, workspace: Workspace, key: str) -> str | None:
    if workspace.table(STRATEGY_COMPARISONS).manifest() is None:
        return None
    strategies = strategy_rows(config.strategies.values())
    return digest("eval_tables", published_inputs(workspace, {"strategies": strategies}))


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
}
