"""An embedding model behind an endpoint: OpenAI, Azure, Ollama, vLLM, TEI, anything compatible.

A remote model is known by what corpus.yaml says of it, for its weights cannot be looked at: a
server that changes what a name means deserves a new `revision`. Where it is asked is no part of
that: the same model behind another URL gives the same vectors.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from chunking_assets.chat_models.endpoint import KEY_VARIABLE, OPENAI_URL, URL_VARIABLE, Endpoint
from chunking_assets.embedding_models.model import (
    EmbeddingModel,
    ModelIdentity,
    Tokenizer,
)
from chunking_assets.embedding_models.tiktoken_tokenizer import ENCODINGS, fingerprint
from chunking_assets.embedding_models.weight_files import content_sha
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest

if TYPE_CHECKING:
    from chunking_assets.embedding_models.remote_embedder import RemoteEmbedder

DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
"""Of OpenAI's models, all of which read 8,192 tokens in the encoding cl100k_base."""
OPENAI_MAX_TOKENS, OPENAI_ENCODING = 8192, "cl100k_base"


class Limits(BaseModel):
    """`limits` of a remote model; what is not said is as the server's kind allows.

    `inputs` and `tokens` bound one request, `kilobytes` its text; `concurrency` the requests in
    flight; `timeout` the silence of a server that was asked, in seconds. The rates are spread
    evenly; none: no bound.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    inputs: int = Field(default=32, ge=1)
    tokens: int = Field(default=60_000, ge=1)
    kilobytes: int = Field(default=1_000, ge=1)
    concurrency: int = Field(default=4, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    timeout: float = Field(default=60, gt=0)


OPENAI_LIMITS = {"inputs": 2048, "tokens": 300_000, "kilobytes": 8_000}
"""Documented for OpenAI's and Azure's endpoint; others take far less, or say nothing."""


class OpenAIModel(EmbeddingModel):
    """`kind: openai`: `model` asked at `base_url`, by the protocol of OpenAI's `/embeddings`.

    For OpenAI's own models `dimensions`, `max_tokens` and `tokenizer` are known; `dimensions` can
    ask for shorter vectors. For others all three are required, and `dimensions` are only expected,
    unless `send_dimensions` says that the server is to be asked for them: `tokenizer` is the path
    of the model's `tokenizer.json` (from the folder of corpus.yaml) or a tiktoken encoding,
    `max_tokens` what the server reads of one text. A text beyond it is refused before anything is
    sent, or with `truncate` cut at the last token that fits. A server that by its own count reads
    less than it was sent is refused too; with `truncate`, what it reads is recorded. From
    `batch_from` new texts on, of those that are looked at together, the batch API embeds them:
    cheaper, later, collected by a later run.
    The key is read from the variable `key_variable` of the environment.
    """

    model_config = ConfigDict(serialize_by_alias=True)
    kind: ClassVar[str] = "openai"
    model: str
    base_url: str | None = None
    key_variable: str = KEY_VARIABLE
    revision: str = ""
    dimensions: int | None = Field(default=None, ge=1)
    send_dimensions: bool | None = None
    max_tokens: int | None = Field(default=None, ge=8)
    tokenizer_name: str | None = Field(default=None, alias="tokenizer")
    query_prefix: str = ""
    passage_prefix: str = ""
    truncate: bool = False
    batch_from: int | None = Field(default=None, ge=1)
    limits: Limits = Limits()

    @field_validator("tokenizer_name")
    @classmethod
    def _from_the_configuration(cls, name: str | None, info: ValidationInfo) -> str | None:
        if name is None or name in ENCODINGS:
            return name
        root: Path = (info.context or {}).get("root", Path())
        return str(root / Path(name).expanduser())

    @field_validator("base_url")
    @classmethod
    def _without_a_password(cls, url: str | None) -> str | None:
        if url is not None and "@" in urlsplit(url).netloc:
            raise ValueError(
                "holds a user or password; put it into the variable key_variable names"
            )
        return url

    @model_validator(mode="after")
    def _jobs_keep_whole_texts(self) -> Self:
        if self.truncate and self.batch_from is not None:
            raise ValueError("batch_from and truncate exclude each other: a job keeps whole texts")
        return self

    @model_validator(mode="after")
    def _is_known_or_said(self) -> Self:
        if self.model not in DIMENSIONS:
            told = {
                "dimensions": self.dimensions,
                "max_tokens": self.max_tokens,
                "tokenizer": self.tokenizer_name,
            }
            if missing := [key for key, value in told.items() if value is None]:
                raise ValueError(
                    f"nothing is known of {self.model!r}: give {', '.join(missing)} (tokenizer: "
                    f"path of the model's tokenizer.json, or {' or '.join(ENCODINGS)})"
                )
        return self

    def declaration(self) -> dict[str, object]:
        """What decides a vector: neither where the model is asked nor how fast."""
        return {
            "kind": self.kind,
            "model": self.model,
            "revision": self.revision,
            "dimensions": self._dimensions,
            "max_tokens": self._max_tokens,
            "tokenizer": self.tokenizer_fingerprint(),
            "query_prefix": self.query_prefix,
            "passage_prefix": self.passage_prefix,
            "truncate": self.truncate,
        }

    def check_token_vectors(self) -> None:
        raise CorpusError(
            f"{self.model} is asked at an endpoint, which gives no vector per token. Choose a "
            "model of kind onnx with pooling: mean."
        )

    def jobs_from(self) -> int | None:
        return self.batch_from

    def tokenizer_fingerprint(self) -> str:
        name = self._tokenizer_name
        if name in ENCODINGS:
            return fingerprint(name)
        return digest("tokenizer.json", content_sha(self._tokenizer_file))

    def tokenizer(self, models_folder: Path) -> Tokenizer:
        """
        Raises:
            CorpusError: the tokenizer is not here, or is none.
        """
        from chunking_assets.embedding_models.tiktoken_tokenizer import TiktokenTokenizer
        from chunking_assets.embedding_models.tokenizer import TextTokenizer

        if self._tokenizer_name in ENCODINGS:
            return TiktokenTokenizer.named(self._tokenizer_name)
        return TextTokenizer.from_file(self._tokenizer_file, self.tokenizer_fingerprint())

    def embedder(self, models_folder: Path) -> "RemoteEmbedder":
        """Nothing is sent before the first text.

        Raises:
            CorpusError: the tokenizer is not here, or OpenAI is to be asked without a key.
        """
        from chunking_assets.embedding_models.remote_embedder import RemoteEmbedder

        endpoint = self.endpoint()
        return RemoteEmbedder(
            endpoint,
            self.tokenizer(models_folder),
            self._identity(),
            self.limits_at(endpoint),
            truncate=self.truncate,
            shorten=self._sends_dimensions,
            speaks_base64=_is_openai(endpoint),
            key_variable=self.key_variable,
            jobs=self.jobs_folder(models_folder),
            batch_from=self.batch_from,
            counts_exactly=self._counts_exactly(endpoint),
        )

    def _counts_exactly(self, endpoint: Endpoint) -> bool:
        """Whether the tokenizer is the model's own, and not one that stands in for it."""
        of_openai = _is_openai(endpoint) or self.model in DIMENSIONS
        return self._tokenizer_name not in ENCODINGS or (
            of_openai and self._tokenizer_name == OPENAI_ENCODING
        )

    def jobs_folder(self, models_folder: Path) -> Path:
        """Where jobs of the batch API wait for their answers."""
        return models_folder / "batch_jobs" / self._identity().fingerprint

    def endpoint(self) -> Endpoint:
        """The server of this model: `base_url`, or `OPENAI_BASE_URL`, or OpenAI's."""
        url = self.base_url or os.environ.get(URL_VARIABLE, "").strip() or OPENAI_URL
        key = os.environ.get(self.key_variable, "").strip()
        endpoint = Endpoint(url.rstrip("/"), key or "no-key")
        if not key and _is_openai(endpoint):
            raise CorpusError(
                f"the embedding model {self.model} is asked at {endpoint.host}, which wants a key: "
                f"set {self.key_variable}, or base_url for another server."
            )
        return endpoint

    def limits_at(self, endpoint: Endpoint) -> Limits:
        """The bounds in force: those said in corpus.yaml over those of the server's kind."""
        preset = OPENAI_LIMITS if _is_openai(endpoint) else {}
        return Limits(**preset | self.limits.model_dump(exclude_unset=True))

    def _identity(self) -> ModelIdentity:
        return ModelIdentity(
            id=self.model,
            revision=self.revision,
            dimensions=self._dimensions,
            max_tokens=self._max_tokens,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
            pooling="endpoint, truncated" if self.truncate else "endpoint",
            normalised=True,
        )

    @property
    def _dimensions(self) -> int:
        return self.dimensions or DIMENSIONS[self.model]

    @property
    def _sends_dimensions(self) -> bool:
        if self.send_dimensions is not None:
            return self.send_dimensions
        return self._dimensions != DIMENSIONS.get(self.model, self._dimensions)

    @property
    def _max_tokens(self) -> int:
        return self.max_tokens or OPENAI_MAX_TOKENS

    @property
    def _tokenizer_name(self) -> str:
        return self.tokenizer_name or OPENAI_ENCODING

    @property
    def _tokenizer_file(self) -> Path:
        file = Path(self._tokenizer_name)
        if not file.is_file():
            raise CorpusError(
                f"the tokenizer of {self.model}, {file}, is not there. Correct `tokenizer`: the "
                f"path of the model's tokenizer.json, or {' or '.join(ENCODINGS)}."
            )
        return file


def _is_openai(endpoint: Endpoint) -> bool:
    host = urlsplit(endpoint.base_url).hostname or ""
    return host == "api.openai.com" or host.endswith(".openai.azure.com")
