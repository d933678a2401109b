import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chunking_assets.parsed_elements import registry, source_code
from chunking_assets.parsed_elements.document import ParsedText, check_spans
from chunking_assets.parsed_elements.parse import parse_document, parse_key
from chunking_assets.parsed_elements.source_code import (
    CPP,
    GO,
    JAVA,
    JAVASCRIPT,
    RUBY,
    RUST,
    SHELL,
    SQL,
    TSX,
    TYPESCRIPT,
    C,
    SourceCode,
)

ALL = [JAVASCRIPT, TYPESCRIPT, TSX, JAVA, GO, RUST, C, CPP, RUBY, SQL, SHELL]
Shown = list[tuple[str, str, str]]


def parsed(code: SourceCode, text: str) -> ParsedText:
    result = code.parse_text(text)
    check_spans(result)
    assert result.text == text
    assert {e.language for e in result.elements} <= {code.language}
    return result


def shown(code: SourceCode, text: str) -> Shown:
    elements = parsed(code, text).elements
    assert all(e.level == len(e.heading_path) for e in elements)
    return [(e.kind, " > ".join(e.heading_path), text[e.start : e.end]) for e in elements]


# Each file is its elements, one below the other, so what is expected reads like the file.
GOLDEN: dict[str, Shown] = {
    "javascript": [
        ("docstring", "", "#!/usr/bin/env node\n/** Payments 🙂 and refunds. */\n"),
        ("import", "", 'import api from "api";\nconst fs = require("fs");'),
        ("code", "", "const LIMIT = 120; // days – café\nexport { LIMIT };\n"),
        (
            "class",
            "Client",
            "// The one client 🙂🙂.\n@final\nexport class Client extends Base { // open\n"
            "  timeout = 3;\n",
        ),
        (
            "method",
            "Client > refund",
            "  // Comes first.\n  @log()\n  refund(é) {\n    1\n  } // é",
        ),
        ("method", "Client > retry", "  retry = async () => {\n    1\n  }\n  // still\n}"),
        ("function", "main", "// Starts.\nexport const main = (x) =>\n  x;"),
        ("function", "Client.prototype.go", "Client.prototype.go = function () {\n};"),
        ("function", "default", "export default function () { }"),
        ("code", "", "if (main) {\n  main()\n}"),
    ],
    "typescript": [
        ("import", "", 'import { A } from "a";'),
        ("class", "T", "export type T<A> = { a: A };"),
        ("class", "I", "export interface I {\n  go(a: string): void;\n}"),
        ("class", "Shop", "@Component({\n})\nexport abstract class Shop<T> {\n  abstract q(): T;"),
        ("method", "Shop > é", "  @Out()\n  private é(a: string): T { return a as T }\n}"),
        ("class", "N.M", "namespace N.M {\n  const z = 1;"),
        ("class", "N.M > Q", "  export class Q {"),
        ("method", "N.M > Q > r", "    r() {}\n  }\n}"),
        ("class", "x", 'declare module "x" {'),
        ("function", "x > f", "  export function f(): void;\n}"),
        ("class", "W", "declare global {\n  interface W {}\n}"),
    ],
    "tsx": [
        ("function", "Page", "export function Page() {\n  return <a>é</a>;\n}"),
        ("code", "", "const x = 1, y = 2;"),
    ],
    "java": [
        ("docstring", "", "/* Licence é */\n"),
        ("import", "", "package a.b;\n\nimport x.Y;\n"),
        ("class", "A", "/** Doc 🙂. */\n@Ann(1)\npublic class A<T> extends B {\n  int y = 1;"),
        (
            "method",
            "A > go",
            "  /** é */\n  @Override\n  public void go(int a)\n      throws E\n  {\n    x();\n  }",
        ),
        ("method", "A > A", "  A() {}"),
        ("class", "A > E", "  enum E {\n    B, C;"),
        ("method", "A > E > f", "    void f() {}\n  }"),
        ("code", "A", "  static { }\n}"),
        ("class", "R", "record R(int a) { R { } }"),
    ],
    "go": [
        ("import", "", '// Package a is é.\npackage a\n\nimport (\n\t"fmt"\n)\n'),
        ("class", "A", "// A is 🙂.\ntype A struct {\n\tx int\n}\n"),
        ("method", "A > Go", "// Go goes.\nfunc (a *A[K, V]) Go(x int) error {\n\treturn nil\n}\n"),
        ("function", "top", "func top[T any](x T) {}"),
        ("code", "", "type (\n\tB int\n\tC int\n)\n\nvar x = 1"),
    ],
    "rust": [
        ("docstring", "", "//! Crate é.\n"),
        ("import", "", "use a::b;\nmod z;"),
        ("class", "A", "/// Doc 🙂.\n#[derive(Debug)]\npub struct A { x: i32 }"),
        ("class", "fmt::Display for A", "impl fmt::Display for A {\n  const X: i32 = 1;"),
        (
            "method",
            "fmt::Display for A > fmt",
            "  /// é\n  #[inline]\n  fn fmt(&self) -> i32\n  where A: B {\n    1\n  }\n}",
        ),
        ("class", "T", "trait T {"),
        ("method", "T > g", "  fn g(&self);"),
        ("code", "T", "  type X;\n}"),
        ("class", "tests", "#[cfg(test)]\nmod tests {\n  use super::*;"),
        ("function", "tests > it", "  #[test]\n  fn it() {}\n}"),
        ("function", "c", 'extern "C" {\n  fn c();\n}'),
        ("function", "m", "macro_rules! m { () => {} }"),
        ("code", "", "type U = A;"),
    ],
    "c": [
        ("docstring", "", "/* Licence é */\n"),
        ("code", "", "#ifndef A_H\n#define A_H"),
        (
            "import",
            "",
            "#include <x.h>\n#if defined(A) && \\\n    defined(B)\n#include <y.h>\n#endif",
        ),
        ("class", "foo", "// A foo 🙂.\nstruct foo {\n  int a;\n};"),
        ("class", "foo_t", "typedef struct { int a; } foo_t;"),
        ("code", "", "typedef struct foo bar;\nint f(int);"),
        ("function", "f", "#ifdef Q\n/* é */\nstatic int *\nf(int a)\n{\n  return 1;\n}"),
        ("function", "f", "#else\nstatic int *f(int a) { return 2; }\n#endif\n#endif"),
    ],
    "cpp": [
        ("import", "", "#include <x>\nusing namespace std;"),
        ("class", "a::b", "namespace a::b {"),
        ("class", "a::b > A", "// é\ntemplate <typename T>\nclass A : public B {"),
        ("method", "a::b > A > A", "public:\n  A() : x(1) {}"),
        ("code", "a::b > A", "  ~A();"),
        ("method", "a::b > A > operator==", "  bool operator==(A& o) const { return true; }"),
        ("method", "a::b > A > f", "private:\n  // 🙂\n  template <class U> void f(U u) { }"),
        ("code", "a::b > A", "  int x;\n};"),
        ("method", "a::b > A<T> > g", "template <typename T> void A<T>::g(int x) { }"),
        ("method", "a::b > C > operator bool", "C::operator bool() { }\n}  // namespace"),
        ("function", "hidden", "namespace {\n  int& hidden() { }\n}"),
        ("function", "one", 'extern "C" int one(void) { return 1; }'),
    ],
    "ruby": [
        ("docstring", "", "# frozen_string_literal: true\n"),
        ("import", "", 'require "x"\nrequire_relative "y"\n'),
        ("class", "A", "module A"),
        ("class", "A > B::C", "  # Doc é.\n  class B::C < D\n    attr_reader :x\n"),
        ("method", "A > B::C > go", "    # 🙂\n    def go(a)\n      # in\n      1\n    end\n"),
        ("method", "A > B::C > k", "    def self.k = 1\n"),
        ("method", "A > B::C > z", "    private\n\n    # z\n    def z\n      2\n    end\n"),
        ("method", "A > B::C > p", "    private def p\n    end\n  end\nend\n"),
        ("function", "top", "def top; end"),
        ("code", "", "puts 1"),
    ],
    "sql": [
        ("class", "a.b", '-- Doc é.\nCREATE TABLE "a"."b" (x int,\n y text);\n'),
        (
            "function",
            "f",
            "/* 🙂 */\nCREATE FUNCTION f(x int) RETURNS int AS $$\nBEGIN\n  RETURN 1;\nEND;\n"
            "$$ LANGUAGE plpgsql;\n",
        ),
        ("class", "v", "create view v as\nselect 1;"),
        ("code", "", "-- i\nINSERT INTO a VALUES (1);"),
        ("code", "", "SELECT *\nFROM a;"),
    ],
    "shell": [
        ("docstring", "", "#!/bin/sh\n# Doc é.\n"),
        ("import", "", ". ./x.sh\nsource y\n"),
        ("function", "f", "# 🙂\nf() {\n  cat <<EOF\ng() {\n}\nEOF\n}\n"),
        ("function", "g", "function g {\n  echo 2\n}\n"),
        ("code", "", "if true; then\n  f\nfi"),
    ],
}
BY_NAME = {code.language: code for code in ALL}


