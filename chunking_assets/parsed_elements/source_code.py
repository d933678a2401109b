"""Source code of ten languages, by their tree-sitter grammars. The canonical text is the file.

Elements are whole lines, as of Python source: imports, functions, classes (the lines before the
first method), methods, and the code between them. What opens a definition (comments, attributes,
`#if`) belongs to it, what closes it (`}`, `#endif`) to what it closes. Only the rows of the tree
are used, so no character shifts anything. What a grammar cannot read is code, with a warning.
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Literal

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements import plain_text
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import (
    TITLE_CHARS,
    Element,
    Kind,
    ParsedText,
    inked_lines,
    line_starts,
    short_title,
)

if TYPE_CHECKING:
    from tree_sitter import Language, Node

VERSION = 1

MOST_DEEP = 24
"""Definitions nested deeper stay in the one around them."""
CPU_SECONDS, CPU_SECONDS_PER_MB = 2.0, 5.0
"""Where parsing is given up. Source takes a tenth of it; error recovery on what only looks like
source may be quadratic."""

Role = Literal["comment", "lead", "import", "function", "class", "namespace", "open", "wrap"]
"""What a type of node is to a reader. A `lead` belongs to the definition below it (an attribute);
an `open` node is seen through (`#if`, `extern "C"`); so is a `wrap` around just one definition
(`export`, `template`, an assignment), from which it may get its name."""

_BLOCK_BYTES = 32_768
_MERGED: frozenset[Kind] = frozenset({"import", "code"})
_DEFINES: frozenset[Role] = frozenset({"function", "class", "namespace", "open", "wrap"})
_NAME_FIELDS = ("name", "left", "property", "declarator")
_BODIES = {"function_body", "procedure_body", "column_definitions", "struct_type", "interface_type"}
"""Bodies that are no field of their definition, and begin with more than a brace."""
_QUOTES = re.compile(r"[\"'`\[\]]")
_WORD = re.compile(r"\w+")


class _NoGrammar(CorpusError):
    """The grammar of a language cannot be loaded."""


class _GivenUp(CorpusError):
    """Parsing took longer than any source should."""


def _roles(**types: str) -> dict[str, Role]:
    """The role of each type of node, from the types of each role, parted by spaces."""
    roles: dict[str, Role] = {}
    for role, names in types.items():
        roles |= dict.fromkeys(names.split(), role.rstrip("_"))  # type: ignore[arg-type]
    return roles


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines `first` to `last` (counted from 0, inclusive); the body begins on line `body`."""

    kind: Kind
    first: int
    last: int
    path: tuple[str, ...]
    body: int | None = None


