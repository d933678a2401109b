"""The chunking strategies by kind. A new one is one file and one line here.

A package of anyone's adds one by the entry point group `chunking_assets.chunkers`: its name is the
kind, what it points at a subclass of `Chunker`. It is imported when corpus.yaml first names it.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

from chunking_assets.chunk_sets.adapters.langchain import LangchainChunker
from chunking_assets.chunk_sets.adapters.semantic_text_splitter import SemanticTextSplitterChunker
from chunking_assets.chunk_sets.adapters.semchunk import SemchunkChunker
from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.cluster import ClusterChunker
from chunking_assets.chunk_sets.code import CodeChunker
from chunking_assets.chunk_sets.conversation import ConversationChunker
from chunking_assets.chunk_sets.element import ElementChunker
from chunking_assets.chunk_sets.fixed import FixedChunker
from chunking_assets.chunk_sets.heading import HeadingChunker
from chunking_assets.chunk_sets.hierarchical import HierarchicalChunker
from chunking_assets.chunk_sets.late import LateChunker
from chunking_assets.chunk_sets.llm import LlmChunker
from chunking_assets.chunk_sets.multi_granularity import MultiGranularityChunker
from chunking_assets.chunk_sets.paragraph import ParagraphChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.routed import RoutedChunker
from chunking_assets.chunk_sets.semantic import SemanticChunker
from chunking_assets.chunk_sets.sentence import SentenceChunker
from chunking_assets.chunk_sets.sliding_window import SlidingWindowChunker
from chunking_assets.errors import CorpusError

ENTRY_POINTS = "chunking_assets.chunkers"

CHUNKERS: dict[str, type[Chunker]] = {
    chunker.kind: chunker
    for chunker in (
        FixedChunker,
        SlidingWindowChunker,
        SentenceChunker,
        ParagraphChunker,
        RecursiveChunker,
        HeadingChunker,
        ElementChunker,
        HierarchicalChunker,
        MultiGranularityChunker,
        SemanticChunker,
        ClusterChunker,
        CodeChunker,
        ConversationChunker,
        LlmChunker,
        LateChunker,
        RoutedChunker,
        LangchainChunker,
        SemchunkChunker,
        SemanticTextSplitterChunker,
    )
}


def chunker_kinds() -> list[str]:
    """Every kind corpus.yaml may name, the product's own first."""
    return [*CHUNKERS, *sorted(_third_party())]


def chunker_class(kind: str) -> type[Chunker]:
    """The strategy of a kind.

    Raises:
        CorpusError: there is none of that kind, or the package that offers it is broken.
    """
    if kind in CHUNKERS:
        return CHUNKERS[kind]
    offered = _third_party().get(kind)
    if offered is None:
        raise CorpusError(f"unknown kind {kind!r}. Choose one of: {', '.join(chunker_kinds())}.")
    try:
        found = offered.load()
    except Exception as error:  # whatever a package of anyone's raises at its import
        raise CorpusError(
            f"kind {kind!r} of {offered.value} cannot be loaded ({type(error).__name__}: {error}). "
            "Repair or remove that package."
        ) from error
    if not (isinstance(found, type) and issubclass(found, Chunker)):
        raise _wrong(offered, "is not a subclass of Chunker")
    if getattr(found, "kind", None) != kind:
        raise _wrong(offered, f"does not say kind = {kind!r}")
    if found.chunks is Chunker.chunks:
        raise _wrong(offered, "has no method chunks")
    return found


def package_of(kind: str) -> str | None:
    """The package that offers a kind, with its release; None if it is no entry point."""
    offered = _third_party().get(kind)
    return f"{offered.dist.name} {offered.dist.version}" if offered and offered.dist else None


def _wrong(offered: EntryPoint, problem: str) -> CorpusError:
    return CorpusError(f"kind {offered.name!r}: {offered.value} {problem}. Correct that package.")


@cache
def _third_party() -> dict[str, EntryPoint]:
    """
    Raises:
        CorpusError: two packages offer one kind, or one a kind of the product's own.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=ENTRY_POINTS):
        if point.name in CHUNKERS or found.get(point.name, point).value != point.value:
            raise CorpusError(
                f"kind {point.name!r} is offered twice, once by {point.value}. Remove one package."
            )
        found[point.name] = point
    return found
