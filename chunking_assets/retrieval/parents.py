"""Auto-merging: several children of one parent give way to the parent."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from chunking_assets.retrieval.hit import Hit


@dataclass(frozen=True, slots=True)
class Family:
    """A parent as the index holds it, and how many children it has there."""

    parent: Hit
    children: int


Families = Callable[[Sequence[Hit]], Mapping[str, Family]]
"""The families of hits that have a parent, by the parent's chunk_id."""


def with_parents(
    hits: Sequence[Hit], share: float, families: Families, token_budget: int | None = None
) -> list[Hit]:
    """The hits, a parent in place of its children where at least `share` of them are among these.

    The parent takes the place and the score of its best child, and whatever else lies inside it
    goes. Parents are children in turn, so this goes on upwards. A parent that would bring the hits
    over `token_budget` (tokens of the index's model) is not taken. The auto-merging retriever of
    LlamaIndex.
    """
    hits = list(hits)
    known: dict[str, Family] = {}
    while True:
        orphans = [h for h in hits if h.parent_id is not None and h.parent_id not in known]
        known |= families(orphans) if orphans else {}
        merged = _merged_once(hits, share, known, token_budget)
        if merged is None:
            return hits
        hits = merged


def _merged_once(
    hits: Sequence[Hit], share: float, known: Mapping[str, Family], token_budget: int | None
) -> list[Hit] | None:
    """The hits after the first merge that is due, lower levels and better hits first; or None."""
    found = Counter(hit.parent_id for hit in hits)
    best = {hit.parent_id: at for at, hit in reversed([*enumerate(hits)])}
    due = [
        (f.parent.level, best[name])
        for name, f in known.items()
        if found[name] / f.children >= share
    ]
    for _, at in sorted(due):
        family = known[hits[at].parent_id or ""]
        parent = replace(family.parent, score=hits[at].score)
        merged = [
            parent if number == at else hit
            for number, hit in enumerate(hits)
            if number == at or not holds(parent, hit)
        ]
        if token_budget is None or sum(hit.n_tokens for hit in merged) <= token_budget:
            return merged
    return None


def holds(parent: Hit, hit: Hit) -> bool:
    """Whether the hit lies inside the parent's span."""
    return hit.doc_id == parent.doc_id and parent.start <= hit.start and hit.end <= parent.end
