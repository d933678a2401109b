"""The change feed of a shard: added, changed, removed, moved, unchanged, and the guard on deletion.

Absence deletes, so a listing that lost many documents at once is more likely a fault (an unmounted
disk, a wrong path) than a wish: it is refused until a person confirms. What corpus.yaml excludes
and what is found again under another path is not lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from chunking_assets.errors import DeletionRefused

MAX_LOST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """doc_ids by what happened to them since the last read; all sorted.

    Of the removed ones, `moved` are pairs with the path that now has the same bytes, in this shard
    or another of the collection, and `excluded` those that corpus.yaml no longer includes.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def redo(self) -> tuple[str, ...]:
        return tuple(sorted((*self.added, *self.changed)))

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def compare(before: Mapping[str, str], now: Mapping[str, str]) -> ChangeSet:
    """Compare two states, each doc_id -> key.

    >>> found = compare({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"})
    >>> found.added, found.changed, found.removed, found.unchanged
    (('d',), ('b',), ('c',), ('a',))
    """
    return ChangeSet(
        added=tuple(sorted(now.keys() - before.keys())),
        changed=tuple(sorted(d for d in now.keys() & before.keys() if now[d] != before[d])),
        removed=tuple(sorted(before.keys() - now.keys())),
        unchanged=tuple(sorted(d for d in now.keys() & before.keys() if now[d] == before[d])),
    )


def moves(gone: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """Old to new doc_id of documents that have the same revision; each new one is taken once.

    >>> moves({"a": "1", "b": "2"}, {"c": "1", "d": "1"})
    {'a': 'c'}
    """
    places: dict[str, list[str]] = {}
    for doc_id, doc_rev in sorted(new.items(), reverse=True):
        places.setdefault(doc_rev, []).append(doc_id)
    return {
        doc_id: places[doc_rev].pop()
        for doc_id, doc_rev in sorted(gone.items())
        if places.get(doc_rev)
    }


def guard_deletion(
    shard: str, known: int, lost: int, excluded: int = 0, *, nothing_listed: bool = False
) -> None:
    """Refuse a listing that is empty or lost more than 30 % of a shard's documents.

    `lost` are those neither moved nor excluded in corpus.yaml. The last document of a shard, and
    one of any few, can go without a question only while others remain. Patterns that leave nothing
    of the whole collection (`nothing_listed`) are more likely a typing error than a wish.

    Raises:
        DeletionRefused: with the command that confirms.
    """
    remain = known - excluded
    is_small = lost < remain and (lost == 1 or lost <= MAX_LOST_SHARE * remain)
    if (lost == 0 or is_small) and not (excluded and nothing_listed):
        return
    gone = [f"{lost} of {known} documents are gone from the listing"] if lost else []
    if excluded:
        gone.append(f"{excluded} of {known} are excluded by you, in corpus.yaml")
    raise DeletionRefused(
        f"shard {shard}: {', and '.join(gone)}. "
        "Nothing was deleted. If that is meant, confirm with: "
        f"make confirm-deletions SHARD={shard}"
    )
