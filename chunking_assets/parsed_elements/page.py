"""One self-contained page: a document as its parser understood it, elements coloured by kind.

What went wrong in parsing is seen at a glance and by nobody in a table. The document is data: every
character of it is escaped, and the page runs nothing and loads nothing.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import get_args

from chunking_assets.parsed_elements.document import Element, Kind

TEMPLATE = Path(__file__).with_name("page.html")
MOST_CHARS = 500_000
"""What a browser lays out in a second or two; the page of a longer text says where it ends."""


def elements_page(name: str, text: str, elements: Sequence[Element], notes: str) -> str:
    """The page as HTML; `notes` is one line about the document."""
    shown = [element for element in elements if element.start < MOST_CHARS]
    if len(text) > MOST_CHARS:
        notes += f" The page shows the first {MOST_CHARS:,} characters."
    counts = Counter(element.kind for element in elements)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=escape(name),
        notes=escape(notes),
        colours="\n".join(_colour(kind, n) for n, kind in enumerate(get_args(Kind))),
        legend="".join(f'<li class="{kind}">{kind} {n:,}</li>' for kind, n in counts.most_common()),
        elements="\n".join(_shown(text, element) for element in shown),
    )


def facts(element: Element) -> str:
    """What is known of an element besides its kind and its text, on one line.

    >>> facts(Element("turn", 0, 5, attributes=(("speaker", "Ana"),)))
    'speaker Ana'
    """
    known = [
        f"level {element.level}" if element.level else "",
        element.language or "",
        " > ".join(element.heading_path),
        *(f"{name} {value}" for name, value in element.attributes),
    ]
    return " · ".join(filter(None, known))


def _shown(text: str, element: Element) -> str:
    content = escape(text[element.start : min(element.end, MOST_CHARS)])
    return (
        f'<section><div class="text {element.kind}">{content}</div>'
        f'<div class="facts"><b>{element.kind}</b> {element.start:,}–{element.end:,} '
        f"{escape(facts(element))}</div></section>"
    )


def _colour(kind: str, number: int) -> str:
    """Hues a golden angle apart differ most, however many there are."""
    hue = round(number * 137.5) % 360
    return (
        f".{kind} {{ background: hsl({hue} 60% var(--shade)); border-color: hsl({hue} 60% 50%); }}"
    )
