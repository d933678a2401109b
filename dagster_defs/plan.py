"""`python -m dagster_defs.plan`: what a build would do and cost, before anything is spent.

The stages that cost nothing (list, parse, chunk, locate quotes) are really run, into a folder that
is thrown away and shows what the workspace holds beneath; so their numbers are exact, and the
workspace is only read. What a paid model would do is counted, or estimated and marked as that.
"""

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl
from rich import box
from rich.console import Console
from rich.table import Table

from chunking_assets import config as configuration
from chunking_assets.build_log import BUILDS, BUILDS_SCHEMA
from chunking_assets.chunk_embeddings.preview import CountedModels, Preview, Previewing
from chunking_assets.chunk_embeddings.version import IndexVersion
from chunking_assets.chunk_sets.build import CHUNKS, ChunkSetUpdate, cell, update_chunk_sets
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.config import Config
from chunking_assets.cost_ledger import COSTS, COSTS_SCHEMA
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.errors import CorpusError, DeletionRefused
from chunking_assets.live_index.retire import undeclared_shards
from chunking_assets.parsed_elements.build import update_documents
from chunking_assets.parsed_elements.parse import READABLE
from chunking_assets.parsed_elements.reuse import DOCUMENTS, ParsedBefore
from chunking_assets.prices import Money
from chunking_assets.workspace import WHOLE, Workspace
from chunking_assets.workspace_overlay import Overlay
from dagster_defs.inputs import is_out_of_date, is_unsound, wanted
from evals.gold_questions.build import update_gold_questions
from evals.ragas_scores.preview import planned_calls
from evals.ragas_scores.score import ANSWER

