"""The code location of a small corpus of two shards, loaded anew for every test.

`dagster_defs` reads the configuration when it is imported, as a code server does, so each test
imports it for its own corpus.yaml, and what was imported before is put back afterwards.
"""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.automation_tick_evaluation_context import (
    build_run_requests_with_backfill_policies,
)
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.definitions.partitions.context import partition_loading_context
from small_corpus import CONFIGURATION, declared_place

from chunking_assets import config as configuration
from chunking_assets.workspace import Workspace

SHARDS = ("docs", "notes")
BUILT = (
    "parsed_elements", "chunk_sets", "chunk_embeddings", "gold_questions",
    "retrieval_scores", "ragas_scores", "strategy_comparison", "eval_tables",
    "report",
)  # fmt: skip
PACKAGE = "dagster_defs"


def paragraphs(name: str, count: int = 4) -> str:
    """A document of `count` chunks at a budget of 20 words."""
    return "\n\n".join(
        f"Paragraph {n} of {name} says one thing and then another about number {n} only here."
        for n in range(count)
    )


DOCUMENTS = {f"{shard}/{n}.md": paragraphs(f"{shard} {n}") for shard in SHARDS for n in range(3)}
QUESTIONS = {
    "questions": [
        {
            "id": f"{shard}-{n}",
            "question": f"What does paragraph {n} of {shard} {n} say?",
            "answer": "One thing and then another.",
            "language": "en",
            "evidence": [{"doc_id": f"{shard}/{n}.md", "quote": f"Paragraph {n} of {shard} {n}"}],
        }
        for shard in SHARDS
        for n in range(3)
    ]
}


class CorpusOnDagster:
    """A small corpus, its code location, and an instance to run it in."""

    def __init__(self, root: Path, instance: dg.DagsterInstance) -> None:
        self.root, self.instance = root, instance
        self.seen: str | None = None  # the cursor of watch_documents
        self.evaluated: Any = None  # the cursor of keep_index_current

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def declare(self, **changes: Any) -> Path:
        """Write corpus.yaml; `changes` replace sections."""
        collections = {shard: {"path": shard, "settle_seconds": 0} for shard in SHARDS}
        sections = {"collections": collections, "questions": ["questions.yaml"], **changes}
        return self.write(
            "corpus.yaml",
            yaml.safe_dump({**CONFIGURATION, **declared_place(self.root), **sections}),
        )

    def load(self) -> None:
        """Import the code location, as a code server does when it starts."""
        forget_code_location()
        self.config = configuration.load()
        self.workspace = Workspace(self.config.home)
        self.defs: dg.Definitions = import_module(f"{PACKAGE}.definitions").defs
        self.job = self.defs.resolve_implicit_global_asset_job_def()
        self.graph = self.defs.resolve_asset_graph()
        self.evaluated = None

    def module(self, name: str) -> Any:
        return import_module(f"{PACKAGE}.{name}")

    @property
    def resources(self) -> dict[str, Any]:
        return {"corpus": self.module("resources").Corpus(config_file=str(self.config.file))}

    def look(self) -> dg.SensorResult:
        """One tick of watch_documents, with what it reports recorded as the daemon would."""
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.seen, resources=self.resources
        ) as context:
            result: dg.SensorResult = self.module("sensors").watch_documents(context)
        for request in result.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions("corpus_shard", list(request.partition_keys))
        for event in result.asset_events:
            self.instance.report_runless_asset_event(event)
        self.seen = result.cursor
        return result

    def reported(self) -> list[str]:
        """The documents' shards that one look reports."""
        raw = dg.AssetKey("raw_documents")
        return [str(e.partition) for e in self.look().asset_events if e.asset_key == raw]

    def tick(self) -> dict[str, list[str]]:
        """One evaluation of keep_index_current: what it requests; nothing is started."""
        result = dg.evaluate_automation_conditions(
            defs=self.defs, instance=self.instance, cursor=self.evaluated
        )
        self.evaluated = result.cursor
        requested = {a: result.get_requested_partitions(dg.AssetKey(a)) for a in BUILT}
        return {a: sorted(p or "" for p in keys) for a, keys in requested.items() if keys}

    def requests(self, asset: str, *keys: str) -> list[dg.RunRequest]:
        """The runs that the daemon would start for partitions."""
        if keys in ((), ("",)):
            return [dg.RunRequest()]
        wanted = [AssetKeyPartitionKey(dg.AssetKey(asset), key) for key in keys]
        with partition_loading_context(dynamic_partitions_store=self.instance):
            return list(
                build_run_requests_with_backfill_policies(wanted, self.graph, self.instance)
            )

    def run(self, asset: str, *keys: str, also: tuple[str, ...] = ()) -> list[Any]:
        """Build partitions in as few runs as the daemon would; `also` more assets in each run."""
        return [
            self.job.execute_in_process(
                instance=self.instance,
                asset_selection=[dg.AssetKey(a) for a in (asset, *also)],
                partition_key=request.partition_key,
                tags=request.tags,
                run_config=self.module("materialize").QUIET,
                raise_on_error=False,
            )
            for request in self.requests(asset, *keys)
        ]

    def converge(self, ticks: int = 12) -> Counter[str]:
        """Look, evaluate and run until a tick requests nothing; `asset key` by times requested."""
        requested: Counter[str] = Counter()
        for _ in range(ticks):
            self.look()
            due = self.tick()
            if not due:
                return requested
            for asset, keys in due.items():
                requested.update(f"{asset} {key}".strip() for key in keys)
                self.run(asset, *keys)
        raise AssertionError(f"not idle after {ticks} ticks: {requested}")

    def converge_until(self, asset: str) -> None:
        """Look, and build what is out of date up to an asset, each tick as it comes."""
        self.look()
        for stage in BUILT[: BUILT.index(asset) + 1]:
            if due := self.tick().get(stage):
                self.run(stage, *due)

    def materializer(self) -> Any:
        return self.module("materialize").Materializer(self.config, self.instance)

    def materialize(self, until: str = BUILT[-1]) -> dict[str, int]:
        """One pass of `python -m dagster_defs.materialize`: how many partitions were due."""
        materializer = self.materializer()
        materializer.observe()
        stages = list(self.module("materialize").stages(self.config))[: BUILT.index(until) + 1]
        due = {stage.asset: materializer.build(stage) for stage in stages}
        assert materializer.failures == []
        return due

    def latest(self, asset: str, key: str | None = None) -> dg.AssetMaterialization:
        """The last materialization of a partition."""
        partitions = None if key is None else [key]
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=partitions), limit=1
        ).records
        assert records, f"{asset} {key} was never materialized"
        materialization = records[0].asset_materialization
        assert materialization is not None
        return materialization

    def events(self) -> int:
        """How many materializations the instance has recorded."""
        keys = self.graph.get_all_asset_keys()
        return sum(
            len(self.instance.fetch_materializations(key, limit=1000).records) for key in keys
        )


