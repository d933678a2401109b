"""corpus.yaml, typed: every mistake is one error that names the file, the key and the cure.

This module knows the settings of every stage; no stage knows this module. Nothing here loads a
model or opens a store, so the Dagster code location and `make check` read it in milliseconds.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)

from chunking_assets.chunk_embeddings.build import BATCH_CHUNKS
from chunking_assets.chunk_embeddings.late import check_late
from chunking_assets.chunk_embeddings.version import FULL, IndexVersion, Precision
from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.language_budgets import measured_factors
from chunking_assets.chunk_sets.registry import chunker_class
from chunking_assets.chunk_sets.sizes import SizesChunker
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.embedding_models.model import EmbeddingModel
from chunking_assets.embedding_models.registry import model_class
from chunking_assets.errors import ConfigError, CorpusError
from chunking_assets.execution import ExecutionSettings
from chunking_assets.live_index.gate import PromotionSettings
from chunking_assets.live_index.maintenance import MaintenanceSettings
from chunking_assets.live_index.promotion import check_live
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.prices import Price, Prices
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.strategy import Strategy
from chunking_assets.storage import Bucket, Place, place_of
from chunking_assets.strict_yaml import UnreadableYaml, first_mistake, read_yaml
from chunking_assets.workspace import Workspace

CONFIG_VARIABLE = "CORPUS_CONFIG"
HOME_VARIABLE = "CORPUS_HOME"

SCORED = r"^(recall|precision|iou|hit|mrr|ndcg|context_tokens)@(5|10|500t|1000t|2000t|served)$"
"""What is scored, and where the ranking is cut: the metrics and cutoffs of the score tables."""

DECIDING = f"{SCORED}|^faithfulness$"
"""What may decide: what is scored, and the one judged metric that can be compared with people."""

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
VERSION_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}@[1-9][0-9]{0,5}")


class StrategySettings(BaseModel):
    """One entry of `strategies:`: the names of a chunker version, a model and a profile, and the
    `precision` its index stores vectors with."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    chunker: str
    model: str
    profile: str
    precision: Precision = FULL


class ChunkingSettings(BaseModel):
    """`chunking:`: what chunking may use of the machine. Changes nothing about the chunks.

    `workers` is the most processes at work (None: one a core); each holds about `batch_mb` million
    characters of documents at a time, or one document where it is longer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    workers: int | None = Field(default=None, ge=1, le=256)
    batch_mb: int = Field(default=2, ge=1, le=1024)


class EmbeddingSettings(BaseModel):
    """`embedding:`: what embedding may use of the machine. Changes nothing about the vectors.

    `batch_chunks` is how many chunks with their vectors are in memory at a time, or those of one
    document where it has more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    batch_chunks: int = Field(default=BATCH_CHUNKS, ge=1, le=1_000_000)


class StorageSettings(BaseModel):
    """`storage:`: how a workspace in a bucket is reached, where the environment does not say it.

    `endpoint` is the URL of a service other than Amazon's, `region` its region; `allow_http` is
    for an endpoint without TLS. `upload_database` puts the analysts' file into the bucket too.
    Credentials come from the environment, or from the role of the machine or container.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    endpoint: str | None = None
    region: str | None = None
    allow_http: bool = False
    upload_database: bool = False

    @field_validator("endpoint")
    @classmethod
    def _is_plain(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and not re.fullmatch(r"https?://[^@?\s]+", endpoint):
            raise ValueError("is not http(s)://host, without credentials")
        return endpoint

    def bucket(self, url: str) -> Bucket:
        """The workspace at a URL."""
        return Bucket(url, **self.model_dump())


class JudgeSettings(BaseModel):
    """`ragas:`: which models answer and judge. The endpoint and the key come from the environment.

    `OPENAI_BASE_URL` and `OPENAI_API_KEY` name the endpoint; without them every score reads
    `skipped / no_judge`. `answerer` `extractive` copies sentences in place of asking a model.
    `embedding_model` compares questions for `answer_relevancy` (None: the first declared).
    `judge_repeats` judgements are averaged; `judge_labels` is a file of judgements by people, and
    `judge_instructions` one of reviewed translations (None: English), both from the folder of
    corpus.yaml. `concurrency` bounds the requests in flight; `timeout` is in seconds;
    `max_questions` bounds the questions judged per strategy (None: all).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    answerer: Literal["model", "extractive"] = "model"
    answer_model: str = "gpt-4.1-mini"
    judge_model: str = "gpt-4.1-mini"
    metrics: tuple[
        Literal[
            "faithfulness",
            "context_recall",
            "context_precision",
            "factual_correctness",
            "answer_relevancy",
        ],
        ...,
    ] = ("faithfulness", "context_recall")
    embedding_model: str | None = None
    judge_repeats: int = Field(default=1, ge=1, le=20)
    judge_labels: str | None = None
    judge_instructions: str | None = None
    lexical_support: bool = False
    concurrency: int = Field(default=8, ge=1, le=256)
    timeout: float = Field(default=60, gt=0)
    max_questions: int | None = Field(default=None, ge=1)

    def labels_file(self, root: Path) -> Path | None:
        return None if self.judge_labels is None else root / self.judge_labels

    def instructions_file(self, root: Path) -> Path | None:
        return None if self.judge_instructions is None else root / self.judge_instructions


