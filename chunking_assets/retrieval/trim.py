"""Trimming: of a large chunk, from the first to the last of the good hits that lie in it.

Small chunks say precisely where an answer is but cut it in two; large ones hold all of it and much
besides. So small ones are searched and vote, each by its score, for the large one around them; that
is what is handed on, without what stands before the first and after the last of them.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil

from chunking_assets.retrieval.hit import Hit


def trim(
    ranked: Sequence[Hit],
    good: Sequence[Hit],
    parents: Callable[[Sequence[Hit]], Mapping[str, Hit]],
    token_budget: int | None = None,
) -> list[Hit]:
    """The parents of the hits, each in the place and with the scores of its best one.

    A parent is trimmed to the span from the first to the last of these hits and of the `good` ones
    that are its children. Its tokens are that share of the parent's that its text is, rounded up.
    A hit stays as it is where it has no parent, or one that would be over `token_budget` alone.
    `parents` finds those of hits, by their chunk_id.
    """
    known = parents(ranked)
    inside = defaultdict(list)
    for hit in (*ranked, *good):
        inside[hit.parent_id].append(hit)
    found: dict[str, Hit] = {}
    for hit in ranked:
        name = hit.parent_id
        if name is None or name not in known:
            found[hit.chunk_id] = hit
        elif name not in found:
            whole = _trimmed(known[name], hit, inside[name])
            over = token_budget is not None and whole.n_tokens > token_budget
            found[name] = hit if over else whole
    return list(found.values())


def _trimmed(parent: Hit, best: Hit, children: Sequence[Hit]) -> Hit:
    first = min(children, key=lambda hit: hit.start)
    end = max(hit.end for hit in children)
    text = parent.text[first.start - parent.start : end - parent.start]
    return replace(
        best,
        chunk_id=parent.chunk_id,
        ordinal=parent.ordinal,
        start=first.start,
        end=end,
        prefix=first.prefix,
        text=text,
        heading_path=first.heading_path,
        n_tokens=max(best.n_tokens, ceil(parent.n_tokens * len(text) / len(parent.text))),
        level=parent.level,
        parent_id=parent.parent_id,
    )
