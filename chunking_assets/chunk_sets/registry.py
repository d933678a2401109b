"""The chunking strategies by kind. A new one is one file and one line here."""

from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.fixed import FixedChunker
from chunking_assets.chunk_sets.heading import HeadingChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker

CHUNKERS: dict[str, type[Chunker]] = {
    chunker.kind: chunker for chunker in (FixedChunker, RecursiveChunker, HeadingChunker)
}
