"""The one packing loop: as much text as the budget holds, cut at the coarsest boundary in reach.

A strategy only says at which boundaries it may cut, within which ranges, and what stands before a
chunk. What every chunk promises (exact span, budget, progress, whole graphemes, code and table rows
whole while they fit, no chunk under the least size) is kept here, once, for all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.spans import Boundaries, Document, Level

LEAST_FILL = 4
"""A boundary counts if at least a quarter of what fits comes before it; else a finer one does."""

PREFIX_SHARE = 4
"""A prefix gets at most a quarter of the budget: the text needs the rest."""

MOST_AHEAD = 64
"""Chunks proposed before the tokenizer verifies them in one call."""

SURELY_OVER = 2
"""Subword counts by position differ from exact ones by far less than this factor."""

_NAME_THEMSELVES = frozenset(("heading", "class", "function", "method"))

Prefixes = Callable[[int], Sequence[str]]
"""What may stand before a chunk that starts at an offset: the first that is short enough does."""

Repeated = Callable[[int, int], int | None]
"""Where in a chunk `[start, end)` the next one may start; None: not in it."""


def pack(
    document: Document,
    settings: Chunker,
    levels: Sequence[Boundaries],
    ranges: Sequence[tuple[int, int]] | None = None,
    prefixes: Prefixes | None = None,
    prefix_share: int = PREFIX_SHARE,
    repeated: Repeated | None = None,
    furthest: Callable[[int], int] | None = None,
    units: bool = False,
) -> Iterator[Chunk]:
    """Chunks of at most `settings.max_tokens`, each cut at the coarsest of `levels` in reach.

    `levels` are tried in order; where none has a boundary, a chunk ends between two grapheme
    clusters. `ranges` are sorted, disjoint spans no chunk crosses (default: the whole text);
    overlap stays within its range and begins at a sentence or word, if `levels` has them. White
    space at the ends of a chunk is left out of its span. `prefixes` are the candidates for what
    stands before a chunk (default: as `settings.prefix` says), within `1 / prefix_share` of the
    budget; `repeated` is where overlap begins (default: as `settings.overlap` says); `furthest` is
    where a chunk that starts at an offset must have ended, whatever the budget. With `units`, what
    lies between two boundaries of the first level is not cut while it fits a chunk: overlap and
    fullness give way.

    A block of code or a row of a table that fits a chunk is not cut, whatever the levels are. A
    chunk of under `settings.min_tokens` joins its neighbour, also of the next range, if both fit
    one chunk; the end of a range takes from the chunk before it what it lacks.

    Token positions propose a chunk; tokenizing `prefix + text` verifies it, and one that turns
    out too long is shortened, because subword counts are not additive. Proposals run ahead in
    batches that grow while all hold, so verifying stays linear. A chunk depends on where it
    starts and the text it can reach, never on how the batches fell.
    """
    prefix = _Prefix(document, settings, prefixes, prefix_share)
    ranges = [(0, len(document.text))] if ranges is None else _parted(document, ranges)
    packer = _Packer(document, settings, levels, ranges, prefix, repeated, furthest, units)
    chunks = _packed(document, packer)
    return _joined(document, settings, chunks) if settings.min_tokens else chunks


def _parted(document: Document, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges, two joined where what they share is inside a grapheme cluster."""
    parted: list[tuple[int, int]] = []
    for start, end in ranges:
        if parted and parted[-1][1] == start and not document.is_apart(start):
            parted[-1] = parted[-1][0], end
        else:
            parted.append((start, end))
    return parted


def _packed(document: Document, packer: "_Packer") -> Iterator[Chunk]:
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


