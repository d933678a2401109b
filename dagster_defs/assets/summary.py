"""What people read on an asset's page: counts, lists and pictures from a stage's result."""

from collections.abc import Mapping, Sequence

import polars as pl

from chunking_assets.raw_documents.changes import ChangeSet

LISTED = 20


def document_counts(changes: ChangeSet) -> dict[str, int]:
    """Documents by what happened to them, as metadata and as columns of the build log."""
    return {
        "documents_added": len(changes.added),
        "documents_changed": len(changes.changed),
        "documents_removed": len(changes.removed),
        "documents_unchanged": len(changes.unchanged),
    }


def documents_list(changes: ChangeSet) -> str:
    """Markdown: which documents were added, changed, moved and removed; the first few of each."""
    moved, excluded = dict(changes.moved), {*changes.excluded}
    lines = [
        f"- {what} `{doc_id}`"
        for what, documents in (
            ("added", changes.added),
            ("changed", changes.changed),
            ("moved", [f"{old}` to `{new}" for old, new in changes.moved]),
            ("excluded by you, in corpus.yaml:", changes.excluded),
            ("removed", [d for d in changes.removed if d not in moved and d not in excluded]),
        )
        for doc_id in [*documents[:LISTED], *_more(documents)]
    ]
    return "\n".join(lines) or "nothing changed"


def _more(documents: Sequence[str]) -> list[str]:
    return [f"… and {len(documents) - LISTED} more"] if len(documents) > LISTED else []


def counted(things: Mapping[str, int]) -> str:
    """Markdown: what there is how often, the most frequent first; the first few."""
    ordered = sorted(things.items(), key=lambda item: -item[1])
    lines = [f"- {count:,} × {thing}" for thing, count in ordered[:LISTED]]
    return "\n".join(lines + [f"- {more}" for more in _more([*things])]) or "none"


def histogram(values: pl.Series, limit: int, label: str) -> str:
    """Markdown with an inline SVG: how `values` are spread from 0 to `limit`, in 20 bars."""
    from base64 import b64encode

    bars = 20
    bar = (values * bars // max(1, limit)).clip(0, bars - 1)
    counted = dict(bar.value_counts().iter_rows())
    counts = [counted.get(number, 0) for number in range(bars)]
    tallest = max([*counts, 1])
    rectangles = "".join(
        f'<rect x="{20 + i * 18}" y="{90 - 70 * c / tallest:.1f}" width="16" '
        f'height="{70 * c / tallest:.1f}" fill="#4f43dd"><title>{c}</title></rect>'
        for i, c in enumerate(counts)
    )
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="115" '
        'font-family="sans-serif" font-size="11" fill="#888">'
        f'{rectangles}<text x="20" y="105">0</text>'
        f'<text x="380" y="105" text-anchor="end">{limit} {label}</text></svg>'
    )
    return f"![{label}](data:image/svg+xml;base64,{b64encode(svg.encode()).decode()})"
