"""From ranked hits to what is handed on: how many, how good, how long; then joined."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from chunking_assets.retrieval.hit import Hit, Passage


@dataclass(frozen=True, slots=True)
class Selection:
    """The hits handed on, in order, and of all others why they are not, by chunk_id."""

    hits: list[Hit]
    dropped: dict[str, str]


def select(
    ranked: Sequence[Hit],
    *,
    k: int | None = None,
    token_budget: int | None = None,
    beside: Callable[[Hit], Sequence[Hit]] = lambda hit: (),
) -> Selection:
    """The first hits that satisfy every limit given, each with what `beside` hands on with it.

    `k` bounds the hits, those beside them left out; one that came as a neighbour of a better one is
    handed on already and does not count. `token_budget` stops before the hit that would exceed it,
    were it the first, and leaves out neighbours that would.
    """
    chosen: dict[str, Hit] = {}
    dropped: dict[str, str] = {}
    count = tokens = 0
    full: str | None = None
    for hit in ranked:
        if hit.chunk_id in chosen:
            continue
        if full is None and count == k:
            full = f"k: {k} better hits were handed on"
        if full is None and token_budget is not None and tokens + hit.n_tokens > token_budget:
            full = f"token_budget: {tokens} of {token_budget} tokens were used"
        if full is not None:
            dropped[hit.chunk_id] = full
            continue
        count += 1
        for number, other in enumerate((hit, *beside(hit))):
            if other.chunk_id in chosen or (
                number and token_budget is not None and tokens + other.n_tokens > token_budget
            ):
                continue
            chosen[other.chunk_id] = other
            tokens += other.n_tokens
    return Selection(
        list(chosen.values()), {i: why for i, why in dropped.items() if i not in chosen}
    )


def within(hits: Sequence[Hit], more: Sequence[Hit], token_budget: int | None) -> list[Hit]:
    """The hits, and of the others, in order, those that are not among them and that fit."""
    chosen = {hit.chunk_id: hit for hit in hits}
    tokens = sum(hit.n_tokens for hit in hits)
    for hit in more:
        fits = token_budget is None or tokens + hit.n_tokens <= token_budget
        if hit.chunk_id in chosen or not fits:
            continue
        chosen[hit.chunk_id] = hit
        tokens += hit.n_tokens
    return list(chosen.values())


def cut(ranked: Sequence[Hit], share: float) -> list[Hit]:
    """The hits that score at least that share of the best one."""
    return [hit for hit in ranked if hit.score >= share * ranked[0].score]


def merge(
    hits: Iterable[Hit],
    *,
    adjacent: bool = True,
    neighbours: Collection[frozenset[str]] = (),
) -> list[Passage]:
    """Passages in order of their best hit; hits that follow each other in a document are joined.

    Two hits follow each other when their spans touch or overlap, when no chunk lies between them,
    or when `neighbours` has the pair of their chunk_ids. With `adjacent` off every hit is its own
    passage.
    """

    def follow(one: Hit, other: Hit) -> bool:
        return _follow(one, other) or frozenset((one.chunk_id, other.chunk_id)) in neighbours

    groups: list[list[Hit]] = []
    for hit in hits:
        near = [g for g in groups if adjacent and any(follow(hit, o) for o in g)]
        joined = [hit, *(other for group in near for other in group)]
        if near:
            groups[groups.index(near[0])] = joined
            groups = [g for g in groups if g not in near[1:]]
        else:
            groups.append(joined)
    return [_passage(sorted(group, key=lambda h: (h.start, -h.end))) for group in groups]


def _follow(one: Hit, other: Hit) -> bool:
    return one.doc_id == other.doc_id and (
        (one.start <= other.end and other.start <= one.end)
        or (one.level == other.level and abs(one.ordinal - other.ordinal) == 1)
    )


def _passage(hits: list[Hit]) -> Passage:
    spans: list[tuple[int, int]] = []
    text, n_tokens = "", 0
    for hit in hits:
        if spans and hit.end <= spans[-1][1]:
            continue
        if spans and hit.start <= spans[-1][1]:
            start, end = spans[-1]
            text += hit.text[end - hit.start :]
            spans[-1] = (start, hit.end)
        else:
            text += ("\n\n" if spans else "") + hit.text
            spans.append((hit.start, hit.end))
        n_tokens += hit.n_tokens
    return Passage(
        doc_id=hits[0].doc_id,
        spans=tuple(spans),
        text=text,
        heading_path=hits[0].heading_path,
        n_tokens=n_tokens,
        score=max(hit.score for hit in hits),
        hits=tuple(hits),
    )
