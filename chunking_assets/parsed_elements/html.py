"""HTML. The canonical text is Markdown written here from the page, without the page's furniture.

A page's source cannot be quoted or cut, so what a person reads in it is written down once, and the
span of each block is recorded as it is written. Navigation, cookie bars and other furniture are
left out by their element, role or class; when in doubt, text is kept. Characters that mean
something in Markdown are not escaped (pipes in tables excepted): the spans carry the structure.
Both passes are loops over the tree, so that depth costs memory and never the stack.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import (
    Element,
    HeadingStack,
    Kind,
    ParsedText,
    short_title,
)

VERSION = 1
LIBRARIES = ("selectolax", "charset-normalizer")

MAX_DEPTH = 20_000
MAX_REOPENED = 3_000_000
"""Bounds on work that the HTML standard makes quadratic: see `_check_nesting`."""
MAX_INDENT = 24
"""Lists nested deeper are no longer indented: indentation would outgrow the text."""
MAX_SPAN = 100
MAX_REPEATED_CHARS = 100_000
"""Most columns or rows one cell is repeated over, and characters repeated per table."""

_BREAK = "\0"
"""A line break on the page; decoding leaves no NUL in the text."""

_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([\w:.-]{1,40})", re.I
)


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_PREFORMATTED = {"pre", "listing", "xmp", "plaintext"}
_CODE = {"code", "kbd", "samp", "tt"}
_LISTS = {"ul", "ol", "menu", "dir"}
_TABLE_PARTS = {"thead", "tbody", "tfoot", "tr", "td", "th", "caption"}
_CELL_LINES = {"li", "tr", "dd"}
_BLOCKS = (
    _HEADINGS
    | _PREFORMATTED
    | _LISTS
    | _TABLE_PARTS
    | _tags(
        "html body address article aside blockquote center dd details dialog div dl dt fieldset "
        "figcaption figure footer form header hgroup hr legend li main nav p search section "
        "summary table"
    )
)
_UNREAD = _tags(
    "head script style noscript template svg canvas iframe object embed audio video map select "
    "textarea input datalist progress meter rp rt annotation annotation-xml"
)
_SECTIONING = {"article", "aside", "main", "nav", "section"}
_LABELS = _HEADINGS | {"summary", "dt", "legend"}
_FURNITURE_ROLES = _tags(
    "navigation banner contentinfo complementary search dialog alertdialog menu menubar toolbar"
)
_FURNITURE_NAME = re.compile(
    r"(?:[\w-]*[-_])?(?:cookie|gdpr|consent)s?[-_]?(?:bar|banner|box|notice|popup|modal|dialog|"
    r"overlay|wall|message|consent|prompt|manager|law)(?:[-_][\w-]*)?"
    r"|onetrust[\w-]*|breadcrumbs?|(?:site|page|nav|wp|mw|md|theme)[-_]breadcrumbs?"
    r"|(?:(?:left|right|primary|secondary|site|page|main|docs?|nav|toc|global)[-_])?sidebar"
    r"(?:[-_](?:left|right|nav|menu|primary|secondary|wrapper|container|inner))?|sphinxsidebar"
    r"|skip|skip[-_]?(?:link|links|nav|navigation)|skip[-_]to[\w-]*|toc|table-of-contents"
    r"|(?:(?:page|article|docs?)[-_])?feedback"
    r"|mw-editsection|mw-jump-link|mw-portlet(?:-[\w-]*)?|linenos|lineno"
    r"|headerlink|copiable-link|anchor-?link|header-anchor|hash-link",
    re.I,
)
_CALLOUT_NAME = re.compile(
    r"[\w-]*(?:note|tip|callout|admonition|aside|warning|info|alert)[\w-]*", re.I
)
_SECTION_NAME = re.compile(r"section|sect\d|level\d", re.I)
_BULLET = re.compile(r"\A[•◦▪‣·]\s*")
_CODE_LANGUAGE = re.compile(r"(?:language|lang|highlight|brush:|highlight-source)-?([\w+#.-]+)")
_NO_LANGUAGE = {"default", "none", "text", "plain", "plaintext", "wrapper"}
_BACKTICKS = re.compile(r"`+")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")

_FORMATTING = _tags("a b big code em font i nobr s small strike strong tt u")
_SHALLOW = _tags(
    "html head body p li td th tr tbody thead tfoot dt dd option optgroup colgroup rp rt area base "
    "br col embed hr img input link meta param source track wbr"
)


def parse(data: bytes) -> ParsedText:
    declared = _META_CHARSET.search(data, 0, 4096)
    return parse_text(decode(data, declared[1].decode("ascii") if declared else None))


def parse_text(text: str) -> ParsedText:
    """
    >>> parse_text("<nav>Home</nav><h2>Fees</h2><ul><li>card<li>cash</ul>").text
    '## Fees\\n\\n- card\\n- cash\\n'

    Raises:
        CorpusError: the page is nested so deep or left so many tags open that reading it could
            take the machine down.
    """
    from selectolax.lexbor import LexborHTMLParser

    _check_nesting(text)
    page = LexborHTMLParser(text)
    parsed = _written(page, keep_furniture=False)
    # A page that is all furniture to us (an app's shell, a body called sidebar) is still read.
    return parsed if parsed.elements else _written(page, keep_furniture=True)


def _check_nesting(text: str) -> None:
    """Refuse pages that would cost quadratic time, or memory, inside the HTML standard's rules.

    Each open element is looked through for each new one, and each formatting element left open is
    opened again in every later block: 300 KB of `<font>` and `<p>` become gigabytes.
    """
    depth = deepest = formatting = left_open = blocks = 0
    for tag_match in _TAG.finditer(text):
        closing, name = tag_match.groups()
        tag = name.lower()
        step = -1 if closing else 1
        if tag in _FORMATTING:
            formatting = max(0, formatting + step)
            left_open = max(left_open, formatting)
        else:
            blocks += 1
        if tag not in _SHALLOW:
            depth = max(0, depth + step)
            deepest = max(deepest, depth)
    if deepest > MAX_DEPTH or (left_open > 100 and left_open * blocks > MAX_REOPENED):
        raise CorpusError(
            f"tags are nested {deepest:,} deep and {left_open:,} formatting tags stay open over "
            f"{blocks:,} others; a page this broken cannot be read safely (limits: {MAX_DEPTH:,} "
            f"deep, {MAX_REOPENED:,} for the product of the other two). Close its tags."
        )


@dataclass(slots=True, eq=False)
class _Node:
    """An element that is read, with what its ancestors say about it.

    `section`: inside an article, main or the like, where a header is content; `article`: inside an
    article, where an aside is; `label`: inside a heading or the like, where a button is; `table`,
    `code`: the nearest table and the outermost inline code around it; `blocks`, `tables`: the
    headings and preformatted blocks, and the tables, whose nearest table or code it is.
    """

    tag: str
    attributes: dict[str, str | None]
    parent: "_Node | None" = None
    section: bool = False
    article: bool = False
    label: bool = False
    table: "_Node | None" = None
    code: "_Node | None" = None
    blocks: int = 0
    tables: int = 0
    children: list["_Node | str"] = field(default_factory=list)

    @classmethod
    def inside(cls, parent: "_Node", tag: str, attributes: dict[str, str | None]) -> "_Node":
        return cls(
            tag,
            attributes,
            parent,
            section=parent.section or parent.tag in _SECTIONING,
            article=parent.article or parent.tag == "article",
            label=parent.label or parent.tag in _LABELS,
            table=parent if parent.tag == "table" else parent.table,
            code=parent.code or (parent if parent.tag in _CODE else None),
        )

    def adopt(self, child: "_Node") -> None:
        self.children.append(child)
        is_block = child.tag in _HEADINGS or child.tag in _PREFORMATTED
        if child.table:
            child.table.blocks += is_block
            child.table.tables += child.tag == "table"
        if child.code:
            child.code.blocks += child.tag in _PREFORMATTED

    @property
    def names(self) -> list[str]:
        """The classes and the id by which the page's author calls the element."""
        names = f"{self.attributes.get('class') or ''} {self.attributes.get('id') or ''}".split()
        return [name for name in names if len(name) <= 100]

    def number(self, name: str, default: int) -> int:
        value = self.attributes.get(name) or ""
        return int(value) if value.isascii() and value.isdigit() and len(value) < 7 else default