def forget_code_location() -> dict[str, Any]:
    """Take what was imported of it out of the interpreter; returns it."""
    names = [n for n in sys.modules if n == PACKAGE or n.startswith(f"{PACKAGE}.")]
    return {name: sys.modules.pop(name) for name in names}


@pytest.fixture
def corpus_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., CorpusOnDagster]]:
    """Makes and loads a corpus; `documents` and the sections of corpus.yaml may be given."""
    monkeypatch.setenv("CORPUS_CONFIG", str(tmp_path / "corpus.yaml"))
    for variable in ("CORPUS_HOME", "DAGSTER_HOME", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    before = forget_code_location()
    with dg.DagsterInstance.ephemeral() as instance:

        def make(documents: dict[str, str] = DOCUMENTS, **changes: Any) -> CorpusOnDagster:
            corpus = CorpusOnDagster(tmp_path, instance)
            for name, text in documents.items():
                corpus.write(name, text)
            corpus.write("questions.yaml", yaml.safe_dump(QUESTIONS))
            corpus.declare(**changes)
            corpus.load()
            return corpus

        yield make
    forget_code_location()
    sys.modules.update(before)


@pytest.fixture(name="paragraphs")
def _paragraphs() -> Callable[..., str]:
    return paragraphs


@pytest.fixture
def corpus(corpus_of: Callable[..., CorpusOnDagster]) -> CorpusOnDagster:
    return corpus_of()


@pytest.fixture(scope="session")
def first_builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the workspaces of first builds are kept, by the asset they were built up to."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "first_builds"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def built_until(corpus: CorpusOnDagster, first_builds: Path) -> Callable[[str], CorpusOnDagster]:
    """The corpus built up to an asset, by the first test of the session that asks for it.

    It begins with what was built of the assets before. The others have a copy of its workspace,
    and an instance that knows what was observed and nothing of the runs.
    """

    def build(asset: str) -> CorpusOnDagster:
        if corpus.workspace.store.is_shared:
            corpus.materialize(asset)
            return corpus
        kept = first_builds / asset
        with Workspace(first_builds).lock(asset):
            if not kept.exists():
                before = [first_builds / stage for stage in BUILT[: BUILT.index(asset)]]
                if begun := [folder for folder in before if folder.exists()]:
                    _copy(begun[-1], corpus.workspace.root)
                corpus.materialize(asset)
                _copy(corpus.workspace.root, first_builds / f"new {asset}")
                (first_builds / f"new {asset}").rename(kept)
                return corpus
        _copy(kept, corpus.workspace.root)
        corpus.materializer().observe()
        return corpus

    return build


def _copy(workspace: Path, to: Path) -> None:
    shutil.copytree(workspace, to, symlinks=True, dirs_exist_ok=True)
