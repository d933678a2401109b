"""The change feed of a shard: added, changed, removed, unchanged, and the guard on deletion.

Absence deletes, so a listing that lost many documents at once is more likely a fault (an unmounted
disk, a wrong path) than a wish: it is refused until a person confirms.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from chunking_assets.errors import DeletionRefused

MAX_LOST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """doc_ids by what happened to them since the last read; all sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def redo(self) -> tuple[str, ...]:
        return tuple(sorted((*self.added, *self.changed)))

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def compare(before: Mapping[str, str], now: Mapping[str, str]) -> ChangeSet:
    """Compare two states, each doc_id -> key.

    >>> compare({"a": "1", "b": "1", "c": "1"}, {"a": "1", "b": "2", "d": "1"})
    ChangeSet(added=('d',), changed=('b',), removed=('c',), unchanged=('a',))
    """
    return ChangeSet(
        added=tuple(sorted(now.keys() - before.keys())),
        changed=tuple(sorted(d for d in now.keys() & before.keys() if now[d] != before[d])),
        removed=tuple(sorted(before.keys() - now.keys())),
        unchanged=tuple(sorted(d for d in now.keys() & before.keys() if now[d] == before[d])),
    )


def guard_deletion(shard: str, known: int, removed: int) -> None:
    """Refuse a listing that is empty or lost more than 30 % of a shard's documents.

    The last document of a shard, and one of any few, can go without a question only while others
    remain.

    Raises:
        DeletionRefused: with the command that confirms.
    """
    if removed == 0 or (removed < known and (removed == 1 or removed <= MAX_LOST_SHARE * known)):
        return
    raise DeletionRefused(
        f"shard {shard}: {removed} of {known} documents are gone from the listing. "
        "Nothing was deleted. If that is meant, confirm with: "
        f"make confirm-deletions SHARD={shard}"
    )