class ComparisonSettings(BaseModel):
    """`comparison:`: the reference strategy when none is live, the metric that decides, the seed.

    `metric` is written as the score tables name it, e.g. `recall@5`, `recall@1000t` (within 1,000
    context tokens) or `faithfulness`, which decides nothing while the judge agrees with people's
    labels by less than `min_kappa` (Cohen's kappa).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    baseline: str | None = None
    metric: Annotated[str, StringConstraints(pattern=DECIDING)] = "recall@5"
    min_kappa: float = Field(default=0.6, ge=0, le=1)
    resamples: int = Field(default=10_000, ge=100)
    seed: int = 20_260_101
    confidence: float = Field(default=0.95, gt=0.5, lt=1)


OWNER = r"^(team:[A-Za-z0-9_.-]+|[^@\s]+@[^@\s]+\.[^@\s]+)$"
"""An address, or a team."""


class _File(BaseModel):
    """The shape of corpus.yaml before names are resolved."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    workspace: str = ".corpus"
    storage: StorageSettings = StorageSettings()
    collections: dict[str, Collection] = Field(min_length=1)
    embedding_models: dict[str, dict[str, Any]] = Field(min_length=1)
    chunkers: dict[str, dict[str, Any]] = Field(min_length=1)
    retrieval_profiles: dict[str, RetrievalProfile] = Field(min_length=1)
    strategies: dict[str, StrategySettings] = Field(min_length=1)
    questions: tuple[str, ...] = ()
    owners: tuple[Annotated[str, StringConstraints(pattern=OWNER)], ...] = ("team:search",)
    parsing: Limits = Limits()
    chunking: ChunkingSettings = ChunkingSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    execution: ExecutionSettings = ExecutionSettings()
    ragas: JudgeSettings = JudgeSettings()
    comparison: ComparisonSettings = ComparisonSettings()
    promotion: PromotionSettings = PromotionSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    prices: tuple[Price, ...] = ()


@dataclass(frozen=True)
class Config:
    """The whole configuration with every name resolved. Relative paths start at the file."""

    file: Path
    home: Place
    collections: Mapping[str, Collection]
    embedding_models: Mapping[str, EmbeddingModel]
    chunker_versions: Mapping[str, ChunkerVersion]
    retrieval_profiles: Mapping[str, RetrievalProfile]
    strategies: Mapping[str, Strategy]
    question_globs: tuple[str, ...]
    owners: tuple[str, ...]
    parsing: Limits
    chunking: ChunkingSettings
    embedding: EmbeddingSettings
    execution: ExecutionSettings
    ragas: JudgeSettings
    comparison: ComparisonSettings
    promotion: PromotionSettings
    maintenance: MaintenanceSettings
    prices: Prices

    @property
    def root(self) -> Path:
        return self.file.parent

    @property
    def local(self) -> Path:
        """The folder for what stays on this machine: the workspace, if that is one."""
        return Workspace(self.home).root

    def shards(self) -> dict[str, str]:
        """Every corpus shard and the collection it is cut from, in declaration order."""
        return {
            shard: name
            for name, collection in self.collections.items()
            for shard in collection.shards_of(name)
        }

    @cached_property
    def index_versions(self) -> dict[str, IndexVersion]:
        """Every index version some strategy needs, by name."""
        return {s.index.name: s.index for s in self.strategies.values()}

    def indexes_of(self, chunker_version: str) -> list[IndexVersion]:
        return [
            i for i in self.index_versions.values() if i.chunker_version.name == chunker_version
        ]

    def strategies_of(self, chunker_version: str) -> list[Strategy]:
        return [
            s for s in self.strategies.values() if s.index.chunker_version.name == chunker_version
        ]

    def question_files(self) -> list[Path]:
        return sorted({f for pattern in self.question_globs for f in self.root.glob(pattern)})