def file_of(golden: Shown) -> str:
    return "\n".join(text for *_, text in golden) + "\n"


def trimmed(golden: Shown) -> Shown:
    return [(kind, path, text.rstrip()) for kind, path, text in golden]


@pytest.mark.parametrize("language", GOLDEN)
def test_golden(language: str):
    text = file_of(GOLDEN[language])
    assert shown(BY_NAME[language], text) == trimmed(GOLDEN[language])
    assert parsed(BY_NAME[language], text).warning is None


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("language", GOLDEN)
def test_any_line_end_gives_the_same_elements(language: str, newline: str):
    text = file_of(GOLDEN[language]).replace("\n", newline)
    found = [(k, p, s.replace(newline, "\n")) for k, p, s in shown(BY_NAME[language], text)]
    assert found == trimmed(GOLDEN[language])


@pytest.mark.parametrize(
    ("language", "name", "header"),
    [
        ("javascript", "Client", GOLDEN["javascript"][3][2].partition("  timeout")[0]),
        ("javascript", "refund", "  // Comes first.\n  @log()\n  refund(é) {\n"),
        ("javascript", "main", "// Starts.\nexport const main = (x) =>\n"),
        ("java", "go", GOLDEN["java"][3][2].partition("    x();")[0]),
        ("go", "Go", "// Go goes.\nfunc (a *A[K, V]) Go(x int) error {\n"),
        ("go", "A", "// A is 🙂.\ntype A struct {\n"),
        ("sql", "a.b", '-- Doc é.\nCREATE TABLE "a"."b" (x int,\n'),
        ("rust", "fmt", "  /// é\n  #[inline]\n  fn fmt(&self) -> i32\n  where A: B {\n"),
        ("c", "foo", "// A foo 🙂.\nstruct foo {\n"),
        ("cpp", "A", "// é\ntemplate <typename T>\nclass A : public B {\n"),
        ("ruby", "go", "    # 🙂\n    def go(a)\n"),
        ("ruby", "z", "    private\n\n    # z\n    def z\n"),
        ("sql", "f", "/* 🙂 */\nCREATE FUNCTION f(x int) RETURNS int AS $$\n"),
        ("shell", "g", "function g {\n"),
    ],
)
def test_a_definition_says_where_its_signature_ends(language: str, name: str, header: str):
    text = file_of(GOLDEN[language])
    found = next(
        e for e in parsed(BY_NAME[language], text).elements if e.heading_path[-1:] == (name,)
    )
    end = found.attribute("header_end")
    assert isinstance(end, int)
    assert text[found.start : end].endswith(header)