def _joined(document: Document, settings: Chunker, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The chunks, one that is too small joined with the one before it if both fit one chunk."""
    last: Chunk | None = None
    for chunk in chunks:
        if last is not None and min(last.n_tokens, chunk.n_tokens) < settings.min_tokens:
            n_tokens = document.count_exactly([(last.prefix, last.start, chunk.end)])[0]
            if n_tokens <= settings.max_tokens and chunk.end - last.start <= settings.char_cap:
                last = chunk_of(document, settings, (last.start, chunk.end), last.prefix, n_tokens)
                continue
        if last is not None:
            yield last
        last = chunk
    if last is not None:
        yield last


def chunk_of(
    document: Document,
    settings: Chunker,
    span: tuple[int, int],
    prefix: str,
    n_tokens: int,
) -> Chunk:
    """The chunk over a span, `n_tokens` being those of its prefix and what is kept of its text."""
    start, end = span
    text, kept = document.text[start:end], document.kept(start, end)
    return Chunk(
        start=start,
        end=end,
        text=text,
        prefix=prefix,
        n_tokens=n_tokens,
        heading_path=document.heading_path(start),
        over_budget=n_tokens > settings.max_tokens or len(text) > settings.char_cap,
        budget=settings.max_tokens,
        cleaned=None if kept == text else kept,
    )


def fits(document: Document, settings: Chunker, start: int, end: int) -> bool:
    """Whether `[start, end)` makes one chunk, as far as token positions tell."""
    start = document.skip_space(start, end)
    end = document.trim(start, end)
    prefix = prefix_at(document, settings, start)
    n_tokens = document.count_texts([prefix])[0] + document.count(start, end)
    return end - start <= settings.char_cap and n_tokens <= settings.max_tokens


def breadcrumbs(document: Document, settings: Chunker, offset: int) -> list[str]:
    r"""What may tell the place of a chunk that starts at `offset`, e.g. `"Guide > Install\n"`.

    The headings above the chunk's first element; a chunk that starts with its own heading, class
    or function does not repeat it. With `prefix: title` the document's title leads, unless it is
    the first heading. Shorter ones follow, without the outermost headings, then without the first
    words of the innermost.
    """
    path = document.heading_path(offset)
    element = document.element_at(offset)
    title = document.facts.title if settings.prefix == "title" else ""
    repeated = path[:1] == (title,)
    if (
        element is not None
        and element.kind in _NAME_THEMSELVES
        and document.starts_element(element, offset)
    ):
        repeated = repeated or path == (title,)
        path = path[:-1]
    if title and not repeated:
        path = (title, *path)
    if not path:
        return []
    words = path[-1].split()[-settings.max_tokens :]
    crumbs = [" > ".join(path[i:]) + "\n" for i in range(len(path))]
    return crumbs + [" ".join(words[i:]) + "\n" for i in range(1, len(words))]


def prefix_at(document: Document, settings: Chunker, offset: int) -> str:
    """What is put before a chunk that starts at `offset`, as `settings.prefix` says: the longest
    breadcrumb within a quarter of the budget, or nothing."""
    return _Prefix(document, settings, None, PREFIX_SHARE).at(offset)


class _Prefix:
    """Chooses what stands before a chunk."""

    def __init__(
        self, document: Document, settings: Chunker, candidates: Prefixes | None, share: int
    ) -> None:
        self.document, self.limit = document, settings.max_tokens // share
        if candidates is None and settings.prefix != "none":
            candidates = partial(breadcrumbs, document, settings)
        self.candidates = candidates

    def at(self, offset: int) -> str:
        candidates = self.candidates(offset) if self.candidates and self.limit else ()
        for candidate in candidates:
            if self.document.count_texts([candidate])[0] <= self.limit:
                return candidate
        return ""


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
        levels: Sequence[Boundaries],
        ranges: Sequence[tuple[int, int]],
        prefix: _Prefix,
        repeated: Repeated | None,
        furthest: Callable[[int], int] | None,
        units: bool,
    ) -> None:
        self.document, self.settings, self.levels, self.ranges = document, settings, levels, ranges
        self.prefix, self.repeated = prefix, repeated or self.overlap_within
        self.furthest, self.units = furthest, units

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
        """Where the next chunk starts: where overlap begins, unless that is the chunk's own start
        or would divide a cluster, code or a row of a table, or else without overlap."""
        start = self.repeated(draft.start, draft.end)
        if start is not None:
            start = self.document.skip_space(start, draft.end)  # out of what is excluded
            if (
                draft.start < start < draft.end
                and self.document.is_apart(start)
                and self.whole_around(start) is None
            ):
                return start
        return draft.rest

    def overlap_within(self, start: int, end: int) -> int | None:
        """At a sentence in the first half of the overlap, or else at a word, or else nowhere.

        A chunk is never repeated by more than its share `overlap / max_tokens`, or short chunks
        would come again almost whole and the chunks of sparse text creep.
        """
        document, settings = self.document, self.settings
        if settings.overlap:
            share = (end - start) * settings.overlap // settings.max_tokens
            first = max(document.back(end, settings.overlap), end - share)
            places: tuple[tuple[Level, int], ...] = (
                ("sentence", (first + end) // 2),
                ("word", end),
            )
            for level, before in places:
                if level in self.levels:
                    found = document.first_boundary(first, before, level)
                    if found is not None:
                        return found
        return None

    def whole_around(self, offset: int) -> tuple[int, int] | None:
        """The block of code or row of a table that a cut at `offset` would divide though it fits
        a chunk."""
        whole = self.document.whole_around(offset)
        if whole is None or whole[1] - whole[0] > self.settings.char_cap:
            return None
        prefix = self.prefix.at(whole[0])
        n_tokens = self.document.count_texts([prefix])[0] + self.document.count(*whole)
        # Positions tell what is far too long; near the budget, only the tokenizer does.
        if n_tokens > SURELY_OVER * self.settings.max_tokens:
            return None
        fits = self.document.count_exactly([(prefix, *whole)])[0] <= self.settings.max_tokens
        return whole if fits else None

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
        document, settings, whole_end = self.document, self.settings, self.ranges[number][1]
        end = min(whole_end, self.furthest(start)) if self.furthest else whole_end
        prefix = self.prefix.at(start) if prefix is None else prefix
        budget = settings.max_tokens - document.count_texts([prefix])[0]
        most = settings.char_cap if most is None else min(most, settings.char_cap)
        reach = min(document.reach(start, budget), start + most, end)
        # A boundary behind the white space at `reach` is in reach: the space will be trimmed.
        last = document.skip_space(reach, end) if document.is_apart(reach) else reach
        cut: int | None = end
        if last < end:
            least = max(reached, start + (reach - start) // LEAST_FILL)
            cut = document.last_boundary(least, last, self.levels[: self.units])
            if self.units and cut is None and (unit := self.unit_around(start, last, end)):
                if unit > reached:
                    cut = unit
                elif start < reached:
                    return self.draft(number, reached, reached)
            cut = cut or document.last_boundary(least, last, self.levels)
            if cut is not None and settings.min_tokens:
                cut = self.leaving_enough(cut, least, end)
        if cut is None:
            cut = document.grapheme_end(start, reach)
        if cut < end and (whole := self.whole_around(cut)) is not None:
            if whole[0] > reached:
                before = document.last_boundary(reached, whole[0], self.levels)
                if before is None or self.whole_around(before) is not None:
                    before = whole[0]
                cut = before
            elif whole[0] == start:
                cut = whole[1]
            elif start < reached:
                cut = reached
        if cut <= reached and start < reached:
            return self.draft(number, reached, reached)
        return _Draft(
            number=number,
            start=start,
            end=document.trim(start, cut),
            reached=reached,
            rest=document.skip_space(cut, whole_end),
            prefix=prefix,
        )

    def unit_around(self, start: int, offset: int, end: int) -> int | None:
        """Where the unit starts that a cut at `offset` would divide though it fits a chunk."""
        document, units = self.document, self.levels[:1]
        first = document.last_boundary(start, offset, units)
        first = start if first is None else first
        following = document.next_boundary(offset, end, self.levels[0])
        stop = end if following is None else following
        budget = self.settings.max_tokens - document.count_texts([self.prefix.at(first)])[0]
        if document.count(first, stop) > budget or stop - first > 2 * self.settings.char_cap:
            return None
        fits = document.trim(first, stop) - first <= self.settings.char_cap
        return first if fits else None

    def leaving_enough(self, cut: int, least: int, end: int) -> int:
        """`cut`, or an earlier boundary if too little would be left for the last chunk."""
        document, settings = self.document, self.settings
        if cut >= end or document.count(cut, end) >= settings.min_tokens:
            return cut
        at_most = document.back(end, settings.min_tokens)
        return document.last_boundary(least, at_most, self.levels) or cut

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
        span = draft.start, draft.end
        return chunk_of(self.document, self.settings, span, draft.prefix, n_tokens)