def load(file: Path | None = None) -> Config:
    """Read and check corpus.yaml (`$CORPUS_CONFIG`, or the one in the current folder).

    Raises:
        ConfigError: the file is missing or says something that cannot be meant.
    """
    file = Path(file or os.environ.get(CONFIG_VARIABLE) or "corpus.yaml").absolute()
    settings = _parse(file, _read(file))
    models = {
        name: _model(file, f"embedding_models.{name}", entry)
        for name, entry in settings.embedding_models.items()
    }
    versions = {
        name: chunker_version(file, name, entry, models)
        for name, entry in settings.chunkers.items()
    }
    _check_names(file, settings)
    config = Config(
        file=file,
        home=_home(file, settings),
        collections=settings.collections,
        embedding_models=models,
        chunker_versions=versions,
        retrieval_profiles=settings.retrieval_profiles,
        strategies={
            name: _strategy(file, name, entry, settings, versions, models)
            for name, entry in settings.strategies.items()
        },
        question_globs=settings.questions,
        owners=settings.owners,
        parsing=settings.parsing,
        chunking=settings.chunking,
        embedding=settings.embedding,
        execution=settings.execution,
        ragas=settings.ragas,
        comparison=settings.comparison,
        promotion=settings.promotion,
        maintenance=settings.maintenance,
        prices=_prices(file, settings.prices),
    )
    _check_world(config)
    return config


def _prices(file: Path, entries: tuple[Price, ...]) -> Prices:
    try:
        return Prices(entries)
    except CorpusError as error:
        problem, _, cure = str(error).partition(". ")
        raise ConfigError(file, "prices", problem, cure) from error


def _home(file: Path, settings: _File) -> Place:
    try:
        place = place_of(os.environ.get(HOME_VARIABLE, settings.workspace))
    except CorpusError as error:
        raise ConfigError(file, "workspace", str(error).rstrip("."), "") from error
    if isinstance(place, Bucket):
        return settings.storage.bucket(place.url)
    return (file.parent / place).absolute()


def _read(file: Path) -> dict[str, Any]:
    try:
        content = read_yaml(file)
    except OSError as error:
        raise ConfigError(
            file,
            "(file)",
            f"cannot be read ({error.strerror})",
            f"Run from the project's folder, or set {CONFIG_VARIABLE}.",
        ) from error
    except UnreadableYaml as error:
        mistake = error.mistake
        raise ConfigError(file, mistake.key, mistake.problem, mistake.cure) from error
    if not isinstance(content, dict):
        raise ConfigError(file, "(file)", "is not a mapping", "See docs/configuration.md.")
    return content


def _parse(file: Path, content: dict[str, Any]) -> _File:
    try:
        return _File.model_validate(content, context={"root": file.parent})
    except ValidationError as error:
        raise _config_error(file, "", error) from error


def _config_error(file: Path, prefix: str, error: ValidationError) -> ConfigError:
    mistake = first_mistake(error)
    key = ".".join(part for part in (prefix, mistake.key) if part)
    return ConfigError(file, key, mistake.problem, mistake.cure)


