"""Chunks as they were: who moves them raises a number, or stored chunk sets would be taken for new.

`implementation` of the kind if it alone changed, `SHARED` of `chunker.py` if several did; then the
digests here are those that the test prints.
"""

import pytest
from chunk_promises import OWN, declared, opened
from hard_texts import TEXTS

from chunking_assets.chunk_sets.chunker import SHARED
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.keys import digest
from chunking_assets.parsed_elements.markdown import parse_text
from chunking_assets.parsed_elements.python_source import parse_text as parse_python

CODE = '''\
import os
from json import dumps


class Store:
    """Things."""

    def load(self, path):
        if os.path.exists(path):
            return dumps(path)
        return None
'''

KNOWN = {
    "cluster": (1, 1, "52c0513d3c7f7736"),
    "code": (1, 1, "8e86b878d08986c7"),
    "conversation": (1, 1, "4c6b2c42dc78bccf"),
    "element": (1, 1, "2bf56a2c1198e958"),
    "fixed": (1, 1, "e5008f5c1e8ff30d"),
    "heading": (1, 1, "8420f4bf74f16f6e"),
    "hierarchical": (1, 1, "c9e8dd09fea6c80e"),
    "late": (1, 1, "824efe703342e02c"),
    "llm": (1, 1, "f848f4c2153afb96"),
    "multi_granularity": (1, 1, "67a874f3ab98902b"),
    "paragraph": (1, 1, "c5e29958f2d0806a"),
    "recursive": (1, 1, "f848f4c2153afb96"),
    "routed": (1, 1, "8e86b878d08986c7"),
    "semantic": (1, 1, "5ae87dab75e7a35a"),
    "sentence": (1, 1, "0fb791bdf490b196"),
    "sliding_window": (1, 1, "e5008f5c1e8ff30d"),
}
"""Kind to `SHARED`, `implementation` and the digest of its chunks."""


@pytest.mark.parametrize("kind", OWN)
def test_the_same_settings_give_the_same_chunks(kind, words):
    chunker = declared(kind, max_tokens=12, prefix="title", overlap=2)
    documents = [(text, parse_text(text).elements) for text in TEXTS.values()]
    documents.append((CODE, parse_python(CODE).elements))
    found = [
        [(c.start, c.end, c.prefix, c.level) for c in chunk(opened(*d, words, chunker), chunker)]
        for d in documents
    ]
    numbered = SHARED, CHUNKERS[kind].implementation, digest(found)[:16]
    assert KNOWN.get(kind) == numbered, f'"{kind}": {numbered},'
