"""Walking through lists that come in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterator, Mapping, Sequence, TypeVar

T = TypeVar("T")

DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 250

#: A safeguard against a server that keeps handing out cursors.
MAX_PAGES = 10_000


class CursorLoop(RuntimeError):
    """The server returned the cursor it was given, or far too many pages."""


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list.

    ``next_cursor`` is ``None`` on the last page. Do not conclude from the
    number of items that a page is the last: the last one may be full, and
    one in the middle may be short.
    """

    items: Sequence[T]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def has_more(self) -> bool:
        return self.next_cursor is not None

    @classmethod
    def from_api(
        cls, raw: Mapping[str, Any], build: Callable[[Mapping[str, Any]], T]
    ) -> "Page[T]":
        return cls(
            items=[build(item) for item in raw.get("data", ())],
            next_cursor=raw.get("next_cursor") or None,
        )


def check_page_size(size: int) -> int:
    """Return the size, or raise ``ValueError`` if the API would refuse it."""
    if not 1 <= size <= MAX_PAGE_SIZE:
        raise ValueError(f"page size must be between 1 and {MAX_PAGE_SIZE}, not {size}")
    return size


def iterate(
    fetch: Callable[[str | None], Page[T]], *, limit: int | None = None
) -> Iterator[T]:
    """Yield the items of all pages, fetching each page when it is needed.

    Args:
        fetch: called with a cursor, or with ``None`` for the first page.
        limit: stop after this many items.

    Raises:
        CursorLoop: if a cursor comes back unchanged.
    """
    cursor: str | None = None
    sent = 0
    for _ in range(MAX_PAGES):
        page = fetch(cursor)
        for item in page:
            if limit is not None and sent >= limit:
                return
            yield item
            sent += 1
        if not page.has_more:
            return
        if page.next_cursor == cursor:
            raise CursorLoop(f"cursor {cursor!r} was returned twice")
        cursor = page.next_cursor
    raise CursorLoop(f"more than {MAX_PAGES} pages")
