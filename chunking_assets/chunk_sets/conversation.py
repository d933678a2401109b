"""Whole turns of a conversation, a few to a chunk, with who speaks and when before them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field, StrictInt, model_validator

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import breadcrumbs, pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.spans import Document, ElementSpan


class ConversationChunker(Chunker):
    """Each chunk holds at most `turns` whole turns, as many as fit `max_tokens`. A turn longer
    than that is cut as by `recursive`, and every piece is told whose it is.

    Helps with chats, support tickets, interviews and meetings, where a question and its answer
    belong together and a message without its speaker misleads. The prefix names the speakers of the
    turns and the time of the first: `"Ana, Bo (2026-05-12 09:14)"`. Turns as units, a few to a
    session: Pan et al., "SeCom: on memory construction and retrieval for personalized
    conversational agents" (ICLR 2025, arXiv:2502.05589).

    Parameters: those of `Chunker`; `turns` (default 5) and `overlap_turns` (default 1: a chunk
    begins with the last turn of the one before, unless that is more than half of it) in turns, in
    place of `overlap` in tokens; `prefix: speakers` (default). Text without turns is cut as by
    `recursive`.
    """

    kind = "conversation"

    turns: StrictInt = Field(default=5, ge=1, le=1000)
    overlap_turns: StrictInt = Field(default=1, ge=0, le=100)
    prefix: Literal["none", "breadcrumb", "title", "speakers"] = "speakers"  # type: ignore[assignment]

    @model_validator(mode="after")
    def _turns_fit_each_other(self) -> "ConversationChunker":
        if self.overlap:
            raise ValueError("a conversation overlaps by whole turns: give overlap_turns")
        if self.overlap_turns and self.overlap_turns >= self.turns:
            raise ValueError(
                f"overlap_turns ({self.overlap_turns}) must be smaller than turns ({self.turns})"
            )
        return self

    def chunks(self, document: Document) -> Iterator[Chunk]:
        view = _Turns(document, self)
        chunks = pack(
            document,
            self,
            (view.starts, *LEVELS),
            prefixes=view.prefixes if self.prefix == "speakers" else None,
            repeated=view.repeated if self.overlap_turns else None,
            furthest=view.furthest,
            units=True,
        )
        return map(view.named, chunks) if self.prefix == "speakers" else chunks


class _Turns:
    """Where the turns of a document start, and who speaks in them."""

    def __init__(self, document: Document, settings: ConversationChunker) -> None:
        self.document, self.settings = document, settings
        self.turns = [element for element in document.elements if element.kind == "turn"]
        end = len(document.text)
        self.starts = [document.skip_space(turn.start, end) for turn in self.turns]

    def furthest(self, start: int) -> int:
        """The end of the last turn a chunk may hold that starts here."""
        index = max(0, bisect_right(self.starts, start) - 1) + self.settings.turns
        return self.starts[index] if index < len(self.starts) else len(self.document.text)

    def repeated(self, start: int, end: int) -> int | None:
        """The start of the last turns of a chunk, of at most half of it."""
        last = bisect_left(self.starts, end)
        first = bisect_left(self.starts, (start + end + 1) // 2, 0, last)
        index = max(first, last - self.settings.overlap_turns)
        return self.starts[index] if index < last else None

    def prefixes(self, offset: int, end: int | None = None) -> list[str]:
        """Who speaks in a chunk, and when its first turn was; if its end is not known yet, all who
        may speak in it."""
        first = bisect_right(self.starts, offset) - 1
        after = len(self.starts) if end is None else bisect_left(self.starts, end)
        turns = self.turns[max(0, first) : min(after, max(0, first) + self.settings.turns)]
        if not turns:
            return breadcrumbs(self.document, self.settings, offset)
        crumb = next(iter(breadcrumbs(self.document, self.settings, offset)), "").strip()
        speakers = list(dict.fromkeys(filter(None, (_fact(turn, "speaker") for turn in turns))))
        time = _fact(turns[0], "time") if first >= 0 else ""
        named = [", ".join(speakers[:n]) for n in range(len(speakers), 0, -1)]
        timed = [f"{names} ({time})" for names in named] if time else []
        lines = [f"{crumb} · {timed[0] if timed else named[0]}"] if crumb and named else []
        return [line + "\n" for line in [*lines, *timed, *named]]

    def named(self, chunk: Chunk) -> Chunk:
        """The chunk without the names of those whose turns did not fit into it."""
        if chunk.prefix:
            for prefix in self.prefixes(chunk.start, chunk.end):
                if prefix == chunk.prefix:
                    break
                n_tokens = self.document.count_exactly([(prefix, chunk.start, chunk.end)])[0]
                if n_tokens <= chunk.n_tokens:
                    return replace(chunk, prefix=prefix, n_tokens=n_tokens)
        return chunk


def _fact(turn: ElementSpan, name: str) -> str:
    return str(turn.attribute(name) or "")