@dataclass(frozen=True, slots=True)
class SourceCode:
    """The parser of one language.

    `grammar` is the module of its grammar, `entry` the function there that gives it; `roles` what
    its types of node mean, and `import_like` finds imports that the grammar takes for any other
    statement. Code that stands together is one element, unless each statement is
    `statement_by_statement`.
    """

    language: str
    grammar: str
    roles: dict[str, Role]
    entry: str = "language"
    import_like: re.Pattern[bytes] | None = None
    statement_by_statement: bool = False

    @property
    def __name__(self) -> str:
        return f"{SourceCode.__module__}.{self.language}_source"

    @property
    def VERSION(self) -> int:
        return VERSION

    @property
    def LIBRARIES(self) -> tuple[str, ...]:
        return ("tree-sitter", self.grammar.replace("_", "-"), "charset-normalizer")

    def parse(self, data: bytes) -> ParsedText:
        return self.parse_text(decode(data))

    def parse_text(self, text: str) -> ParsedText:
        r"""
        >>> parsed = GO.parse_text("package a\n\n// F does.\nfunc F() {\n}\n")
        >>> [(e.kind, e.heading_path, e.start) for e in parsed.elements]
        [('import', (), 0), ('function', ('F',), 11)]
        """
        # A lone \r ends a line, which grammars do not know; the rows stay those of the text.
        source = re.sub("\r(?!\n)", "\n", text).encode("utf-8", "replace")
        try:
            root = _tree(source, _language(self.grammar, self.entry))
        except (_NoGrammar, _GivenUp) as error:
            return self._as_text(text, str(error))
        walk = _Walk(self, source)
        blocks = walk.blocks(root.children, _Place((), "namespace", 0), None, -1)
        warning = None
        if walk.unread or root.is_error:
            where = f" at line {min(walk.unread) + 1}" if walk.unread else ""
            warning = f"not valid {self.language}{where}; what its grammar cannot read is code"
        if all(block.kind == "docstring" for block in blocks):
            return self._as_text(text, warning)
        elements = tuple(self._elements(text, self._whole_lines(blocks)))
        return ParsedText(text, elements, warning)

    def _as_text(self, text: str, warning: str | None) -> ParsedText:
        elements = plain_text.parse_text(text).elements
        return ParsedText(
            text,
            tuple(Element("code", e.start, e.end, language=self.language) for e in elements),
            warning,
        )

    def _whole_lines(self, blocks: list[_Block]) -> list[_Block]:
        """Statements that share a line are one block; so are neighbouring imports, and code."""
        merged: list[_Block] = []
        for block in blocks:
            before = merged[-1] if merged else None
            if before and block.first <= before.last:
                merged[-1] = _on_one_line(before, block)
            elif (
                before
                and block.kind == before.kind
                and block.kind in _MERGED
                and block.path == before.path
                and not (self.statement_by_statement and block.kind == "code")
            ):
                merged[-1] = replace(before, last=block.last)
            else:
                merged.append(block)
        return merged

    def _elements(self, text: str, blocks: list[_Block]) -> Iterator[Element]:
        """Blocks as spans: the lines up to the next block are this one's."""
        starts = line_starts(text)
        firsts = [0, *(block.first for block in blocks[1:]), len(starts) - 1]
        for block, (first, end) in zip(blocks, pairwise(firsts), strict=True):
            lines = inked_lines(text, starts[first], starts[end])
            if lines is not None:  # some characters are ink to a grammar and blank to Python
                yield Element(
                    block.kind,
                    *lines,
                    level=len(block.path),
                    heading_path=block.path,
                    language=self.language,
                    attributes=() if block.body is None else (("header_end", starts[block.body]),),
                )


def _on_one_line(before: _Block, block: _Block) -> _Block:
    """Two blocks that share a line, as all do in a minified file: code, unless both import."""
    around = [b.path if b.kind in _MERGED else b.path[:-1] for b in (before, block)]
    shared = tuple(
        a for a, b in takewhile(lambda pair: pair[0] == pair[1], zip(*around, strict=False))
    )
    kind: Kind = "import" if before.kind == block.kind == "import" else "code"
    return _Block(kind, before.first, max(before.last, block.last), shared)


@dataclass(frozen=True, slots=True)
class _Place:
    """The names around a list of siblings, the role of what holds them, and how deep it is."""

    path: tuple[str, ...]
    within: Role
    depth: int