def _tree(page: Any, keep_furniture: bool) -> _Node:
    """The page without what is not read."""
    protected = _protected(page)
    root = _Node("#page", {})
    open_nodes, parents, node = [root], [], page.root
    while node is not None:
        tag = node.tag
        if tag == "-text":
            open_nodes[-1].children.append(node.text_content)
        elif tag[0] not in "-!" and tag not in _UNREAD:
            read = _Node.inside(open_nodes[-1], tag, node.attributes)
            if tag == "button":
                kept = read.label
            else:
                kept = keep_furniture or not _is_furniture(read, node.mem_id in protected)
            if kept:
                open_nodes[-1].adopt(read)
                if (child := node.child) is not None:
                    parents.append(node)
                    open_nodes.append(read)
                    node = child
                    continue
        following = node.next
        while following is None and parents:
            open_nodes.pop()
            following = parents.pop().next
        node = following
    return root


def _protected(page: Any) -> set[int]:
    """What holds the page's title or its main part: no class name makes that furniture."""
    protected: set[int] = set()
    for node in page.css("h1, main, [role=main]"):
        while node is not None and node.mem_id not in protected:
            protected.add(node.mem_id)
            node = node.parent
    return protected


def _is_furniture(node: _Node, protected: bool) -> bool:
    """Whether an element serves the site rather than the page. When in doubt, it does not."""
    tag, role = node.tag, (node.attributes.get("role") or "").lower()
    if node.attributes.get("hidden", "until-found") != "until-found":
        return True
    if tag in ("nav", "dialog") or role in ("navigation", "dialog", "alertdialog"):
        return True
    if protected or tag in ("html", "body", "main", "article"):
        return False
    if node.attributes.get("aria-hidden") == "true" or role in _FURNITURE_ROLES:
        return True
    if tag in ("header", "footer") and not node.section:
        return True
    if tag == "aside" and not node.article and role != "note":
        return not any(map(_CALLOUT_NAME.fullmatch, node.names))
    # What a section, or a heading in it, is called says what it is about: id="cookie-banner".
    if tag in _HEADINGS or any(map(_SECTION_NAME.fullmatch, node.names)):
        return False
    names = (node.attributes.get("class") or "").split() if tag == "section" else node.names
    return any(_FURNITURE_NAME.fullmatch(name) for name in names if len(name) <= 100)