LEAST_WIDTH = 120


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing a build would do.

    `what` is the shard, chunker version, index version or strategy; `model` the one that would be
    asked, if any. `chunks` are those made, or the distinct texts to embed; `calls` the requests to
    a chat model. None is a number nobody knows, or that means nothing here; `minutes` are from past
    runs. Of the tokens, `tokens_by_jobs` are taken to go by a batch API, at its price; `pending`
    are further texts that are in its jobs already, and not paid for again.
    `is_estimate` says that documents, chunks, calls or tokens may turn out otherwise.
    """

    stage: str
    what: str
    model: str | None = None
    documents: int | None = None
    chunks: int | None = None
    calls: int | None = None
    tokens: int | None = None
    tokens_by_jobs: int = 0
    pending: int = 0
    cost: Money | None = None
    minutes: float | None = None
    is_estimate: bool = False


@dataclass(frozen=True)
class Plan:
    """The steps of a build in order, and what else a person should know before it."""

    steps: Sequence[Step] = ()
    remarks: Sequence[str] = ()

    def total(self, stage: str, number: str) -> int | None:
        """The sum of a number over a stage, 0 without a step; None if one of them is not known."""
        values = [getattr(step, number) for step in self.steps if step.stage == stage]
        return None if None in values else sum(values)

    @property
    def cost(self) -> list[Money] | None:
        """What all of it costs, an amount per currency; None if any part is not known."""
        asked = [step.cost for step in self.steps if step.model is not None]
        known = [cost for cost in asked if cost is not None]
        if len(known) < len(asked):
            return None
        return [
            Money(sum(m.amount for m in known if m.currency == currency), currency)
            for currency in sorted({m.currency for m in known})
        ]

    @property
    def minutes(self) -> float | None:
        """What the steps take one after the other; None if that of any is not known."""
        values = [step.minutes for step in self.steps]
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    def __str__(self) -> str:
        """One sentence."""
        if not self.steps:
            return "Nothing to do: 0 parsed, 0 chunked, 0 embedded, 0 judged; nothing to pay."
        stages = (
            ("parse", "documents", "documents to parse"),
            ("chunk", "chunks", "chunks to make"),
            ("embed", "chunks", "texts to embed"),
        )
        numbers = [f"{_number(self.total(stage, n))} {words}" for stage, n, words in stages]
        calls = [self.total(stage, "calls") for stage in ("answer", "judge")]
        asked = None if None in calls else sum(c for c in calls if c is not None)
        return (
            f"{', '.join(numbers)}, {_number(asked)} calls to answer and judge; "
            f"cost {_money(self.cost)}; {_minutes(self.minutes)}."
        )


def plan(config: Config) -> Plan:
    """What `make build` would do now. Nothing is written to the workspace.

    Raises:
        CorpusError: a declaration was changed under its name, or a table is damaged.
    """
    configuration.check_recorded(config)
    with tempfile.TemporaryDirectory(prefix="corpus-plan-") as folder:
        return _Planning(config, Workspace(config.home), Path(folder)).run()


@dataclass
class _Planning:
    """The steps of `plan`, in the order data flows."""

    config: Config
    real: Workspace
    folder: Path
    remarks: list[str] = field(default_factory=list)
    reparsed: dict[str, int] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    """Chunker versions whose indexes will hold something else, so that what is found changes."""
    to_embed: list[Step] = field(default_factory=list)
    """What is known of embedding for chunkers that ask a model."""
    estimated: set[str] = field(default_factory=set)
    """Their chunk sets that are in `to_embed` as they will be, and not as they are stored."""

    def __post_init__(self) -> None:
        self.workspace = Overlay(self.real, self.folder)
        self.models = Models(self.config.embedding_models, self.workspace)
        self.past = _Past(self.real)
        self.previewing = Previewing(
            self.workspace, self.real.caches, self.models, self.config.embedding.batch_chunks
        )
        self.shards = list(self.config.shards())

    def run(self) -> Plan:
        steps = [*self.parsed()]
        ready = [s for s in self.shards if self.workspace.table(DOCUMENTS).manifest(s)]
        for version in self.config.chunker_versions.values():
            steps += self.chunked(version, ready)
        steps += self.to_embed
        for index in self.config.index_versions.values():
            steps += self.embedded(index, ready)
        if retired := undeclared_shards(self.workspace, self.config.shards()):
            self.remarks.append(f"No longer declared, would be dropped: {', '.join(retired)}.")
        if self.config.question_files() and len(ready) == len(self.shards):
            steps += self.judged()
        return Plan(tuple(steps), tuple(self.remarks))

    def parsed(self) -> Iterator[Step]:
        parsed_before = ParsedBefore(self.workspace)
        for shard, name in self.config.shards().items():
            try:
                update = update_documents(
                    self.workspace,
                    shard,
                    name,
                    self.config.collections[name],
                    self.config.root,
                    limits=self.config.parsing,
                    parsed_before=parsed_before,
                )
            except DeletionRefused as refused:
                self.remarks.append(str(refused))
                continue
            documents = len(update.changes.redo)
            if removed := len(update.changes.removed):
                self.remarks.append(f"{shard}: {removed} documents are gone and would be removed.")
            self.reparsed[shard] = documents
            if documents:
                minutes = self.past.of_parsing().minutes(documents)
                yield Step(stage="parse", what=shard, documents=documents, minutes=minutes)

    def chunked(self, version: ChunkerVersion, shards: Sequence[str]) -> Iterator[Step]:
        if version.chunker.asks_chat() or version.chunker.models_asked():
            yield from self.chunked_by_a_model(version, shards)
            return
        updates = [self.chunk(version, shard) for shard in shards]
        documents = sum(len(update.changes.redo) for update in updates)
        if documents:
            chunks = sum(update.chunks_redone for update in updates)
            yield Step(
                stage="chunk",
                what=version.name,
                documents=documents,
                chunks=chunks,
                minutes=self.past.of_chunks(version.name).minutes(chunks),
            )

    def chunk(self, version: ChunkerVersion, shard: str) -> ChunkSetUpdate:
        key = cell(version.name, shard)
        if is_unsound(self.workspace, "chunk_sets", key):
            self.workspace.table(CHUNKS).remove(key)
        (update,) = update_chunk_sets(
            self.workspace,
            shard,
            [version],
            self.models,
            workers=self.config.chunking.workers,
            batch_mb=self.config.chunking.batch_mb,
        )
        self.stamp("chunk_sets", key)
        return update

    def chunked_by_a_model(self, version: ChunkerVersion, shards: Sequence[str]) -> Iterator[Step]:
        """A strategy that asks a model is not run: that would be the cost to be told."""
        due = [
            shard
            for shard in shards
            if is_out_of_date(self.config, self.workspace, "chunk_sets", cell(version.name, shard))
        ]
        asks_chat = version.chunker.asks_chat()
        past = self.past.of_chunking(version.name)
        if asks_chat:
            documents = sum(self.due_documents(version, shard) for shard in due)
        else:
            documents = self.tried(version, due, past)
        if not documents:
            return
        self.changed.add(version.name)
        if not asks_chat:
            self.estimated |= {cell(version.name, shard) for shard in due}
        self.remarks.append(
            f"{version.name} asks a model where to cut, so its chunks are not known before; "
            + (
                "what embedding them costs is not in this plan."
                if asks_chat
                else "embedding them is estimated by all the text of the documents that changed."
            )
        )
        sent, received = past.times("sent", documents), past.times("received", documents)
        yield Step(
            stage="chunk",
            what=version.name,
            model=past.model if asks_chat else None,
            documents=documents,
            chunks=past.times("chunks", documents),
            calls=past.times("requests", documents) if asks_chat else None,
            tokens=sent if asks_chat else None,
            cost=self.config.prices.of_tokens(past.model, sent, received) if asks_chat else None,
            minutes=past.minutes(documents),
            is_estimate=True,
        )

    def tried(self, version: ChunkerVersion, shards: Sequence[str], past: "_Rate") -> int:
        """Chunk without vectors, in a place of its own: the documents, and in `to_embed` what their
        sentences cost and about what their chunks do, which hold the same text cut elsewhere."""
        with tempfile.TemporaryDirectory(prefix="corpus-plan-") as folder:
            trial = Overlay(self.workspace, Path(folder))
            models, documents = CountedModels(self.models), 0
            for shard in shards:
                key = cell(version.name, shard)
                if is_unsound(trial, "chunk_sets", key):
                    trial.table(CHUNKS).remove(key)
                (update,) = update_chunk_sets(trial, shard, [version], models)
                documents += len(update.changes.redo)
            for model, texts in models.asked.items():
                found = self.previewing.of_texts(model, texts)
                what, is_estimate = f"{version.name}: sentences", found.is_estimate
                self.to_embed.append(self.embedding(what, model, found, is_estimate=is_estimate))
            chunks = past.times("chunks", documents)
            previewing = replace(self.previewing, workspace=trial, needed={})
            for index in self.config.indexes_of(version.name):
                found = previewing.of(index, shards)
                if found.documents:
                    step = self.embedding(index.name, index.model_name, found, is_estimate=True)
                    minutes = self.past.of_embedding(index.model_name).minutes(chunks or 0)
                    self.to_embed.append(
                        replace(step, chunks=chunks, minutes=None if chunks is None else minutes)
                    )
        return documents

    def embedding(self, what: str, model: str, found: Preview, *, is_estimate: bool) -> Step:
        tokens, by_jobs = found.tokens, found.tokens_by_jobs
        return Step(
            stage="embed",
            what=what,
            model=model,
            documents=found.documents or None,
            chunks=found.texts,
            tokens=tokens,
            tokens_by_jobs=by_jobs,
            pending=found.pending,
            cost=self.config.prices.of_embedding(model, tokens, by_jobs),
            minutes=self.past.of_embedding(model).minutes(found.texts),
            is_estimate=is_estimate,
        )

    def due_documents(self, version: ChunkerVersion, shard: str) -> int:
        """All of a shard that was never chunked so, else those that were parsed anew."""
        if self.workspace.table(CHUNKS).manifest(cell(version.name, shard)) is not None:
            return self.reparsed.get(shard, 0)
        rows = self.workspace.table(DOCUMENTS).read(shard, ["status"])
        return 0 if rows is None else rows.filter(pl.col("status").is_in(READABLE)).height

    def embedded(self, index: IndexVersion, shards: Sequence[str]) -> Iterator[Step]:
        version = index.chunker_version.name
        stored = {s: self.workspace.table(CHUNKS).manifest(cell(version, s)) for s in shards}
        chunked = [s for s in shards if stored[s] and cell(version, s) not in self.estimated]
        found = self.previewing.of(index, chunked)
        if not (found.documents or found.removed):
            if version not in self.changed:
                for shard in chunked:
                    self.stamp("chunk_embeddings", cell(version, shard))
            return
        self.changed.add(version)
        if found.documents:
            yield self.embedding(index.name, index.model_name, found, is_estimate=found.is_estimate)

    def judged(self) -> Iterator[Step]:
        config, workspace = self.config, self.workspace
        update_gold_questions(workspace, config.question_files(), config.root, self.shards)
        self.stamp("gold_questions", WHOLE)
        for version in config.chunker_versions:
            is_new = version in self.changed or is_out_of_date(
                config, workspace, "retrieval_scores", version
            )
            if not is_new and not is_out_of_date(config, workspace, "ragas_scores", version):
                continue
            for strategy in config.strategies_of(version):
                for calls in planned_calls(
                    workspace, strategy.name, config.ragas, is_retrieved_anew=is_new
                ):
                    past = self.past.of_calls(calls.work, calls.model)
                    minutes = past.minutes(calls.calls)
                    yield Step(
                        stage="answer" if calls.work == ANSWER else "judge",
                        what=strategy.name
                        if calls.work == ANSWER
                        else f"{strategy.name}: {calls.work}",
                        model=calls.model,
                        calls=calls.calls,
                        tokens=calls.tokens_sent,
                        cost=config.prices.of_tokens(
                            calls.model, calls.tokens_sent, calls.tokens_received
                        ),
                        minutes=minutes and minutes / config.ragas.concurrency,
                        is_estimate=True,
                    )

    def stamp(self, asset: str, key: str) -> None:
        """Say that a partition is built from what there is, so that the stages after it see how
        far the change goes."""
        now = wanted(self.config, self.workspace, asset, key)
        if now is not None:
            self.workspace.stamps.write(asset, now, key)


@dataclass(frozen=True)
class _Rate:
    """What `units` of some work took before; nothing is known of it where they are 0."""

    units: int = 0
    seconds: float = 0.0
    model: str = ""
    sums: Mapping[str, int | None] = field(default_factory=dict)

    def minutes(self, units: int) -> float | None:
        return units * self.seconds / self.units / 60 if self.units else None

    def times(self, number: str, units: int) -> int | None:
        """How much of a number so many units take, as far as known."""
        total = self.sums.get(number)
        return None if not self.units or total is None else round(units * total / self.units)


class _Past:
    """What work took, from the build log and the cost ledger."""

    def __init__(self, workspace: Workspace) -> None:
        builds, costs = (workspace.table(t).read_all() for t in (BUILDS, COSTS))
        self.builds = BUILDS_SCHEMA.to_frame() if builds is None else builds
        self.costs = COSTS_SCHEMA.to_frame() if costs is None else costs

    def of_parsing(self) -> _Rate:
        return self._rate(pl.col("asset") == "parsed_elements", _DOCUMENTS)

    def of_chunking(self, version: str) -> _Rate:
        """Of one version, by document; with what a chat model was asked for it."""
        of_version = (pl.col("asset") == "chunk_sets") & pl.col("partition").str.starts_with(
            f"{version}|"
        )
        rate = self._rate(of_version, _DOCUMENTS)
        is_chat = pl.col("work") == "chunk"
        asked, made = self.costs.filter(of_version & is_chat), self.builds.filter(of_version)
        if asked.is_empty():
            return replace(rate, sums={"chunks": int(made["chunks_redone"].sum())})
        paid = asked.filter(pl.col("requests") > 0)
        return replace(
            rate,
            model=asked["model"][-1],
            sums={
                "chunks": int(made["chunks_redone"].sum()),
                "requests": int(paid["requests"].sum()),
                "sent": _sum(paid["tokens_sent"]),
                "received": _sum(paid["tokens_received"]),
            },
        )

    def of_chunks(self, version: str) -> _Rate:
        """By chunk; of all versions where this one was never built."""
        is_chunking = pl.col("asset") == "chunk_sets"
        own = is_chunking & pl.col("partition").str.starts_with(f"{version}|")
        rate = self._rate(own, pl.col("chunks_redone"))
        return rate if rate.units else self._rate(is_chunking, pl.col("chunks_redone"))

    def of_embedding(self, model: str) -> _Rate:
        """By vector computed."""
        of_model = pl.col("partition").str.contains(rf"\+{re.escape(model)}[+|]")
        is_new = pl.col("vectors_embedded") > 0
        return self._rate(
            (pl.col("asset") == "chunk_embeddings") & of_model & is_new, pl.col("vectors_embedded")
        )

    def of_calls(self, work: str, model: str) -> _Rate:
        """By request, one after the other."""
        rows = self.costs.filter((pl.col("work") == work) & (pl.col("model") == model))
        return _Rate(int(rows["requests"].sum()), float(rows["seconds"].sum()))

    def _rate(self, rows: pl.Expr, units: pl.Expr) -> _Rate:
        found = self.builds.filter(rows).select(units=units, seconds="seconds")
        return _Rate(int(found["units"].sum()), float(found["seconds"].sum()))


_DOCUMENTS = pl.col("documents_added") + pl.col("documents_changed")


def _sum(numbers: pl.Series) -> int | None:
    return None if numbers.null_count() else int(numbers.sum())


def markdown(found: Plan) -> str:
    """The plan as the UI shows it."""
    header = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"
    rows = [f"| {' | '.join(_cells(step))} |" for step in found.steps]
    return "\n".join([str(found), "", header, *rows, "", *(f"- {r}" for r in found.remarks)])


def print_plan(found: Plan, console: Console) -> None:
    """The plan for the terminal."""
    if found.steps:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for column in _COLUMNS:
            is_text = column in ("stage", "what", "model", "")
            table.add_column(column, justify="left" if is_text else "right", no_wrap=True)
        for step in found.steps:
            table.add_row(*_cells(step))
        console.print(table)
    for remark in found.remarks:
        console.print(remark, highlight=False, markup=False)
    console.print(str(found), highlight=False, markup=False)


_COLUMNS = (
    "stage", "what", "model", "documents", "chunks", "calls", "tokens", "cost", "minutes", "",
)  # fmt: skip


def _cells(step: Step) -> list[str]:
    return [
        step.stage,
        step.what,
        step.model or "",
        *(
            "" if value is None else _number(value)
            for value in (step.documents, step.chunks, step.calls, step.tokens)
        ),
        "" if step.model is None else "?" if step.cost is None else str(step.cost),
        "?" if step.minutes is None else f"{step.minutes:.1f}",
        ", ".join(_remarks(step)),
    ]


def _remarks(step: Step) -> Iterator[str]:
    if step.is_estimate:
        yield "estimate"
    if step.tokens_by_jobs:
        part = "" if step.tokens_by_jobs == step.tokens else f"{step.tokens_by_jobs:,} tokens by "
        yield f"{part}batch API"
    if step.pending:
        yield f"{step.pending:,} more in jobs"


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _money(costs: Sequence[Money] | None) -> str:
    if costs is None:
        return "unknown (no price)"
    return " + ".join(map(str, costs)) or "nothing"


def _minutes(minutes: float | None) -> str:
    return "time unknown" if minutes is None else f"about {minutes:.1f} minutes"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m dagster_defs.plan", description=__doc__)
    parser.parse_args()
    console = Console()
    console.width = max(console.width, LEAST_WIDTH)
    try:
        print_plan(plan(configuration.load()), console)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