def test_a_body_without_lines_of_its_own_has_no_header_end():
    elements = parsed(C, "int f(void) { return 1; }\n").elements
    assert [e.attribute("header_end") for e in elements] == [None]


def test_a_comment_that_stands_with_nothing_else_heads_only_the_file():
    text = "// One.\n\n// Two.\n\nfunc\n"
    assert [kind for kind, *_ in shown(GO, "// One.\n\npackage a\n\n// Two.\n\nfunc f() {}\n")] == [
        "docstring",
        "import",
        "function",
    ]
    assert shown(SHELL, text.replace("//", "#"))[:2] == [
        ("docstring", "", "# One."),
        ("docstring", "", "# Two."),
    ]


def test_definitions_on_one_line_are_one_element_of_code():
    minified = "function a(){return 1};var b=a(1);class C{d(){}};" * 3
    assert [(kind, path) for kind, path, _ in shown(JAVASCRIPT, minified)] == [("code", "")]
    assert [kind for kind, *_ in shown(JAVASCRIPT, 'import a from "a";import b from "b";')] == [
        "import"
    ]
    assert [kind for kind, *_ in shown(JAVASCRIPT, 'import a from "a";a.go()')] == ["code"]
    assert shown(JAVASCRIPT, "class A { b() {} c() {} }") == [
        ("class", "A", "class A { b() {} c() {} }")
    ]


@pytest.mark.parametrize(
    ("code", "text", "line"),
    [
        (GO, "package a\n\nfunc f() {}\n\n}} ??\n\nfunc g() {\n}\n", 5),
        (JAVASCRIPT, "function f() {}\n\n)) of\n\nfunction g() {\n}\n", 3),
        (RUST, "fn f() {}\n\n}} ??\n\nfn g() {\n}\n", 3),
    ],
)
def test_what_a_grammar_cannot_read_is_code_and_the_rest_is_not(
    code: SourceCode, text: str, line: int
):
    result = parsed(code, text)
    kinds = [(e.kind, e.heading_path) for e in result.elements if e.kind != "import"]
    assert kinds == [("function", ("f",)), ("code", ()), ("function", ("g",))]
    assert result.warning == (
        f"not valid {code.language} at line {line}; what its grammar cannot read is code"
    )


