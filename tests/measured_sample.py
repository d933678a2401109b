"""A part of the sample corpus, measured by the default model and published for analysts.

Release notes and handbook, without its longest page, under two chunker versions: what is embedded
in a dozen CPU seconds. Answers copy sentences and nothing is judged: there is no endpoint.
"""

from pathlib import Path
from typing import Any

import yaml
from measured_corpus import MeasuredCorpus

from chunking_assets.build_log import record_build
from chunking_assets.chunk_sets.build import cell
from chunking_assets.embedding_models.model import Embedder
from chunking_assets.live_index.promotion import promote
from chunking_assets.raw_documents.changes import ChangeSet
from evals.database import index_rows, publish, strategy_rows
from evals.ragas_scores.build import update_ragas_scores

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_corpus"
LONGEST = "ledger-service.md"
COLLECTIONS = {
    "handbook": {"path": str(SAMPLE / "handbook"), "exclude": [LONGEST]},
    "releases": {"path": str(SAMPLE / "releases")},
}
STRATEGIES = (
    "recursive-400-vector", "recursive-400-bm25", "recursive-400-hybrid", "heading-400-hybrid",
)  # fmt: skip
FIRST, SECOND = "recursive-400-vector", "heading-400-hybrid"
"""What is promoted, one after the other."""


def write_sample(root: Path) -> Path:
    """corpus.yaml of the repository cut down to the part, with the questions about the part."""
    whole = yaml.safe_load((ROOT / "corpus.yaml").read_text(encoding="utf-8"))
    strategies = {name: whole["strategies"][name] for name in STRATEGIES}
    part = {
        **whole,
        "workspace": ".corpus",
        "collections": COLLECTIONS,
        "chunkers": {s["chunker"]: whole["chunkers"][s["chunker"]] for s in strategies.values()},
        "strategies": strategies,
        "questions": ["questions.yaml"],
        "ragas": {"answerer": "extractive"},
    }
    file = SAMPLE / "questions" / "engineering.yaml"
    questions = yaml.safe_load(file.read_text(encoding="utf-8"))["questions"]
    asked = {"questions": [question for question in questions if _is_about_it(question)]}
    (root / "questions.yaml").write_text(yaml.safe_dump(asked), encoding="utf-8")
    configuration = root / "corpus.yaml"
    configuration.write_text(yaml.safe_dump(part), encoding="utf-8")
    return configuration


def _is_about_it(question: dict[str, Any]) -> bool:
    """Whether its evidence is in the part; without evidence it is about anything."""
    quoted = [evidence["doc_id"].split("/", 1) for evidence in question.get("evidence", [])]
    return all(name in COLLECTIONS and path != LONGEST for name, path in quoted)


class MeasuredSample(MeasuredCorpus):
    def __init__(self, root: Path, embedder: Embedder) -> None:
        super().__init__(write_sample(root))
        self.embedder = embedder  # type: ignore[assignment]

    def build(self) -> Path:
        """Index, score, promote two strategies one after the other; the published database."""
        self._index()
        self.resolve()
        for strategy in self.config.strategies:
            self.score(strategy)
            update_ragas_scores(self.workspace, strategy, self.config.ragas, self.config.root)
        for strategy in (FIRST, SECOND):
            promote(
                self.workspace,
                self.config.strategies[strategy],
                list(self.config.shards()),
                reason="the best so far",
                force=True,
            )
            self.compare()
        dimensions = {
            "strategies": strategy_rows(self.config.strategies.values()),
            "declared_indexes": index_rows(self.workspace, self.config.index_versions.values()),
        }
        return publish(self.workspace, dimensions).path

    def _index(self) -> None:
        """The stages with their log, as a run of each would keep it."""
        for d in self.parse():
            self._log("parsed_elements", d.shard, d.changes, rows=d.rows)
        for c in self.chunk():
            counts = {"rows": c.chunks, "chunks_redone": c.chunks_redone}
            self._log("chunk_sets", cell(c.chunker_version, c.shard), c.changes, **counts)
        for e in self.embed():
            version = e.index_version.partition("+")[0]
            counts = {
                "rows": e.chunks,
                "vectors_embedded": e.vectors_embedded,
                "vectors_reused": e.vectors_reused,
                "tokens_embedded": e.tokens_embedded,
            }
            self._log("chunk_embeddings", cell(version, e.shard), e.changes, **counts)

    def _log(self, asset: str, partition: str, changes: ChangeSet, **counts: int) -> None:
        documents = {
            "documents_added": len(changes.added),
            "documents_changed": len(changes.changed),
            "documents_removed": len(changes.removed),
            "documents_unchanged": len(changes.unchanged),
        }
        record_build(
            self.workspace, asset, partition, f"run of {asset}", 1.0, {**documents, **counts}
        )
