"""From ranked hits to what is handed on: how many, how good, how long; then joined."""

from collections.abc import Collection, Iterable, Sequence

from chunking_assets.retrieval.hit import Hit, Passage


def select(
    ranked: Sequence[Hit],
    *,
    k: int | None = None,
    cut: float | None = None,
    token_budget: int | None = None,
) -> list[Hit]:
    """The first hits that satisfy every limit given.

    `k` bounds their number; `cut` drops hits scoring below that share of the best one;
    `token_budget` stops before the hit that would exceed it, were it the first.
    """
    chosen: list[Hit] = []
    tokens = 0
    for hit in ranked[:k]:
        if cut is not None and hit.score < cut * ranked[0].score:
            break
        tokens += hit.n_tokens
        if token_budget is not None and tokens > token_budget:
            break
        chosen.append(hit)
    return chosen


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
        chunk_ids=tuple(hit.chunk_id for hit in hits),
    )