class _Walk:
    """The blocks of one tree. Bodies of functions are never entered.

    `unread` are the rows where the grammar failed, as far as elements depend on it: a macro within
    a function is nothing to warn of.
    """

    def __init__(self, code: SourceCode, source: bytes) -> None:
        self.roles, self.import_like, self.source = code.roles, code.import_like, source
        self.unread: list[int] = []

    def blocks(
        self, siblings: Iterable["Node"], place: _Place, lead: int | None, reached: int
    ) -> list[_Block]:
        """The blocks of sibling nodes that begin after row `reached`.

        `lead` is the row where the first of them begins already. A comment at the top of a file,
        with a blank line below it, is the file's own.
        """
        found: list[_Block] = []
        commented: int | None = None
        heads_file = place.depth == 0
        for node in siblings:
            first, last = _rows(node)
            role = self.roles.get(node.type)
            if node.is_error or node.is_missing:
                self.unread.append(first)
            if commented is not None and lead is not None and first > commented + 1:
                found.append(_Block("docstring", lead, commented, ()))
                lead = None
            commented = None
            if role == "comment" or role == "lead":
                if lead is None and first > reached:
                    lead = first
                if role == "comment" and lead is not None and heads_file:
                    commented = last
            elif (
                node.is_named and node.end_byte > node.start_byte and node.type != "empty_statement"
            ):
                leads = lead is not None or first > reached
                found += self.block(node, place, first if lead is None else lead, leads)
                lead, heads_file = None, False
            reached = max(reached, last)
        return found

    def block(self, node: "Node", place: _Place, first: int, leads: bool) -> list[_Block]:
        """The blocks of one node, from row `first` on, which is its own if it `leads`."""
        last = _rows(node)[1]
        definition, names = self.unwrapped(node)
        role = self.roles.get(definition.type)
        if role == "namespace" and not names:
            role = "open"
        deeper = replace(place, depth=place.depth + 1)
        if role == "open" and place.depth < MOST_DEEP:
            row = definition.start_point.row
            inner = [c for c in definition.children if self.is_inside(c, row)]
            found = self.blocks(inner, deeper, first if leads else None, row)
            if found:
                return [*found[:-1], replace(found[-1], last=max(found[-1].last, last))]
        kind = self.kind(node, definition, role if names else None, place)
        if kind in _MERGED:
            return [_Block(kind, first, last, place.path)]
        own = (*place.path, *names)
        if kind == "function" and (place.within == "class" or len(names) > 1):
            kind = "method"
        whole = _Block(kind, first, last, own, self.body_row(definition))
        if kind != "class" or place.depth >= MOST_DEEP:
            return [whole]
        return self.with_members(
            whole, definition, replace(deeper, path=own, within=role or "open")
        )

    def with_members(self, whole: _Block, definition: "Node", place: _Place) -> list[_Block]:
        """A class up to its first definition, then its members; whole, if they share its line."""
        body = _body(definition)
        if body is None:
            return [whole]
        row = body.start_point.row if self.is_braced(body) else definition.start_point.row
        inner = [
            c for c in definition.children if self.is_comment(c) and c.start_byte < body.start_byte
        ]
        members = self.blocks([*inner, *body.children], place, None, row)
        leading = next((n for n, m in enumerate(members) if m.kind != "code"), len(members))
        if leading == len(members) or members[leading].first <= row:
            return [whole]
        last = max([row, *(member.last for member in members[:leading])])
        members[-1] = replace(members[-1], last=max(members[-1].last, whole.last))
        return [replace(whole, last=last), *members[leading:]]

    def is_inside(self, node: "Node", row: int) -> bool:
        """Whether a child of an open node is more than its opening line, such as a condition."""
        return node.type in self.roles or node.start_point.row > row

    def is_comment(self, node: "Node") -> bool:
        return self.roles.get(node.type) == "comment"

    def is_braced(self, body: "Node") -> bool:
        return self.source[body.start_byte : body.start_byte + 1] == b"{"

    def kind(self, node: "Node", definition: "Node", role: Role | None, place: _Place) -> Kind:
        """`role` is that of the definition, None if it has no name."""
        if not place.path and (
            self.roles.get(node.type) == "import"
            or (self.import_like and self.import_like.match(self.source, node.start_byte))
        ):
            return "import"
        match role:
            case "function":
                return "function"
            case "class" | "namespace":
                # In C, `struct a` alone mentions one; a module of Rust without body is elsewhere.
                bodiless = definition.type.endswith("_specifier") or role == "namespace"
                if bodiless and _body(definition) is None:
                    return "import" if role == "namespace" and not place.path else "code"
                return "class"
            case _:
                return "code"

    def unwrapped(self, node: "Node") -> tuple["Node", tuple[str, ...]]:
        """The one definition in a node, and its name: its own, or of what it is assigned to."""
        if self.roles.get(node.type) not in _DEFINES:
            return node, ()
        outer = [node]
        while self.roles.get(outer[-1].type) == "wrap":
            inner = [c for c in outer[-1].named_children if self.roles.get(c.type) in _DEFINES]
            if len(inner) != 1:
                return node, ()
            outer.append(inner[0])
        names = next(filter(None, map(self.names, reversed(outer))), ())
        if not names and node.type == "export_statement":
            names = ("default",)
        return outer[-1], names

    def names(self, node: "Node") -> tuple[str, ...]:
        """The name a definition has by its grammar, as parts of a path."""
        relation = next((c for c in node.children if c.type == "object_reference"), None)
        fields = ("value",) if node.type == "singleton_class" else _NAME_FIELDS
        named = next(filter(None, map(node.child_by_field_name, fields)), None)
        names: list[str] = []
        if node.type == "impl_item":
            parts = [node.child_by_field_name(field) for field in ("trait", "type")]
            names = [" for ".join(self.text(part) for part in parts if part)]
        elif relation is not None:
            names = [_QUOTES.sub("", self.text(relation))]
        elif named is not None:
            names = [*self.receiver(node), *self.declared(named)]
        return tuple(filter(None, map(short_title, names)))

    def receiver(self, method: "Node") -> Iterator[str]:
        """The type a method of Go belongs to."""
        receiver = method.child_by_field_name("receiver")
        if receiver is not None:  # `(s *Server[K, V])`
            yield from _WORD.findall(self.text(receiver).partition("[")[0])[-1:]

    def declared(self, node: "Node") -> Iterator[str]:
        """What a declarator of C or C++ declares, `A::f` in two parts; another name as it is."""
        while node.type.endswith("declarator"):
            inner = node.child_by_field_name("declarator")
            named = (
                c for c in node.named_children if c.type.endswith(("declarator", "identifier"))
            )
            following = inner or next(named, None)
            if following is None:
                break
            node = following
        while node.type == "qualified_identifier":
            scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
            if name is None:
                break
            if scope is not None:
                yield self.text(scope)
            node = name
        operand = node.child_by_field_name("declarator") if node.type == "operator_cast" else None
        yield self.text(node, operand.start_byte if operand else None).strip("\"'")

    def text(self, node: "Node", end: int | None = None) -> str:
        """As much of the text of a node as a title takes."""
        end = min(node.end_byte if end is None else end, node.start_byte + 8 * TITLE_CHARS)
        return self.source[node.start_byte : end].decode("utf-8", "ignore")

    def body_row(self, definition: "Node") -> int | None:
        """The row below the signature; None if the body has no lines of its own."""
        body = _body(definition)
        if body is None:
            return None
        if body.child_count and (closing := body.child(body.child_count - 1)).is_missing:
            self.unread.append(closing.start_point.row)
        if body.type in _BODIES:
            row, below = _rows(body)
        elif self.is_braced(body):
            row = body.start_point.row
            inner = (child for child in body.named_children if not self.is_comment(child))
            below = next(inner, body).start_point.row
        else:
            before = [c for c in definition.children if c.start_byte < body.start_byte]
            row = max(
                [_rows(child)[1] for child in before if not self.is_comment(child)], default=0
            )
            below = body.start_point.row
        return row + 1 if below > row else None


