"""Neighbours: what stands beside a hit makes it likelier, and may be read along with it.

Small chunks say where the answer is, and often cut it in two. Two steps mend that: `smooth` lets
the neighbours' scores count in the order, `expand` hands neighbours on that score well themselves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from pydantic import BaseModel, ConfigDict, Field

from chunking_assets.retrieval.hit import Hit

Place = tuple[str, int]
"""A document, and the position of a chunk in it."""


class Expand(BaseModel):
    """`expand:` of a profile: up to so many chunks `before` and `after` each hit are handed on with
    it, as long as each scores `share` of the best hit's score (None: whatever it scores)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: int = Field(default=1, ge=0, le=20)
    after: int = Field(default=1, ge=0, le=20)
    share: float | None = Field(default=None, gt=0, lt=1)


def smooth(hits: Sequence[Hit], beside: Mapping[Place, Hit], weight: float) -> list[Hit]:
    """The hits, each with `weight` times the scores of the chunks right before and after it added,
    best first. A neighbour not in `beside` adds nothing."""
    raised = (
        replace(
            hit,
            score=hit.score
            + weight
            * sum(
                beside[place].score
                for place in ((hit.doc_id, hit.ordinal - 1), (hit.doc_id, hit.ordinal + 1))
                if place in beside
            ),
        )
        for hit in hits
    )
    return sorted(raised, key=attrgetter("rank_key"))


def neighbours(
    hit: Hit, beside: Mapping[Place, Hit], settings: Expand, least_score: float | None
) -> list[Hit]:
    """The chunks to hand on with a hit, nearest first on each side: a side ends at the first chunk
    that scores below `least_score`."""
    found: list[Hit] = []
    for step, reach in ((-1, settings.before), (1, settings.after)):
        for distance in range(1, reach + 1):
            other = beside.get((hit.doc_id, hit.ordinal + step * distance))
            if other is None or (least_score is not None and other.score < least_score):
                break
            found.append(other)
    return found
