"""Source code by its definitions: functions, classes and methods whole while they fit."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field, StrictInt

from chunking_assets.chunk_sets.chunker import Chunk, Chunker
from chunking_assets.chunk_sets.packing import breadcrumbs, pack
from chunking_assets.chunk_sets.recursive import LEVELS
from chunking_assets.chunk_sets.spans import Document, ElementSpan

_CONTAINERS = frozenset(("class", "function", "method"))
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_ASIDE = ("@", "#", "//", "/*", "*", "--")
"""What stands above a signature without being it: decorators, attributes and comments."""

PREFIX_SHARE = 2
"""Half of the budget for imports and signatures: without them a piece of code says little."""


class CodeChunker(Chunker):
    """Each chunk holds as many whole definitions as fit: functions, methods, a class's head with
    its first methods. One that does not fit is cut at blank lines, then at statements of its own
    level, then at deeper ones. Decorators and the comments above a definition stay with it.

    Helps with source code of any language whose parser finds definitions (Python by its own
    grammar, the others by tree-sitter); text without definitions is cut as by `recursive`. The
    prefix holds the signatures that enclose the chunk and the file's imports, or those its first
    definition uses if all are too many: names mean nothing without them. After cAST (Zhang
    et al. 2025, arXiv:2506.15655): split at syntax nodes, then merge small siblings.

    Parameters: those of `Chunker`, with `max_tokens` 512 by default; `prefix: imports` (default),
    `signature` for the signatures alone, or as `Chunker` has it.
    """

    kind = "code"

    max_tokens: StrictInt = Field(default=512, ge=1, le=1_000_000)
    prefix: Literal["none", "breadcrumb", "title", "signature", "imports"] = "imports"  # type: ignore[assignment]

    def chunks(self, document: Document) -> Iterator[Chunk]:
        source = _Source(document, self)
        is_special = self.prefix in ("signature", "imports")
        if not source.holds_code:
            return pack(document, self, LEVELS, prefixes=source.prefixes if is_special else None)
        return pack(
            document,
            self,
            (source.definitions, *source.statements(), "line", "word"),
            prefixes=source.prefixes if is_special else None,
            prefix_share=PREFIX_SHARE,
            units=True,
        )


class _Source:
    """A document as source code: its definitions, what encloses them, its imports."""

    def __init__(self, document: Document, settings: CodeChunker) -> None:
        self.document, self.settings = document, settings
        self.elements = document.elements
        self.holds_code = any(e.kind in _CONTAINERS or e.kind == "import" for e in self.elements)
        self.imports = [
            statement
            for element in self.elements
            if element.kind == "import"
            for statement in _statements(document.text[element.start : element.end])
        ]
        self.definitions: list[int] = []
        self.ends: dict[int, int] = {}
        """Element to the end of what should be one chunk with it."""
        self.signatures: dict[int, list[tuple[tuple[str, ...], str]]] = {}
        """Element to the paths and signatures of it and what it is in, outermost first."""
        self._read()

    def _read(self) -> None:
        """A class's head is one with its first member, if both fit."""
        enclosing: list[tuple[tuple[str, ...], str]] = []
        head: ElementSpan | None = None
        for element in self.elements:
            path = tuple(element.heading_path)
            enclosing = [
                e for e in enclosing if len(e[0]) < len(path) and path[: len(e[0])] == e[0]
            ]
            if element.kind in _CONTAINERS:
                enclosing = [*enclosing, (path, _signature(self.document.text, element))]
            self.signatures[element.start] = enclosing
            self.ends[element.start] = element.end
            joins = head is not None and _is_in(element, head) and self._fit(head, element)
            if head is not None and joins:
                self.ends[head.start] = element.end
            else:
                start = self.document.skip_space(element.start, len(self.document.text))
                self.definitions.append(start)
            head = element if element.kind == "class" else None

    def _fit(self, first: ElementSpan, last: ElementSpan) -> bool:
        return self.document.count(first.start, last.end) <= self.settings.max_tokens

    def statements(self) -> Iterator[list[int]]:
        """Inside elements: lines after a blank one, then lines as deep as the element's body, then
        one and two levels deeper."""
        after_blank: list[int] = []
        by_depth: list[list[int]] = [[], [], []]
        for element in self.elements:
            lines = list(self.lines(element))
            depths = sorted({depth for _, depth, _ in lines})[: len(by_depth)]
            for start, depth, blank_before in lines:
                if blank_before and depth == depths[0]:
                    after_blank.append(start)
                if depth in depths:
                    by_depth[depths.index(depth)].append(start)
        yield after_blank
        found: list[int] = []
        for starts in by_depth:
            found = sorted([*found, *starts])
            yield found

    def lines(self, element: ElementSpan) -> Iterator[tuple[int, int, bool]]:
        """`(start of its text, indentation, whether a blank line precedes)` of each line of the
        body, those that only close what is open left out."""
        text = self.document.text
        body = int(element.attribute("header_end") or element.start)
        for start in self.document.lines_in(element.start, element.end):
            if start < body or text[start] in ")]}":
                continue
            line = max(text.rfind("\n", 0, start), text.rfind("\r", 0, start)) + 1
            indentation = len(text[line:start].expandtabs(8))
            blank = text.endswith(("\n\n", "\r\n\r\n", "\r\r"), 0, line)
            yield start, indentation, blank

    def prefixes(self, offset: int) -> Sequence[str]:
        """Imports and enclosing signatures; no more than leaves the definition whole that the
        chunk starts with, if it fits at all."""
        element = self.document.element_at(offset)
        if element is None:
            return []
        enclosing = self.signatures[element.start]
        begins = self.document.starts_element(element, offset)
        if element.kind in _CONTAINERS and begins:
            enclosing = enclosing[:-1]
        signatures = [signature for _, signature in enclosing if signature]
        candidates = []
        if self.settings.prefix == "imports" and element.kind != "import":
            used = self.used(offset, element)
            candidates += [[*self.imports, *signatures], [*used, *signatures]]
        candidates += [signatures[i:] for i in range(len(signatures))]
        found = ["\n".join(lines) + "\n" for lines in candidates if lines]
        found = found or breadcrumbs(self.document, self.settings, offset)
        room = self.settings.max_tokens
        if begins:
            n_tokens = self.document.count(offset, self.ends[element.start])
            room -= n_tokens if n_tokens <= room else 0
        counts = self.document.count_texts(found)
        return [prefix for prefix, n in zip(found, counts, strict=True) if n <= room]

    def used(self, offset: int, element: ElementSpan) -> list[str]:
        """The import statements that name something the rest of the element uses."""
        end = min(self.ends[element.start], offset + self.settings.char_cap)
        used = {*_IDENTIFIER.findall(self.document.text[offset:end])}
        return [s for s in self.imports if used.intersection(_IDENTIFIER.findall(s)) - _WORDS]


_WORDS = frozenset(
    ("import", "from", "as", "use", "using", "include", "require", "static", "const")
)
"""Of import statements, not of what they import."""


def _is_in(element: ElementSpan, head: ElementSpan) -> bool:
    outer = tuple(head.heading_path)
    path = tuple(element.heading_path)
    return path[: len(outer)] == outer and (len(path) > len(outer) or element.kind == "code")


def _statements(imports: str) -> Iterator[str]:
    """The import statements of a block, one of several lines whole."""
    lines: list[str] = []
    open_brackets = 0
    for line in imports.splitlines():
        if line.strip() or lines:
            lines.append(line)
        open_brackets += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if lines and open_brackets <= 0 and not line.rstrip().endswith(("\\", ",")):
            yield "\n".join(lines).rstrip()
            lines, open_brackets = [], 0
    if lines:
        yield "\n".join(lines).rstrip()


def _signature(text: str, element: ElementSpan) -> str:
    """The lines that declare a class or function, without what stands above them."""
    end = int(element.attribute("header_end") or element.end)
    lines = text[element.start : min(end, element.end)].splitlines()
    own = [line for line in lines if line.strip() and not line.strip().startswith(_ASIDE)]
    return "\n".join(own).rstrip()
