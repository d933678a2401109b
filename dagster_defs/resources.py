"""What assets work with: the configuration, the workspace, and models loaded once per process."""

from functools import lru_cache
from pathlib import Path

import dagster as dg

from chunking_assets import config as configuration
from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.chat_models.response_cache import CACHE_FILE
from chunking_assets.config import Config
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.workspace import Workspace


@lru_cache(maxsize=4)
def _config(file: str) -> Config:
    return configuration.load(Path(file))


@lru_cache(maxsize=4)
def _models(file: str) -> Models:
    config = _config(file)
    return Models(config.embedding_models, Workspace(config.home))


@lru_cache(maxsize=4)
def _chat(file: str) -> Chat:
    config = _config(file)
    cache = Workspace(config.home).caches / CACHE_FILE
    return Chat(endpoint_from_environment(), cache, config.ragas.concurrency, config.ragas.timeout)


class Corpus(dg.ConfigurableResource["Corpus"]):
    """The corpus a run works on, named by its corpus.yaml. Nothing is opened before it is used.

    `cores` is how many a build may keep busy where corpus.yaml does not say; None: all there are.
    """

    config_file: str
    cores: int | None = None

    @property
    def config(self) -> Config:
        return _config(self.config_file)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.config.home)

    @property
    def models(self) -> Models:
        return _models(self.config_file)

    @property
    def chat(self) -> Chat:
        return _chat(self.config_file)
