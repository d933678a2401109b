"""The one packing loop: as much text as the budget holds, cut at the coarsest boundary in reach.

A strategy only says at which boundaries it may cut, and within which ranges. What every chunk
promises (exact span, budget, progress, whole graphemes) is kept here, once, for all of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.spans import Document, Level

LEAST_FILL = 4
"""A boundary counts if at least a quarter of what fits comes before it; else a finer one does."""

PREFIX_SHARE = 4
"""A prefix gets at most a quarter of the budget: the text needs the rest."""

MOST_AHEAD = 64
"""Chunks proposed before the tokenizer verifies them in one call."""

_NAME_THEMSELVES = frozenset(("heading", "class", "function", "method"))


def pack(
    document: Document,
    settings: Chunker,
    levels: Sequence[Level],
    ranges: Sequence[tuple[int, int]] | None = None,
) -> Iterator[Chunk]:
    """Chunks of at most `settings.max_tokens`, each cut at the coarsest of `levels` in reach.

    `levels` are tried in order; where none has a boundary, a chunk ends between two grapheme
    clusters. `ranges` are sorted, disjoint spans no chunk crosses (default: the whole text);
    overlap stays within its range and begins at a sentence or word, if `levels` has them. White
    space at the ends of a chunk is left out of its span.

    Token positions propose a chunk; tokenizing `prefix + text` verifies it, and one that turns
    out too long is shortened, because subword counts are not additive. Proposals run ahead in
    batches that grow while all hold, so verifying stays linear. A chunk depends on where it
    starts and the text it can reach, never on how the batches fell.
    """
    packer = _Packer(document, settings, levels, ranges or [(0, len(document.text))])
    ahead, next_draft = 1, packer.first(0)
    while next_draft is not None:
        drafts = list(islice(packer.onwards(next_draft), ahead))
        counts = document.count_exactly([(d.prefix, d.start, d.end) for d in drafts])
        for position, (draft, n_tokens) in enumerate(zip(drafts, counts, strict=True)):
            next_draft = packer.shortened(draft, n_tokens)
            if next_draft is not None:
                ahead = max(1, position)
                break
            yield packer.chunk(draft, n_tokens)
        else:
            ahead = min(2 * ahead, MOST_AHEAD)
            next_draft = packer.following(drafts[-1])


def fits(document: Document, settings: Chunker, start: int, end: int) -> bool:
    """Whether `[start, end)` makes one chunk, as far as token positions tell."""
    start = document.skip_space(start, end)
    end = document.trim(start, end)
    prefix = document.count_texts([prefix_at(document, settings, start)])[0]
    return (
        end - start <= settings.char_cap
        and prefix + document.count(start, end) <= settings.max_tokens
    )


def prefix_at(document: Document, settings: Chunker, offset: int) -> str:
    r"""What is put before a chunk that starts at `offset`: `""`, or e.g. `"Guide > Install\n"`.

    A breadcrumb names the headings above the chunk's first element; a chunk that starts with its
    own heading, class or function does not repeat it. A breadcrumb of over a quarter of the budget
    loses its outermost headings, then the first words of the innermost.
    """
    if settings.prefix == "none":
        return ""
    path = document.heading_path(offset)
    element = document.element_at(offset)
    if (
        element is not None
        and element.kind in _NAME_THEMSELVES
        and document.skip_space(element.start, offset) == offset
    ):
        path = path[:-1]
    if not path:
        return ""
    limit = settings.max_tokens // PREFIX_SHARE
    words = path[-1].split()[-limit:] if limit else []
    crumbs = [" > ".join(path[i:]) + "\n" for i in range(len(path))]
    crumbs += [" ".join(words[i:]) + "\n" for i in range(len(words))]
    counts = document.count_texts(crumbs)
    return next((c for c, n in zip(crumbs, counts, strict=True) if n <= limit), "")


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk `[start, end)` within range `number` that token positions promise to fit.

    It must go beyond `reached`, where the text no chunk holds yet begins; after it that is `rest`.
    """

    number: int
    start: int
    end: int
    reached: int
    rest: int
    prefix: str


