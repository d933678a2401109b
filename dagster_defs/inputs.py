"""What every partition would be built from now: the other half of its stamp.

One function an asset says which content keys its partition depends on; None says that an input is
not there yet, or not fit to be used. A stamp holds that digest as it was when the partition was
built, or says that what was built failed a blocking check.
"""

from collections.abc import Callable, Sequence

from chunking_assets.chunk_embeddings.build import EMBEDDED_CHUNKS, is_indexed, ledger
from chunking_assets.chunk_sets.build import CHUNKS, cell
from chunking_assets.config import Config
from chunking_assets.keys import digest, file_sha
from chunking_assets.live_index.promotion import PROMOTIONS, live
from chunking_assets.live_index.retire import undeclared_shards
from chunking_assets.parsed_elements.build import DOCUMENTS
from chunking_assets.parsed_elements.registry import PARSERS, parser_fingerprint
from chunking_assets.workspace import WHOLE, Table, Workspace
from dagster_defs.partitions import cell_parts
from evals.database import strategy_rows
from evals.gold_questions.build import GOLD_QUESTIONS
from evals.ragas_scores.build import RAGAS_SCORES, judge_identity
from evals.retrieval_scores.build import RETRIEVAL_SCORES
from evals.strategy_comparison.build import STRATEGY_COMPARISONS

RAW_DOCUMENTS = "raw_documents"
UNSOUND = "failed a blocking check"
"""The stamp of a partition nothing may be built upon; its next build starts from nothing."""


def is_out_of_date(config: Config, workspace: Workspace, asset: str, key: str = WHOLE) -> bool:
    """Whether a partition could be built now, and was not from these inputs or is gone since."""
    now = wanted(config, workspace, asset, key)
    if now is None:
        return False
    return now != workspace.stamps.read(asset, key) or not STORED[asset](config, workspace, key)


def is_unsound(workspace: Workspace, asset: str, key: str) -> bool:
    """Whether a blocking check failed on the last build of a partition."""
    return workspace.stamps.read(asset, key) == UNSOUND


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
    if chunks is None or is_unsound(workspace, "chunk_sets", key):
        return None
    models = sorted((i.name, i.model.declaration()) for i in config.indexes_of(version))
    return digest("chunk_embeddings", chunks.version, models)


def _gold_questions(config: Config, workspace: Workspace, key: str) -> str | None:
    manifests = [workspace.table(DOCUMENTS).manifest(shard) for shard in config.shards()]
    texts = [manifest.details["content_version"] for manifest in manifests if manifest]
    if len(texts) < len(manifests):
        return None
    return digest("gold_questions", [file_sha(f) for f in config.question_files()], texts)


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
    return digest("retrieval_scores", strategies, gold.version, indexed)


def _ragas_scores(config: Config, workspace: Workspace, version: str) -> str | None:
    strategies = [s.name for s in config.strategies_of(version)]
    retrieved = _versions(workspace.table(RETRIEVAL_SCORES), strategies)
    if retrieved is None:
        return None
    return digest("ragas_scores", retrieved, judge_identity(config.ragas))


def _strategy_comparison(config: Config, workspace: Workspace, key: str) -> str | None:
    """None while the baseline has no score on today's questions: nothing can be compared."""
    gold = workspace.table(GOLD_QUESTIONS).manifest()
    today = gold.details["golden_version"] if gold else None
    scores = workspace.table(RETRIEVAL_SCORES)
    scored = {
        name: manifest.version
        for name in config.strategies
        if (manifest := scores.manifest(name))
        and manifest.rows
        and manifest.details.get("golden_version") == today
    }
    current = live(workspace)
    baseline = current.strategy if current else config.comparison.baseline
    if not scored or (baseline in config.strategies and baseline not in scored):
        return None
    return digest(
        "strategy_comparison", scored, config.comparison.model_dump(mode="json"), baseline
    )


def _eval_tables(config: Config, workspace: Workspace, key: str) -> str | None:
    """Waits for the first comparison, unless there are no questions to compare on.

    What lies between documents and scores is published with them, and not on its own.
    """
    scores = workspace.table(RETRIEVAL_SCORES)
    manifests = [scores.manifest(name) for name in config.strategies]
    nothing_to_compare = all(m is not None and m.rows == 0 for m in manifests)
    if workspace.table(STRATEGY_COMPARISONS).manifest() is None and not nothing_to_compare:
        return None
    tables = (DOCUMENTS, RETRIEVAL_SCORES, RAGAS_SCORES, STRATEGY_COMPARISONS, PROMOTIONS)
    published = [_existing(workspace.table(t), workspace.table(t).partitions()) for t in tables]
    strategies = strategy_rows(config.strategies.values()).write_json()
    return digest("eval_tables", published, strategies)


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


def _indexed(config: Config, workspace: Workspace, key: str) -> bool:
    version, shard = cell_parts(key)
    return all(is_indexed(workspace, i.name, shard) for i in config.indexes_of(version))


def _scored_in(table: str) -> Callable[[Config, Workspace, str], bool]:
    def stored(config: Config, workspace: Workspace, version: str) -> bool:
        strategies = [s.name for s in config.strategies_of(version)]
        return _versions(workspace.table(table), strategies) is not None

    return stored


def _partition_of(table: str) -> Callable[[Config, Workspace, str], bool]:
    return lambda config, workspace, key: workspace.table(table).manifest(key) is not None


STORED: dict[str, Callable[[Config, Workspace, str], bool]] = {
    "parsed_elements": _partition_of(DOCUMENTS),
    "chunk_sets": _partition_of(CHUNKS),
    "chunk_embeddings": _indexed,
    "gold_questions": _partition_of(GOLD_QUESTIONS),
    "retrieval_scores": _scored_in(RETRIEVAL_SCORES),
    "ragas_scores": _scored_in(RAGAS_SCORES),
    "strategy_comparison": _partition_of(STRATEGY_COMPARISONS),
    "eval_tables": lambda config, workspace, key: workspace.eval_database.exists(),
}
"""Whether what a stamp vouches for is still there: a folder may be removed to have it rebuilt."""
