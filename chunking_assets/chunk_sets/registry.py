"""The chunking strategies by kind. A new one is one file and one line here.

A package of anyone's adds one by the entry point group `chunking_assets.chunkers`: its name is the
kind, what it points at a subclass of `Chunker`. It is imported when corpus.yaml first names it.
"""

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
from chunking_assets.plug_ins import Kinds

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

KINDS = Kinds(Chunker, CHUNKERS, ENTRY_POINTS, required=("chunks",))
chunker_kinds, chunker_class, package_of = KINDS.names, KINDS.find, KINDS.package_of
