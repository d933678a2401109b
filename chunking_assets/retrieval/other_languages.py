"""Hits in other languages than the question's: the answer may be written in any.

To a multilingual model a text is near to a question also because both are in one language, and
words count in that language only. So texts in the question's language fill every place, whatever
they say. No weight mends that; the best hits of each other language come along instead.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from chunking_assets.parsed_elements.reuse import DOCUMENTS
from chunking_assets.retrieval.filters import among
from chunking_assets.retrieval.hit import Hit
from chunking_assets.workspace import Workspace


class Languages:
    """The languages of documents, read once for a served version of an index.

    Documents without one, as source code is, are of none and looked for in none.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @cached_property
    def _every(self) -> Mapping[str, str | None]:
        rows = self._workspace.table(DOCUMENTS).read_all(columns=["doc_id", "language"])
        return {} if rows is None else dict(rows.iter_rows())

    @cached_property
    def by_document(self) -> Mapping[str, str]:
        """ISO 639-1 code by doc_id."""
        return {doc_id: code for doc_id, code in self._every.items() if code is not None}

    def scarce(self, hits: Sequence[Hit], language: str, most: int) -> list[str]:
        """The languages besides this one of which fewer than `most` are among the hits."""
        found = Counter(self.by_document.get(hit.doc_id) for hit in hits)
        others = self.conditions.keys() - {language}
        return sorted(other for other in others if found[other] < most)

    @cached_property
    def conditions(self) -> Mapping[str, str]:
        """By language: that a chunk is of a document in it, as the store's SQL."""
        return {
            language: among([d for d, code in self._every.items() if code == language], self._every)
            for language in sorted({*self.by_document.values()})
        }


def of_other_languages(
    ranked: Sequence[Hit], language: str, most: int, by_document: Mapping[str, str]
) -> list[Hit]:
    """The first `most` hits of every language but this one, in order."""
    found = Counter[str]()
    chosen = []
    for hit in ranked:
        other = by_document.get(hit.doc_id, language)
        if other != language and found[other] < most:
            found[other] += 1
            chosen.append(hit)
    return chosen
