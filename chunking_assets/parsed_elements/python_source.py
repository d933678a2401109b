"""Python source. The canonical text is the decoded file itself.

Elements are whole lines: imports, functions, classes (the lines before the first method),
methods, and the code between them. Decorators and the comments above a definition belong to it.
A file that does not parse is read as plain text, with a warning that says why.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chunking_assets.parsed_elements import plain_text
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import (
    Element,
    Kind,
    ParsedText,
    inked_lines,
    line_starts,
    short_title,
)

VERSION = 1
LIBRARIES = ("python", "charset-normalizer")

_CODING = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_MERGED: frozenset[Kind] = frozenset({"import", "code"})


def parse(data: bytes) -> ParsedText:
    declared = next(filter(None, map(_CODING.match, data.split(b"\n", 2)[:2])), None)
    return parse_text(decode(data, declared[1].decode("ascii", "replace") if declared else None))


def parse_text(text: str) -> ParsedText:
    """
    >>> parsed = parse_text("import os\\n\\ndef f():\\n    pass\\n")
    >>> [(e.kind, e.heading_path) for e in parsed.elements]
    [('import', ()), ('function', ('f',))]
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" at line {error.lineno}" if isinstance(error, SyntaxError) else ""
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        return _as_text(text, f"not valid Python{where} ({reason}); read as plain text")
    starts = line_starts(text)
    blocks = _whole_lines(list(_blocks(module, ())))
    if not blocks:
        return _as_text(text, None)
    return ParsedText(text, tuple(_elements(text, starts, blocks)))


def _as_text(text: str, warning: str | None) -> ParsedText:
    elements = plain_text.parse_text(text).elements
    return ParsedText(
        text,
        tuple(Element("code", e.start, e.end, language="python") for e in elements),
        warning,
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines `first` to `last` (counted from 1, inclusive); the body begins at (line, column)."""

    kind: Kind
    first: int
    last: int
    column: int
    path: tuple[str, ...]
    body: tuple[int, int] | None = None


def _blocks(parent: ast.Module | ast.ClassDef, path: tuple[str, ...]) -> Iterator[_Block]:
    for position, node in enumerate(parent.body):
        first, last = _lines(node)
        if isinstance(node, ast.ClassDef) and _lines(node.body[0])[0] > _signature_end(node):
            yield from _class(node, (*path, short_title(node.name)))
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind: Kind = "method" if path else "function"
            if isinstance(node, ast.ClassDef):
                kind = "class"
            own = (*path, short_title(node.name))
            yield _Block(kind, first, last, node.col_offset, own, _body(node))
        elif isinstance(node, ast.Import | ast.ImportFrom) and not path:
            yield _Block("import", first, last, node.col_offset, path)
        elif position == 0 and not path and ast.get_docstring(parent, clean=False) is not None:
            yield _Block("docstring", first, last, node.col_offset, path)
        else:
            yield _Block("code", first, last, node.col_offset, path)


def _class(node: ast.ClassDef, path: tuple[str, ...]) -> Iterator[_Block]:
    """The class up to its first definition, then its members."""
    first, _ = _lines(node)
    members = list(_blocks(node, path))
    leading = next((n for n, member in enumerate(members) if member.kind != "code"), len(members))
    last = members[leading - 1].last if leading else _signature_end(node)
    yield _Block("class", first, last, node.col_offset, path, _body(node))
    yield from members[leading:]


def _lines(node: ast.stmt) -> tuple[int, int]:
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    first = min([node.lineno, *(d.lineno for d in decorators)])
    return first, node.end_lineno or node.lineno


def _body(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[int, int]:
    return _lines(node.body[0])[0], node.body[0].col_offset


def _signature_end(node: ast.ClassDef) -> int:
    """The last line known to belong to `class Name(bases, keywords=...):`."""
    parts = [*node.bases, *(keyword.value for keyword in node.keywords)]
    return max([node.lineno, *(part.end_lineno or part.lineno for part in parts)])


def _whole_lines(blocks: list[_Block]) -> list[_Block]:
    """Statements that share a line are one block; so are neighbouring imports, and other code."""
    merged: list[_Block] = []
    for block in blocks:
        before = merged[-1] if merged else None
        if before and (
            block.first <= before.last
            or (block.kind == before.kind and block.kind in _MERGED and block.path == before.path)
        ):
            merged[-1] = replace(before, last=max(before.last, block.last))
        else:
            merged.append(block)
    return merged


def _elements(text: str, starts: list[int], blocks: list[_Block]) -> Iterator[Element]:
    """Blocks as spans; the lines between two blocks go to the one they stand with."""
    first = 1
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        last = _last_line(text, starts, block, following)
        lines = inked_lines(text, starts[first - 1], starts[last])
        assert lines is not None, "a statement is not blank"
        yield Element(
            block.kind,
            *lines,
            level=len(block.path),
            heading_path=block.path,
            language="python",
            attributes=_header_end(text, starts, block),
        )
        first = last + 1


def _header_end(text: str, starts: list[int], block: _Block) -> tuple[tuple[str, int], ...]:
    """Where the signature ends and the body begins, if the body has lines of its own."""
    if block.body is None:
        return ()
    line, column = block.body
    body_line = starts[line - 1]
    own_line = text[body_line : body_line + column].isspace()
    return (("header_end", body_line),) if own_line else ()


def _last_line(text: str, starts: list[int], block: _Block, following: _Block | None) -> int:
    """Comments indented deeper than the next block end this one; the others begin the next."""
    if following is None:
        return len(starts) - 1
    last = block.last
    for line in range(block.last + 1, following.first):
        content = text[starts[line - 1] : starts[line]]
        indentation = len(content) - len(content.lstrip())
        if not content.isspace() and indentation > following.column:
            last = line
    return last
