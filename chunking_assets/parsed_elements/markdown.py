"""Markdown (CommonMark and tables) and MDX. The canonical text is the decoded file itself.

Block structure comes from markdown-it-py; its line numbers become offsets. Only block rules run:
inline rules cost quadratic time on hostile text and say nothing about where a block ends. An
element spans whole lines, so list markers, indentation and fences stay in what a reader sees.
A line that is the tag of a component (`<Tab title="npm">`) is a block of its own: taken as HTML it
would swallow what follows up to a blank line, and leave a fence that begins there open.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from chunking_assets.parsed_elements.decoding import decode, storable
from chunking_assets.parsed_elements.document import (
    TITLE_CHARS,
    Element,
    HeadingStack,
    Kind,
    ParsedText,
    Scalar,
    gaps,
    inked_lines,
    line_starts,
    short_title,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

VERSION = 2
LIBRARIES = ("markdown-it-py", "pyyaml", "charset-normalizer")

METADATA = "metadata."
"""Before the name of what front matter says, which may be called like an attribute of ours."""
MAX_NESTING = 200
"""Deeper blocks are residual text. The library's 20 would drop real nested lists."""

_LEAVES: dict[str, Kind] = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "code",
    "code_block": "code",
    "html_block": "html",
    "component": "html",
    "table": "table",
    "definition": "definition",
}
_CONTAINERS = {"list_item_open": "list_item", "blockquote_open": "quote"}
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t]*(?:\r\n|\n|\r)")
_FRONT_MATTER_KEY = re.compile(r"[\w\"'.-]+[ \t]*[:=](?:\s|\Z)")
_QUOTE_MARKS = re.compile(r"[>\s]*")
_MARKUP = re.compile(r"[\\`*_\[\]<>&!~{]")
_HEADING_ID = re.compile(r"[ \t]*\{#[^{}\s]*\}\Z")
_COMPONENT = re.compile(r"</?(?:[A-Z]\w*[a-z]\w*(?:\.\w+)*)?(?=[\s/>]|\Z)")
"""How the tag of a component begins, or of a fragment (`<>`); HTML written large is none."""
_TAG_LINES = 30
"""Most lines of one tag."""
_STATEMENT = re.compile(
    r"(?:import\s(?:[\w\s{},*$]{1,500}\sfrom\s{1,9})?[\"'][^\"'\r\n]+[\"']"
    r"|export\s{1,9}(?:const|let|var|default|function|async)\s)"
)
"""Of JavaScript, as MDX has it between paragraphs."""
_MARKED_HEADING = re.compile(r"[ ]{0,3}<!--[^\r\n>]{0,200}-->[ \t]*(?=#{1,6}[ \t]+\S)")
"""A heading behind the mark of a page, which converters write without a line end."""
_METADATA_CHARS = 20_000


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str, *, mdx: bool = False) -> ParsedText:
    """`mdx`: indentation is no code, because components indent what they hold.

    >>> parsed = parse_text("# Fees\\n\\n- card: 1.2 %\\n")
    >>> [(e.kind, parsed.text[e.start : e.end], e.heading_path) for e in parsed.elements]
    [('heading', '# Fees', ('Fees',)), ('list_item', '- card: 1.2 %', ('Fees',))]
    """
    starts = line_starts(text)
    front_lines = _front_matter_lines(text, starts)
    elements: list[Element] = []
    if front_lines:
        end = _end_of_lines(text, 0, starts[front_lines])
        language = "yaml" if text.startswith("-") else "toml"
        body = text[starts[1] : starts[front_lines - 1]]
        facts = tuple(_metadata(body, language))
        elements.append(Element("front_matter", 0, end, language=language, attributes=facts))
    elements.extend(_blocks(text, starts, front_lines, mdx))
    return ParsedText(text, tuple(_with_residue(text, elements)))


def _front_matter_lines(text: str, starts: list[int]) -> int:
    """How many lines the front matter takes: a fence, something like a key, the same fence."""
    opening = _FRONT_MATTER.match(text)
    if not opening:
        return 0
    closings = {opening[1], "..."} if opening[1] == "---" else {opening[1]}
    has_key = False
    for line in range(1, len(starts) - 1):
        content = text[starts[line] : starts[line + 1]].rstrip()
        if content in closings:
            return line + 1 if has_key or line == 1 else 0
        has_key = has_key or bool(_FRONT_MATTER_KEY.match(content))
        if not has_key and content and not content.startswith("#"):
            return 0
    return 0


def _metadata(body: str, language: str) -> Iterator[tuple[str, Scalar]]:
    """What front matter says of its document in a value, or a list of them, by its name."""
    import yaml

    if len(body) > _METADATA_CHARS:
        return
    try:
        said = yaml.safe_load(body) if language == "yaml" else tomllib.loads(body)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, RecursionError, ValueError):
        return  # shown as it is, and understood by nobody
    for name, value in said.items() if isinstance(said, dict) else ():
        values = value if isinstance(value, list) else [value]
        if isinstance(name, str) and not any(isinstance(v, dict | list) for v in values):
            yield (
                METADATA + storable(name),
                _scalar(", ".join(map(str, value)) if values is value else value),
            )


def _scalar(value: Any) -> Scalar:
    return value if isinstance(value, int | bool | None) else storable(str(value))