class _Packer:
    """The steps of `pack`."""

    def __init__(
        self,
        document: Document,
        settings: Chunker,
        levels: Sequence[Level],
        ranges: Sequence[tuple[int, int]],
    ) -> None:
        self.document, self.settings, self.levels, self.ranges = document, settings, levels, ranges

    def first(self, number: int) -> _Draft | None:
        """The first chunk of range `number`, or of the next one that has text."""
        for later in range(number, len(self.ranges)):
            start, end = self.ranges[later]
            start = self.document.skip_space(start, end)
            if start < end:
                return self.draft(later, start, start)
        return None

    def following(self, draft: _Draft) -> _Draft | None:
        if draft.rest >= self.ranges[draft.number][1]:
            return self.first(draft.number + 1)
        return self.draft(draft.number, self.overlap_start(draft), draft.rest)

    def onwards(self, draft: _Draft | None) -> Iterator[_Draft]:
        """`draft` and what follows if every one holds."""
        while draft is not None:
            yield draft
            draft = self.following(draft)

    def overlap_start(self, draft: _Draft) -> int:
        """Where the next chunk starts: at a sentence in the first half of the overlap, or else at
        a word, or else without overlap.

        A chunk is never repeated by more than its share `overlap / max_tokens`, or short chunks
        would come again almost whole and the chunks of sparse text creep.
        """
        document, settings = self.document, self.settings
        if settings.overlap:
            share = (draft.end - draft.start) * settings.overlap // settings.max_tokens
            start = max(document.back(draft.end, settings.overlap), draft.end - share)
            places: tuple[tuple[Level, int], ...] = (
                ("sentence", (start + draft.end) // 2),
                ("word", draft.end),
            )
            for level, before in places:
                if level in self.levels:
                    found = document.first_boundary(start, before, level)
                    if found is not None:
                        return found
        return draft.rest

    def draft(
        self,
        number: int,
        start: int,
        reached: int,
        *,
        prefix: str | None = None,
        most: int | None = None,
    ) -> _Draft:
        """The longest promising chunk from `start`, of at most `most` characters, that goes beyond
        `reached`; if none does, the one without overlap."""
        document, settings, end = self.document, self.settings, self.ranges[number][1]
        prefix = prefix_at(document, settings, start) if prefix is None else prefix
        budget = settings.max_tokens - document.count_texts([prefix])[0]
        most = settings.char_cap if most is None else min(most, settings.char_cap)
        reach = min(document.reach(start, budget), start + most, end)
        # A boundary behind the white space at `reach` is in reach: the space will be trimmed.
        last = document.skip_space(reach, end) if document.is_apart(reach) else reach
        cut: int | None = end
        if last < end:
            least = max(reached, start + (reach - start) // LEAST_FILL)
            cut = document.last_boundary(least, last, self.levels)
        if cut is None:
            cut = document.grapheme_end(start, reach)
        if cut <= reached and start < reached:
            return self.draft(number, reached, reached)
        return _Draft(
            number=number,
            start=start,
            end=document.trim(start, cut),
            reached=reached,
            rest=document.skip_space(cut, end),
            prefix=prefix,
        )

    def shortened(self, draft: _Draft, n_tokens: int) -> _Draft | None:
        """A shorter draft if this one, of really `n_tokens`, is over the budget and can be cut."""
        if n_tokens <= self.settings.max_tokens:
            return None
        number, start, reached, prefix = draft.number, draft.start, draft.reached, draft.prefix
        if self.document.grapheme_end(start, start) >= draft.end:
            return self.draft(number, start, reached, prefix="") if prefix else None
        of_prefix = self.document.count_texts([prefix])[0]
        share = (self.settings.max_tokens - of_prefix) / (n_tokens - of_prefix)
        most = int((draft.end - start) * share)
        return self.draft(number, start, reached, prefix=prefix, most=most)

    def chunk(self, draft: _Draft, n_tokens: int) -> Chunk:
        text = self.document.text[draft.start : draft.end]
        return Chunk(
            start=draft.start,
            end=draft.end,
            text=text,
            prefix=draft.prefix,
            n_tokens=n_tokens,
            heading_path=self.document.heading_path(draft.start),
            over_budget=n_tokens > self.settings.max_tokens or len(text) > self.settings.char_cap,
        )