def test_a_body_that_never_ends_is_warned_of():
    assert "not valid javascript" in str(parsed(JAVASCRIPT, "function a() {\n  if (x) {\n").warning)


def test_a_macro_within_a_function_is_no_cause_for_a_warning():
    text = "void f(void) {\n  FALLTHROUGH\n  g(BAD_CAST x);\n}\n"
    assert parsed(C, text).warning is None


HOSTILE = {
    "brackets": "(" * 50_000,
    "nested classes": "class A {\n" * 2000 + "}\n" * 2000,
    "nested modules": "module A\n" * 2000 + "end\n" * 2000,
    "nested conditions": "#if A\nint a;\n" * 2000 + "#endif\n" * 2000,
    "alternatives": "#if A\nint a;\n" + "#elif B\nint b;\n" * 2000 + "#endif\n",
    "pointers": "int " + "*" * 20_000 + "f() { }",
    "assignments": "a = " * 10_000 + "function () {}\n",
    "one line": "function a(){return 1};var b=a(1,[2,3],{x:4});" * 2000,
    "blank to Python": "\x1c\n\x85\n\u2028x" * 1000,
    "NUL": "int a;\ufffd\n" * 100,
}


@pytest.mark.parametrize("code", ALL, ids=lambda code: code.language)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_covered(code: SourceCode, text: str):
    assert parsed(code, text).elements


def test_a_file_beyond_the_parser_is_read_as_text_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(source_code, "CPU_SECONDS", 0)
    monkeypatch.setattr(source_code, "CPU_SECONDS_PER_MB", 0)
    result = parsed(GO, "package a\n\n" + "func f() { x() }\n" * 1000)
    assert [e.kind for e in result.elements] == ["code", "code"]
    assert (result.warning or "").startswith("read as plain text, because parsing it takes far")


MISSING = SourceCode("cobol", "tree_sitter_no_such_language", {})


def test_without_its_grammar_a_file_is_read_as_text_and_says_what_to_install():
    result = parsed(MISSING, "MOVE a TO b.\n\nSTOP RUN.\n")
    assert [e.kind for e in result.elements] == ["code", "code"]
    assert "install tree-sitter and tree-sitter-no-such-language" in (result.warning or "")


def test_the_key_of_a_format_without_its_grammar_is_not_that_with_it(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(registry.PARSERS, "text/x-go", MISSING)
    without = parse_key("rev", "text/x-go")
    assert without == parse_key("rev", "text/x-go")
    monkeypatch.setitem(registry.PARSERS, "text/x-go", GO)
    assert parse_key("rev", "text/x-go") != without


def test_languages_have_keys_and_names_of_their_own():
    types = [kind for kind, parser in registry.PARSERS.items() if isinstance(parser, SourceCode)]
    assert len({parse_key("rev", kind) for kind in types}) == len(types) == len(ALL)
    assert parse_document(b"package a\n", "a.go", "text/x-go").parser == "go_source"


def test_only_the_grammar_that_is_needed_is_imported():
    code = (
        "import sys; from chunking_assets.parsed_elements.registry import PARSERS;"
        "before = [m for m in sys.modules if m.startswith('tree_sitter')];"
        "PARSERS['text/x-go'].parse(b'package a');"
        "print(before, [m for m in sys.modules if m.startswith('tree_sitter_') and '.' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] ['tree_sitter_go']\n"


PIECES = (
    "\n", "\n\n", "\r\n", "\r", " ", "\u2028", "é🙂", "// é\n", "# é\n", "-- é\n", "/* é */", "{", "}",
    "(", ")", ";", "class A {\n", "class A\n", "end\n", "def f\n", "void f() {\n", "function f() {\n",
    "fn f() {\n", "impl A {\n", "func f() {\n", "f() {\n", "import a;\n", "#if A\n", "#else\n",
    "#endif\n", "public:\n", "@a\n", "#[a]\n", "export ", "template <class T>\n", "namespace {\n",
    "x = 1", "create table t (a int);\n", "begin;\n", "<<E\n", "E\n", "`", "'", '"', "$$",
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(ALL),
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=40),
)
def test_elements_cover_the_text_itself(code: SourceCode, pieces: list[str]):
    text = "".join(pieces).encode("utf-8", "replace").decode().replace("\0", "")
    elements = parsed(code, text).elements
    assert all(not text[a.end : b.start].strip() for a, b in pairwise(elements))
    for element in elements:
        end = element.attribute("header_end")
        assert end is None or (isinstance(end, int) and element.start < end <= len(text))