def _blocks(text: str, starts: list[int], first_line: int, mdx: bool) -> Iterator[Element]:
    """The leaf blocks in order. `first_line` is where Markdown begins, after front matter."""
    stack = HeadingStack()
    containers: list[str] = []
    tokens = _parser(mdx).parse(text[starts[first_line] :])
    for position, token in enumerate(tokens):
        if token.type in _CONTAINERS:
            containers.append(_CONTAINERS[token.type])
        elif token.type in ("list_item_close", "blockquote_close"):
            containers.pop()
        if token.type not in _LEAVES or token.map is None:
            continue
        first, last = (min(line + first_line, len(starts) - 1) for line in token.map)
        start, end = starts[first], _end_of_lines(text, starts[first], starts[last])
        if end == start:
            continue
        kind, level, path = _LEAVES[token.type], containers.count("list_item"), stack.path
        language: str | None = None
        attributes: tuple[tuple[str, int], ...] = ()
        if kind == "heading":
            level = int(token.tag[1])
            title = _plain(tokens[position + 1].content)
            if containers:  # a heading inside a quote or an item opens no section of the document
                path = (*path, short_title(title)) if title else path
            else:
                path = stack.enter(level, title)
        elif kind == "paragraph" and containers:
            kind = "list_item" if containers[-1] == "list_item" else "quote"
        elif kind == "paragraph" and _STATEMENT.match(text, start):
            kind, language = "code", "jsx"
        elif kind == "paragraph" and text[start] == "{" and text[end - 1] == "}":
            kind = "html"
        elif kind == "html" and (marked := _MARKED_HEADING.match(text, start, end)):
            yield Element("html", start, marked.end(), level, path)
            start = marked.end()
            kind, level = "heading", text[start : start + 6].count("#")
            end = _end_of_lines(text, start, starts[first + 1])
            path = stack.enter(level, _plain(text[start:end].strip("# \t")))
        elif kind == "code":
            language = token.info.split()[0] if token.info.split() else None
        elif kind == "table":
            attributes = (("header_end", min(starts[first + 2], end)),)
        yield Element(kind, start, end, level, path, language, attributes)


def _end_of_lines(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in "\r\n":
        end -= 1
    return end


def _with_residue(text: str, elements: list[Element]) -> list[Element]:
    """Cover what no block claims: breaks, empty items, nests too deep.

    The bare `>` between two paragraphs of a quote goes to the first of them.
    """
    covered = {element.end: element for element in elements}
    for start, end in gaps(elements, len(text)):
        lines = inked_lines(text, start, end)
        if lines is None:
            continue
        before = covered.get(start)
        if before and before.kind == "quote" and _QUOTE_MARKS.fullmatch(text, start, end):
            covered[start] = replace(before, end=lines[1])
        else:
            covered[lines[1]] = Element("residual", *lines)
    return sorted(covered.values(), key=lambda element: element.start)


@cache
def _parser(mdx: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt(
        "commonmark", {"maxNesting": MAX_NESTING, "inline_definitions": True}
    ).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before(
        "html_block", "component", _component, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    return parser.disable("code") if mdx else parser


def _component(state: "StateBlock", start_line: int, end_line: int, silent: bool) -> bool:
    """The tag of a component alone on its lines."""
    if state.is_code_block(start_line):
        return False
    first = state.bMarks[start_line] + state.tShift[start_line]
    if not _COMPONENT.match(state.src, first, state.eMarks[start_line]):
        return False
    is_whole = ">" in state.src[first : state.eMarks[start_line]]
    last_line = start_line + 1 if is_whole else min(end_line, start_line + _TAG_LINES)
    for line in range(start_line, last_line):
        if state.isEmpty(line):
            return False
        if state.src[first : state.eMarks[line]].rstrip()[-1] == ">":
            break
    else:
        return False
    if not silent:
        state.push("component", "", 0).map = [start_line, line + 1]
        state.line = line + 1
    return True


def _table(state: "StateBlock", start_line: int, end_line: int, silent: bool) -> bool:
    """A table as one token: a token per cell, padded, grows with rows times header columns."""
    from markdown_it.rules_block import table

    if not table(state, start_line, end_line, True):
        return False
    if silent:
        return True
    terminators = state.md.block.ruler.getRules("blockquote")
    outer, state.parentType = state.parentType, "table"
    line = start_line + 2
    while (
        line < end_line
        and not state.isEmpty(line)
        and state.sCount[line] >= state.blkIndent
        and not state.is_code_block(line)
        and not any(rule(state, line, end_line, True) for rule in terminators)
    ):
        line += 1
    token: Token = state.push("table", "table", 0)
    token.map = [start_line, line]
    state.parentType, state.line = outer, line
    return True


@cache
def _title_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("strikethrough")


def _plain(title: str) -> str:
    """A heading's words without their markup.

    >>> _plain("Use `retry()` **with** [care](https://example.org) {#retry}")
    'Use retry() with care'
    """
    title = _HEADING_ID.sub("", title[: 2 * TITLE_CHARS])
    if not _MARKUP.search(title):
        return title
    (inline,) = _title_parser().parseInline(title)
    return "".join(
        " " if token.type in ("softbreak", "hardbreak") else token.content
        for token in inline.children or ()
        if token.type != "html_inline"
    ).strip()
