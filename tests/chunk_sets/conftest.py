"""Hard texts and tokenizers as fixtures."""

from collections.abc import Callable

import pytest
from hard_texts import PATHOLOGICAL, TEXTS, TOKENIZERS, Subwords, Words

from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.model import Tokenizer
from chunking_assets.parsed_elements.markdown import parse_text

pytest.register_assert_rewrite("chunk_promises")


@pytest.fixture(scope="session")
def tokenizers() -> dict[str, Subwords | Words]:
    return {name: build() for name, build in TOKENIZERS.items()}


@pytest.fixture(scope="session", params=TOKENIZERS)
def tokenizer(request, tokenizers) -> Subwords | Words:
    return tokenizers[request.param]


@pytest.fixture
def words(tokenizers) -> Words:
    return tokenizers["words"]


@pytest.fixture(scope="session")
def e5_tokenizer(models_folder) -> Tokenizer:
    return E5Small().tokenizer(models_folder)


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    return TEXTS


@pytest.fixture(scope="session", params=TEXTS)
def text(request) -> str:
    return TEXTS[request.param]


@pytest.fixture(scope="session", params=PATHOLOGICAL)
def pathological(request) -> str:
    return PATHOLOGICAL[request.param]


@pytest.fixture(scope="session")
def markdown() -> Callable[..., Document]:
    """A document of Markdown, with the elements of the real parser."""

    def build(text: str, tokenizer: Subwords | Words) -> Document:
        return Document(text, parse_text(text).elements, tokenizer)

    return build