def _body(definition: "Node") -> "Node | None":
    body = definition.child_by_field_name("body")
    return body or next((c for c in definition.children if c.type in _BODIES), None)


def _rows(node: "Node") -> tuple[int, int]:
    """The first and last row of a node; one that ends with its line break ends on that line."""
    first, (last, column) = node.start_point.row, node.end_point
    return first, last if column or last == first else last - 1


@cache
def _language(grammar: str, entry: str) -> "Language":
    try:
        tree_sitter = import_module("tree_sitter")
        language: Language = tree_sitter.Language(getattr(import_module(grammar), entry)())
    except (ImportError, AttributeError, ValueError) as error:
        distribution = grammar.replace("_", "-")
        raise _NoGrammar(
            f"read as plain text, because its grammar does not load ({error}): "
            f"install tree-sitter and {distribution}, then it is parsed again"
        ) from error
    return language


def _tree(source: bytes, language: "Language") -> "Node":
    """The root of the tree of a source.

    Raises:
        _GivenUp: parsing takes longer than any source should.
    """
    from tree_sitter import Parser

    last = time.thread_time() + CPU_SECONDS + CPU_SECONDS_PER_MB * len(source) / 1e6
    try:
        tree = Parser(language).parse(
            lambda offset, _: source[offset : offset + _BLOCK_BYTES],
            progress_callback=lambda *_: time.thread_time() > last,
        )
    except ValueError as error:
        raise _GivenUp(
            "read as plain text, because parsing it takes far longer than source does: "
            "correct it if it should be source, exclude it if not"
        ) from error
    return tree.root_node


