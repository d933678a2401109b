"""The coarsest boundary that fits: block, line, sentence, word, grapheme; or own separators."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field, field_validator, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import pack
from chunking_assets.chunk_sets.spans import Document, Level

LEVELS: tuple[Level, ...] = ("block", "line", "sentence", "word")

Preset = Literal[
    "none", "markdown", "html", "latex", "python", "javascript", "java", "go", "rust", "c",
    "ruby", "sql",
]  # fmt: skip

PRESETS: dict[Preset, tuple[str, ...]] = {
    "none": (),
    "markdown": ("\n# ", "\n## ", "\n### ", "\n#### ", "\n```", "\n---\n", "\n\n", "\n", ". "),
    "html": ("<article", "<section", "<h1", "<h2", "<h3", "<table", "<div", "<p", "<li", "<tr"),
    "latex": (
        "\n\\chapter{", "\n\\section{", "\n\\subsection{", "\n\\begin{", "\n\\item", "\n\n", "\n",
    ),
    "python": ("\nclass ", "\n@", "\ndef ", "\n    def ", "\n\n", "\n"),
    "javascript": (
        "\nclass ", "\nexport ", "\nfunction ", "\nconst ", "\nlet ", "\n  if ", "\n\n", "\n",
    ),
    "java": ("\nclass ", "\npublic ", "\n    public ", "\n    private ", "\n\n", "\n"),
    "go": ("\ntype ", "\nfunc ", "\nvar ", "\nconst ", "\n\n", "\n"),
    "rust": ("\nmod ", "\nimpl ", "\npub ", "\nfn ", "\n    pub fn ", "\n    fn ", "\n\n", "\n"),
    "c": ("\nclass ", "\nstruct ", "\nstatic ", "\nint ", "\nvoid ", "\n#", "\n\n", "\n"),
    "ruby": ("\nmodule ", "\nclass ", "\n  class ", "\ndef ", "\n  def ", "\n\n", "\n"),
    "sql": ("\ncreate ", "\nCREATE ", "\nselect ", "\nSELECT ", ";\n", "\n\n", "\n"),
}  # fmt: skip
"""Coarsest first, as LangChain's splitters order them, by what opens a unit in the language."""

_CLOSES = re.compile(r"[\s.,;:!?…。！？；、)\]}]+")


class RecursiveChunker(Chunker):
    """Each chunk is as long as `max_tokens` allows and ends at the last block that fits; where
    that leaves it under a quarter full, at the last line, sentence, word, or grapheme cluster.

    The sound default for prose and Markdown: paragraphs, list items, tables and code stay whole
    while they fit, a heading stays with what it heads. After RecursiveCharacterTextSplitter of
    LangChain, with parsed elements in place of separators and tokens in place of characters.

    Parameters: those of `Chunker`; `separators`, strings in place of blocks, lines and sentences,
    coarsest first: a chunk ends behind one that closes something (`"\\n\\n"`, `"; "`) and before
    one that opens something (`"\\n## "`, `"<p"`); `preset`, the separators usual for a language
    (default `none`), behind which words come. Source code and Markdown that a parser knows are cut
    better without either.
    """

    kind = "recursive"

    separators: tuple[str, ...] = Field(default=(), max_length=50)
    preset: Preset = "none"

    @field_validator("separators")
    @classmethod
    def _separate(cls, separators: tuple[str, ...]) -> tuple[str, ...]:
        if "" in separators:
            raise ValueError("a separator is empty; below the last one, words are tried anyway")
        return separators

    @model_validator(mode="after")
    def _one_hierarchy(self) -> "RecursiveChunker":
        if self.separators and self.preset != "none":
            raise ValueError("give separators or a preset, not both")
        return self

    def chunks(self, document: Document) -> Iterator[Chunk]:
        separators = self.separators or PRESETS[self.preset]
        if not separators:
            return pack(document, self, LEVELS)
        return pack(document, self, (*(places(document.text, s) for s in separators), "word"))


def places(text: str, separator: str) -> Sequence[int]:
    r"""Where a text may be cut at a separator: behind it if all of it closes something, else
    before its first character that is not white space.

    >>> places("a; b", "; "), places("a\n## b", "\n## ")
    ([3], [2])
    """
    inside = len(separator)
    if not _CLOSES.fullmatch(separator):
        inside -= len(separator.lstrip())
    return [match.start() + inside for match in re.finditer(re.escape(separator), text)]
