"""Which version of a LanceDB table was served since when: what looking back is answered from.

The tag that readers follow says only what is served now. One row a publication says the rest, also
of versions that are cleaned by now, so that nobody takes an older one for the one asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl

from chunking_assets.workspace import Workspace

PUBLICATIONS = "publications"

PUBLICATIONS_SCHEMA = pl.Schema({"at": pl.Datetime("us", "UTC"), "version": pl.Int64()})

READER_GRACE = timedelta(days=1)
"""How long a reader may hold a version that is served no longer."""
KEEP_SUPERSEDED = timedelta(days=7)
"""How long one can look back."""


@dataclass(frozen=True)
class Publication:
    """A version of a table, and when it began to be served."""

    at: datetime
    version: int


def publications(workspace: Workspace, table: str) -> list[Publication]:
    """Every publication of a LanceDB table, the one now served last."""
    rows = workspace.table(PUBLICATIONS).read(table)
    return [] if rows is None else [Publication(at, version) for at, version in rows.iter_rows()]


def record_publication(workspace: Workspace, table: str, version: int) -> None:
    """Say that a version is served from now on."""
    row = pl.DataFrame([(datetime.now(UTC), version)], PUBLICATIONS_SCHEMA, orient="row")
    workspace.table(PUBLICATIONS).append(row, table)


def expired(
    held: Sequence[Publication],
    grace: timedelta,
    keep: timedelta,
    pinned: Sequence[datetime],
    now: datetime,
) -> list[Publication]:
    """Those whose time is over: see `LanceIndex.maintain`.

    >>> day = timedelta(days=1)
    >>> held = [Publication(datetime(2026, 5, 1, tzinfo=UTC) + n * day / 2, n) for n in range(20)]
    >>> [p.version for p in expired(held, day, 5 * day, (), held[-1].at)]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14]
    """
    over = []
    for one, following in pairwise(held):
        age = now - following.at
        is_pinned = any(one.at <= moment < following.at for moment in pinned)
        last_of_day = one.at.date() != following.at.date()
        if age > grace and not is_pinned and not (last_of_day and age <= keep):
            over.append(one)
    return over
