"""What assets work with: the configuration, the workspace, and models loaded once per process."""

from functools import lru_cache
from pathlib import Path

import dagster as dg

from chunking_assets import config as configuration
from chunking_assets.config import Config
from chunking_assets.embedding_models.model import Embedder, Tokenizer
from chunking_assets.workspace import Workspace


@lru_cache(maxsize=4)
def _config(file: str) -> Config:
    return configuration.load(Path(file))


@lru_cache(maxsize=4)
def _tokenizer(file: str, model: str) -> Tokenizer:
    config = _config(file)
    return config.embedding_models[model].tokenizer(Workspace(config.home).models)


@lru_cache(maxsize=4)
def _embedder(file: str, model: str) -> Embedder:
    config = _config(file)
    return config.embedding_models[model].embedder(Workspace(config.home).models)


class Corpus(dg.ConfigurableResource["Corpus"]):
    """The corpus a run works on, named by its corpus.yaml. Nothing is opened before it is used."""

    config_file: str

    @property
    def config(self) -> Config:
        return _config(self.config_file)

    @property
    def workspace(self) -> Workspace:
        return Workspace(self.config.home)

    def tokenizer(self, model: str) -> Tokenizer:
        return _tokenizer(self.config_file, model)

    def embedder(self, model: str) -> Embedder:
        return _embedder(self.config_file, model)