def _declared(
    file: Path, key: str, entry: dict[str, Any], class_of: Callable[[str], type[Any]]
) -> Any:
    if "kind" not in entry:
        raise ConfigError(file, f"{key}.kind", "is missing", "Add it: docs/configuration.md.")
    try:
        declared = class_of(str(entry["kind"]))
    except CorpusError as error:
        problem, _, cure = str(error).partition(". ")
        raise ConfigError(file, f"{key}.kind", problem, cure) from error
    try:
        return declared.model_validate(
            {k: v for k, v in entry.items() if k != "kind"}, context={"root": file.parent}
        )
    except ValidationError as error:
        raise _config_error(file, key, error) from error


def _model(file: Path, key: str, entry: dict[str, Any]) -> EmbeddingModel:
    model: EmbeddingModel = _declared(file, key, entry, model_class)
    try:
        model.declaration()  # a folder of the user's own is looked into now, not in the first run
    except CorpusError as error:
        raise ConfigError(file, key, str(error).rstrip("."), "") from error
    return model


def chunker_version(
    file: Path, name: str, entry: dict[str, Any], models: Mapping[str, EmbeddingModel]
) -> ChunkerVersion:
    """The version declared by one entry of `chunkers:`.

    Raises:
        ConfigError: it says something that cannot be meant.
    """
    key = f"chunkers.{name}"
    if not VERSION_NAME.fullmatch(name):
        raise ConfigError(file, key, "is not a version name", "Write name@n, e.g. recursive-400@1.")
    chunker: Chunker = _declared(file, key, entry, chunker_class)
    tokenizer = chunker.tokenizer or next(iter(models))
    asked = {asked or tokenizer for asked in chunker.models_asked()}
    for used, where in [(tokenizer, "tokenizer"), *((name, "model") for name in sorted(asked))]:
        if used not in models:
            raise _unknown(file, f"{key}.{where}", used, "embedding model", models)
    fingerprint = models[tokenizer].tokenizer_fingerprint()
    if chunker.language_budgets == "measured":
        # Recorded with the version: a table measured anew is another version.
        factors = {**measured_factors(fingerprint), **chunker.language_factors}
        chunker = chunker.model_copy(update={"language_factors": factors})
    return ChunkerVersion(
        name=name,
        chunker=chunker,
        tokenizer_model=tokenizer,
        tokenizer_fingerprint=fingerprint,
        models_asked={used: models[used].declaration() for used in sorted(asked)},
    )


def _strategy(
    file: Path,
    name: str,
    entry: StrategySettings,
    settings: _File,
    versions: Mapping[str, ChunkerVersion],
    models: Mapping[str, EmbeddingModel],
) -> Strategy:
    key = f"strategies.{name}"
    if entry.chunker not in versions:
        raise _unknown(file, f"{key}.chunker", entry.chunker, "chunker version", versions)
    if entry.model not in models:
        raise _unknown(file, f"{key}.model", entry.model, "embedding model", models)
    if entry.profile not in settings.retrieval_profiles:
        raise _unknown(
            file, f"{key}.profile", entry.profile, "profile", settings.retrieval_profiles
        )
    profile, chunker = settings.retrieval_profiles[entry.profile], versions[entry.chunker].chunker
    if profile.token_budget is not None and profile.token_budget < chunker.max_tokens:
        raise ConfigError(
            file,
            f"{key}.profile",
            f"the token_budget of {entry.profile} ({profile.token_budget}) is below the max_tokens "
            f"of {entry.chunker} ({chunker.max_tokens})",
            "A question could be answered with nothing; raise the budget.",
        )
    several_sizes = isinstance(chunker, SizesChunker) and chunker.largest_searched == 0
    if several_sizes and (profile.expand or profile.smooth):
        raise ConfigError(
            file,
            f"{key}.profile",
            f"{entry.profile} looks at neighbours, and chunks of several sizes, as of "
            f"{entry.chunker}, have none",
            "Use a profile without smooth and expand, for example with dedupe.",
        )
    model = models[entry.model]
    index = IndexVersion(versions[entry.chunker], entry.model, model, entry.precision)
    try:
        check_late(index)
    except CorpusError as error:
        raise ConfigError(file, f"{key}.model", str(error).rstrip("."), "") from error
    return Strategy(
        name=name,
        index=index,
        profile_name=entry.profile,
        profile=profile,
    )