def _walk(top: _Node, is_whole: Callable[[_Node], bool]) -> Iterator[tuple[str, Any]]:
    """("text", text), ("enter", node), ("leave", node) in page order below `top`; a node that
    `is_whole` comes as ("whole", node) and is not entered."""
    nodes, rest = [top], [iter(top.children)]
    while rest:
        child = next(rest[-1], None)
        if child is None:
            rest.pop()
            node = nodes.pop()
            if rest:
                yield "leave", node
        elif isinstance(child, str):
            yield "text", child
        elif is_whole(child):
            yield "whole", child
        else:
            yield "enter", child
            nodes.append(child)
            rest.append(iter(child.children))


def _fold(text: str) -> str:
    """White space as a browser shows it; soft hyphens, which it does not show, left out."""
    return " ".join(text.replace("\xad", "").split())


def _raw(node: _Node) -> str:
    """All text below a node, white space as in the source."""
    pieces = []
    for event, item in _walk(node, lambda _: False):
        if event == "text":
            pieces.append(item)
        elif event == "enter" and item.tag == "br":
            pieces.append("\n")
    return "".join(pieces).replace("\r\n", "\n").replace("\r", "\n")


def _code_span(node: _Node) -> str:
    code = _fold(_raw(node))
    if not code:
        return ""
    longest = max(map(len, _BACKTICKS.findall(code)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {code} {fence}" if longest else f"`{code}`"


def _line(node: _Node, *, code_marks: bool = True) -> str:
    """Everything below a node on one line; items and rows of nested lists and tables end in ;"""
    lines: list[list[str]] = [[]]
    for event, item in _walk(node, lambda child: child.tag in _CODE and code_marks):
        if event == "text":
            lines[-1].append(item)
        elif event == "whole":
            lines[-1].append(_code_span(item))
        elif item.tag in _CELL_LINES:
            lines.append([])
        elif item.tag in _BLOCKS or item.tag == "br":
            lines[-1].append(" ")
    return "; ".join(filter(None, (_fold("".join(line)) for line in lines)))


def _heading_level(node: _Node) -> int:
    """1-6, or 0 if the node is no heading."""
    if node.tag in _HEADINGS:
        return int(node.tag[1])
    if node.attributes.get("role") == "heading":
        return min(max(node.number("aria-level", 2), 1), 6)
    return 0


def _is_whole(node: _Node) -> bool:
    """Whether a node is written in one go rather than entered."""
    if node.tag in _CODE:
        return not node.blocks
    return (
        node.tag in _PREFORMATTED
        or _heading_level(node) > 0
        or (node.tag == "table" and _is_data_table(node))
    )


def _rows(table: _Node) -> list[tuple[_Node, list[_Node]]]:
    """The table's own rows with their cells, in page order."""
    rows = []
    for part in table.children:
        if isinstance(part, str):
            continue
        for row in [part] if part.tag == "tr" else part.children:
            if isinstance(row, _Node) and row.tag == "tr":
                cells = [c for c in row.children if isinstance(c, _Node) and c.tag in ("td", "th")]
                rows.append((row, cells))
    return rows


def _is_data_table(table: _Node) -> bool:
    """Whether cells belong to rows and columns, or the table only arranges blocks on the page."""
    if table.attributes.get("role") in ("presentation", "none"):
        return False
    rows = [cells for _, cells in _rows(table)]
    if any(cell.tag == "th" for cells in rows for cell in cells):
        return True
    if table.blocks or len(rows) < 2 or max(map(len, rows)) < 2:
        return False
    return table.tables == 0 or (len(rows) > 2 and 4 * table.tables <= sum(map(len, rows)))


_Carried = dict[int, tuple[int, str]]
"""By column: for how many more rows a cell reaches down, and its text."""


def _grid(rows: list[list[_Node]]) -> list[list[str]]:
    """The cells' texts, a cell that spans rows or columns repeated in each of them."""
    grid: list[list[str]] = []
    above: _Carried = {}
    allowance = MAX_REPEATED_CHARS
    for cells in rows:
        line: list[str] = []
        below: _Carried = {}
        for cell in cells:
            _carry(line, above, below)
            text = _line(cell).replace("|", "\\|")
            columns = min(max(cell.number("colspan", 1), 1), MAX_SPAN)
            reach = min(max(cell.number("rowspan", 1), 1), MAX_SPAN)
            allowance -= (columns * reach - 1) * (len(text) + 3)
            if allowance < 0:
                columns = reach = 1
            for _ in range(columns):
                if reach > 1:
                    below[len(line)] = reach - 1, text
                line.append(text)
        _carry(line, above, below)
        above = below
        grid.append(line)
    return grid


def _carry(line: list[str], above: _Carried, below: _Carried) -> None:
    """Continue the row with the cells that reach into it from above."""
    while len(line) in above:
        rows_left, text = above[len(line)]
        if rows_left > 1:
            below[len(line)] = rows_left - 1, text
        line.append(text)


@dataclass(slots=True)
class _Frame:
    """A list, item, quote or definition around the text: how its blocks begin and are called."""

    node: _Node
    kind: Kind = "paragraph"
    first: str = ""
    rest: str = ""
    depth: int = 0
    quoted: bool = False
    fresh: bool = True
    number: int = 1
    outermost: _Node | None = None


class _Writer:
    """Writes blocks one after the other and records where each came to lie."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.elements: list[Element] = []
        self.headings = HeadingStack()
        self.pieces: list[str] = []
        self.frames: list[_Frame] = [_Frame(_Node("#page", {}))]
        self.last: _Frame | None = None

    def write(self, tree: _Node) -> None:
        for event, item in _walk(tree, _is_whole):
            if event == "text":
                self.pieces.append(item)
            elif event == "enter":
                self._enter(item)
            elif event == "leave":
                self._leave(item)
            elif item.tag in _CODE:
                self.pieces.append(_code_span(item))
            else:
                self._flush()
                self._whole(item)
        self._flush()

    def heading(self, title: str, plain: str, level: int, *, opens_section: bool = True) -> None:
        if not title:
            return
        path = self.headings.path
        if opens_section:
            path = self.headings.enter(level, plain)
        elif short := short_title(plain):
            path = (*path, short)
        self._block(f"{'#' * level} {title}", "heading", level=level, path=path)

    def _enter(self, node: _Node) -> None:
        if node.tag == "br":
            self.pieces.append(_BREAK)
        if node.tag not in _BLOCKS:
            return
        self._flush()
        around = self.frames[-1]
        inner = replace(around, node=node, first=around.rest, fresh=True)
        if node.tag in _LISTS:
            inner.depth, inner.number = around.depth + 1, node.number("start", 1)
            inner.outermost = around.outermost or node
        elif node.tag == "li":
            inner.number = node.number("value", around.number)
            ordered = around.node.tag == "ol"
            around.number = inner.number + 1
            self._mark(inner, f"{inner.number}. " if ordered else "- ", "list_item")
            inner.depth = max(1, around.depth)
        elif node.tag == "blockquote":
            self._mark(inner, "> ", "quote")
            inner.rest, inner.quoted = inner.first, True
        elif node.tag == "dd":
            self._mark(inner, ": ", "definition")
        elif node.tag == "dt":
            inner.kind = "definition"
        elif node.tag in ("figcaption", "caption"):
            inner.kind = "caption"
        else:
            return
        self.frames.append(inner)

    @staticmethod
    def _mark(frame: _Frame, marker: str, kind: Kind) -> None:
        """Blocks in `frame` begin with `marker`, its further lines below the text after it."""
        frame.kind, frame.first = kind, frame.rest + marker
        if len(frame.rest) < MAX_INDENT:
            frame.rest += " " * len(marker)

    def _leave(self, node: _Node) -> None:
        if node.tag in _BLOCKS:
            self._flush()
        if self.frames[-1].node is node:
            self.frames.pop()

    def _flush(self) -> None:
        """Write the text gathered since the last block: a paragraph, cut at empty lines."""
        if not self.pieces:
            return
        lines = [_fold(line) for line in "".join(self.pieces).split(_BREAK)]
        self.pieces.clear()
        paragraph: list[str] = []
        for line in [*lines, ""]:
            if line:
                paragraph.append(line)
            elif paragraph:
                self._paragraph(paragraph)
                paragraph = []

    def _paragraph(self, lines: list[str]) -> None:
        frame, last = self.frames[-1], self.last
        if frame.kind == "list_item" and frame.fresh:  # a bullet typed besides the list's own
            lines[0] = _BULLET.sub("", lines[0], count=1) or lines[0]
        text = (frame.first if frame.fresh else frame.rest) + f"\n{frame.rest}".join(lines)
        tight = extends = False
        if last and self.elements[-1].kind == frame.kind:
            if frame.kind == "list_item":
                tight = frame.fresh and frame.outermost is last.outermost
            elif frame.kind == "definition":
                pair = last.node.tag, frame.node.tag
                extends = frame.fresh and pair in {("dt", "dt"), ("dt", "dd"), ("dd", "dd")}
        frame.fresh = False
        self._block(text, frame.kind, level=frame.depth, tight=tight or extends, extends=extends)
        self.last = frame

    def _whole(self, node: _Node) -> None:
        frame = self.frames[-1]
        if level := _heading_level(node):
            if frame.kind == "list_item" and frame.fresh:  # a card rather than an item
                frame.kind = "paragraph"
                frame.first = frame.rest = self.frames[-2].rest
            title, plain = _line(node), _line(node, code_marks=False)
            self.heading(title, plain, level, opens_section=not frame.quoted)
        elif node.tag == "table":
            self._table(node)
        else:
            self._code(node)

    def _code(self, node: _Node) -> None:
        code = _raw(node).strip("\n").rstrip()
        if not code:
            return
        longest = max(map(len, _BACKTICKS.findall(code)), default=0)
        fence = "`" * max(3, longest + 1)
        language = _language(node)
        self._block(f"{fence}{language or ''}\n{code}\n{fence}", "code", language=language)

    def _table(self, node: _Node) -> None:
        for child in node.children:
            if isinstance(child, _Node) and child.tag == "caption" and (text := _line(child)):
                self._block(text, "caption")
        rows = _rows(node)
        grid = _grid([cells for _, cells in rows])
        # A row of nothing but cells that reach down says what the next row says again.
        kept = [
            i
            for i, (line, below) in enumerate(zip(grid, [*grid[1:], []], strict=True))
            if any(line) and not (len(line) < len(below) and below[: len(line)] == line)
        ]
        if not kept:
            return
        width = len(grid[kept[0]])
        n_header = 0
        for i in kept[:-1] or kept:
            if not _is_header(*rows[i]) or len(grid[i]) < width:
                break
            n_header += 1
        lines = [f"| {' | '.join(grid[i])} |" for i in kept]
        # Markdown wants a first row above the line; it is called a header only if the page does.
        lines.insert(max(1, n_header), f"|{' --- |' * width}")
        header = sum(len(line) + 1 for line in lines[: n_header + 1]) if n_header else 0
        self._block("\n".join(lines), "table", header=header)

    def _block(
        self,
        text: str,
        kind: Kind,
        *,
        level: int = 0,
        path: tuple[str, ...] | None = None,
        language: str | None = None,
        header: int | None = None,
        tight: bool = False,
        extends: bool = False,
    ) -> None:
        separator = ("\n" if tight else "\n\n") if self.parts else ""
        start = self.length + len(separator)
        self.parts += (separator, text)
        self.length = start + len(text)
        self.last = None
        if extends:
            self.elements[-1] = replace(self.elements[-1], end=self.length)
            return
        end = self.length
        facts = () if header is None else (("header_end", min(start + header, end)),)
        path = self.headings.path if path is None else path
        self.elements.append(Element(kind, start, end, level, path, language, facts))


def _is_header(row: _Node, cells: list[_Node]) -> bool:
    in_head = row.parent is not None and row.parent.tag == "thead"
    return in_head or (bool(cells) and all(cell.tag == "th" for cell in cells))


def _language(node: _Node) -> str | None:
    """What a <pre>, the <code> in it or the highlighter's <div> around it says."""
    inner = next((c for c in node.children if isinstance(c, _Node)), None)
    around = node.parent
    for place in (node, inner, around, around.parent if around else None):
        if place is None:
            continue
        if named := place.attributes.get("data-lang") or place.attributes.get("data-language"):
            return named
        for name in place.names:
            found = _CODE_LANGUAGE.fullmatch(name)
            if found and found[1].lower() not in _NO_LANGUAGE:
                return found[1]
    return None


def _written(page: Any, keep_furniture: bool) -> ParsedText:
    tree = _tree(page, keep_furniture)
    writer = _Writer()
    title = page.css_first("head > title")
    named = title is not None and not _has_h1(tree)
    if named:
        text = _fold(title.text())
        writer.heading(text, text, 1)
    n_title = len(writer.elements)
    writer.write(tree)
    if len(writer.elements) == n_title:
        return ParsedText("", ())
    return ParsedText("".join([*writer.parts, "\n"]), tuple(writer.elements))


def _has_h1(tree: _Node) -> bool:
    return any(
        event == "enter" and _heading_level(item) == 1
        for event, item in _walk(tree, lambda _: False)
    )
