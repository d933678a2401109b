"""One self-contained page: a document, and beside it the chunks of each strategy as bands.

People judge a strategy by looking where it cuts. The document is data: its text reaches the page as
JSON inside a script element that is not run, and the browser is only ever given it as text.
"""

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, pstdev

from chunking_assets.chunk_sets.chunker import Chunk

TEMPLATE = Path(__file__).with_name("page.html")
MOST_CHARS = 300_000
"""What a browser lays out in a second or two; the page of a longer text says where it ends."""
AT_THE_CAP = 0.95
COLUMNS = (
    "strategy", "chunks", "mean tokens", "largest", "variation", "at the cap", "left out"
)  # fmt: skip


@dataclass(frozen=True)
class Bands:
    """What one strategy made of the document: its chunks, the budget, the spans left out."""

    strategy: str
    max_tokens: int
    chunks: Sequence[Chunk]
    excluded: Sequence[tuple[int, int]] = ()


def chunks_page(name: str, text: str, strategies: Sequence[Bands]) -> str:
    """The page as HTML; it loads nothing from anywhere."""
    shown = text[:MOST_CHARS]
    utf16 = _Utf16(shown)
    notes = f"{len(text):,} characters."
    if len(shown) < len(text):
        notes += f" The page shows the first {len(shown):,}; the table is about the whole."
    data = {
        "name": name,
        "text": shown,
        "notes": notes,
        "columns": COLUMNS,
        "strategies": [_strategy(bands, utf16, len(shown)) for bands in strategies],
    }
    # Inside a script element nothing but its end tag is special, and JSON may escape it.
    content = json.dumps(data).replace("<", "\\u003c")
    before, _, after = TEMPLATE.read_text(encoding="utf-8").partition("__DATA__")
    return before + content + after


def _strategy(bands: Bands, utf16: "_Utf16", length: int) -> dict[str, object]:
    return {
        "name": bands.strategy,
        "summary": summary(bands),
        "chunks": [
            {
                "start": utf16.at(chunk.start),
                "end": utf16.at(min(chunk.end, length)),
                "from": chunk.start,
                "to": chunk.end,
                "tokens": chunk.n_tokens,
                "prefix": chunk.prefix,
                "headings": " > ".join(chunk.heading_path),
                "level": chunk.level,
                "searched": chunk.searched,
                "over": chunk.over_budget,
                "remark": chunk.remark,
            }
            for chunk in bands.chunks
            if chunk.start < length
        ],
        "excluded": [
            [utf16.at(a), utf16.at(min(b, length))] for a, b in bands.excluded if a < length
        ],
    }


def summary(bands: Bands) -> list[str]:
    """The cells under `COLUMNS`; sizes are those of searched chunks, in tokens with the prefix."""
    sizes = [chunk.n_tokens for chunk in bands.chunks if chunk.searched] or [0]
    average = mean(sizes)
    full = sum(size >= AT_THE_CAP * bands.max_tokens for size in sizes)
    left_out = sum(end - start for start, end in bands.excluded)
    return [
        bands.strategy,
        f"{len(bands.chunks):,}",
        f"{average:.0f}",
        f"{max(sizes):,} of {bands.max_tokens:,}",
        f"{pstdev(sizes) / average:.2f}" if average else "–",
        f"{full / len(sizes):.0%}",
        f"{left_out:,} chars" if left_out else "–",
    ]


class _Utf16:
    """Browsers count in UTF-16: a character beyond U+FFFF is two."""

    def __init__(self, text: str) -> None:
        self.wide = [at for at, char in enumerate(text) if char > "\uffff"]

    def at(self, offset: int) -> int:
        return offset + bisect_left(self.wide, offset)