def _unknown(
    file: Path, key: str, given: str, what: str, known: Mapping[str, object]
) -> ConfigError:
    return ConfigError(
        file, key, f"unknown {what} {given!r}", f"Declare it, or use: {', '.join(known)}."
    )


def _check_names(file: Path, settings: _File) -> None:
    sections: dict[str, Mapping[str, object]] = {
        "collections": settings.collections,
        "embedding_models": settings.embedding_models,
        "retrieval_profiles": settings.retrieval_profiles,
        "strategies": settings.strategies,
    }
    for section, entries in sections.items():
        for name in entries:
            if not NAME.fullmatch(name):
                raise ConfigError(
                    file,
                    f"{section}.{name}",
                    "is not a name",
                    "Use lower-case letters, digits, dots and hyphens.",
                )
    shards = [
        shard
        for name, collection in settings.collections.items()
        for shard in collection.shards_of(name)
    ]
    for shard in shards:
        if shards.count(shard) > 1:
            raise ConfigError(
                file, "collections", f"two shards are called {shard!r}", "Rename a collection."
            )


def _check_world(config: Config) -> None:
    for name, collection in config.collections.items():
        if collection.is_folder and not collection.folder(config.root).is_dir():
            raise ConfigError(
                config.file,
                f"collections.{name}.path",
                f"no folder {collection.path!r}",
                "Create it or correct the path (relative paths start at the file's folder).",
            )
    for pattern in config.question_globs:
        if not any(config.root.glob(pattern)):
            raise ConfigError(
                config.file, "questions", f"no file matches {pattern!r}", "Correct the pattern."
            )
    ragas = config.ragas
    if ragas.embedding_model is not None and ragas.embedding_model not in config.embedding_models:
        raise _unknown(
            config.file,
            "ragas.embedding_model",
            ragas.embedding_model,
            "embedding model",
            config.embedding_models,
        )
    for key, file in (
        ("judge_labels", ragas.labels_file(config.root)),
        ("judge_instructions", ragas.instructions_file(config.root)),
    ):
        if file is not None and not file.is_file():
            raise ConfigError(
                config.file, f"ragas.{key}", f"no file {file}", "Create it or correct the path."
            )
    if config.comparison.metric == "faithfulness" and "faithfulness" not in ragas.metrics:
        raise ConfigError(
            config.file,
            "comparison.metric",
            "faithfulness is not judged",
            "Add it to ragas.metrics, or let another metric decide.",
        )
    claims = config.execution.ray
    for key, what, claimed, declared in (
        ("models", "embedding model", claims.models, config.embedding_models),
        ("versions", "chunker version", claims.versions, config.chunker_versions),
    ):
        for name in claimed:
            if name not in declared:
                raise _unknown(config.file, f"execution.ray.{key}", name, what, declared)
    baseline = config.comparison.baseline
    if baseline is not None and baseline not in config.strategies:
        raise _unknown(config.file, "comparison.baseline", baseline, "strategy", config.strategies)


def check_recorded(config: Config) -> None:
    """Compare the declarations with those recorded at their first use, and with what is live.

    Nothing is written.

    Raises:
        CorpusError: one was changed under its name, or the live strategy is not declared.
    """
    workspace = Workspace(config.home)
    for version in config.chunker_versions.values():
        workspace.check_declaration("chunkers", version.name, version.declaration)
    for name, model in config.embedding_models.items():
        workspace.check_declaration("embedding_models", name, model.declaration())
    check_live(workspace, config.strategies)


def describe(config: Config) -> Iterator[str]:
    """What `make check` prints about a configuration that is right."""
    yield f"{config.file}: ok"
    yield f"  workspace   {config.home}"
    for name, collection in config.collections.items():
        yield f"  collection  {name} ({collection.path}, shards: {collection.shards})"
    for version in config.chunker_versions.values():
        yield f"  chunker     {version.name} ({version.chunker.kind}, digest {version.digest[:8]})"
    for strategy in config.strategies.values():
        yield f"  strategy    {strategy.name} = {strategy.index.name} × {strategy.profile_name}"


def main() -> int:
    """`python -m chunking_assets.config`: check the configuration and the recorded versions."""
    try:
        config = load()
        check_recorded(config)
        print("\n".join(describe(config)))
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