_JAVASCRIPT = _roles(
    comment="comment html_comment hash_bang_line",
    lead="decorator",
    import_="import_statement import_alias",
    function="function_declaration generator_function_declaration function_expression "
    "generator_function arrow_function method_definition",
    class_="class_declaration class",
    open="statement_block",
    wrap="export_statement lexical_declaration variable_declaration variable_declarator "
    "expression_statement assignment_expression field_definition",
)
_REQUIRE = re.compile(rb"(?:(?:const|let|var)\s[^=;]{1,400}=\s*)?require\s*\(")
JAVASCRIPT = SourceCode("javascript", "tree_sitter_javascript", _JAVASCRIPT, import_like=_REQUIRE)
_TYPESCRIPT = _JAVASCRIPT | _roles(
    function="function_signature",
    class_="abstract_class_declaration interface_declaration enum_declaration "
    "type_alias_declaration",
    namespace="internal_module module",
    wrap="ambient_declaration public_field_definition",
)
TYPESCRIPT = SourceCode(
    "typescript", "tree_sitter_typescript", _TYPESCRIPT, "language_typescript", _REQUIRE
)
TSX = SourceCode("tsx", "tree_sitter_typescript", _TYPESCRIPT, "language_tsx", _REQUIRE)
JAVA = SourceCode(
    "java",
    "tree_sitter_java",
    _roles(
        comment="line_comment block_comment",
        import_="package_declaration import_declaration",
        function="method_declaration constructor_declaration compact_constructor_declaration",
        class_="class_declaration interface_declaration enum_declaration record_declaration "
        "annotation_type_declaration",
        open="enum_body_declarations",
    ),
)
GO = SourceCode(
    "go",
    "tree_sitter_go",
    _roles(
        comment="comment",
        import_="package_clause import_declaration",
        function="function_declaration method_declaration",
        class_="type_spec type_alias",
        wrap="type_declaration",
    ),
)
RUST = SourceCode(
    "rust",
    "tree_sitter_rust",
    _roles(
        comment="line_comment block_comment",
        lead="attribute_item",
        import_="use_declaration extern_crate_declaration",
        function="function_item function_signature_item macro_definition",
        class_="struct_item enum_item union_item trait_item impl_item",
        namespace="mod_item",
        open="foreign_mod_item declaration_list",
    ),
)
_C = _roles(
    comment="comment",
    import_="preproc_include",
    function="function_definition",
    class_="struct_specifier union_specifier enum_specifier",
    open="preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef "
    "linkage_specification declaration_list",
    wrap="type_definition",
)
C = SourceCode("c", "tree_sitter_c", _C)
CPP = SourceCode(
    "cpp",
    "tree_sitter_cpp",
    _C
    | _roles(
        lead="access_specifier",
        import_="using_declaration",
        class_="class_specifier concept_definition",
        namespace="namespace_definition",
        wrap="template_declaration",
    ),
)
RUBY = SourceCode(
    "ruby",
    "tree_sitter_ruby",
    _roles(
        comment="comment",
        lead="identifier",  # a bare word: `private`, `module_function`
        function="method singleton_method",
        class_="class module singleton_class",
        wrap="call argument_list",
    ),
    import_like=re.compile(rb"(?:require|require_relative|autoload)[ \t(]"),
)
SQL = SourceCode(
    "sql",
    "tree_sitter_sql",
    _roles(
        comment="comment marginalia",
        function="create_function create_procedure create_trigger",
        class_="create_table create_view create_materialized_view create_type",
        open="transaction block",
        wrap="statement",
    ),
    statement_by_statement=True,
)
SHELL = SourceCode(
    "shell",
    "tree_sitter_bash",
    _roles(comment="comment", function="function_definition"),
    import_like=re.compile(rb"(?:source|\.)[ \t]"),
)
