r"""Rich text. Read token by token; what the format does not show (fonts, pictures, fields) is left.

Specification: Rich Text Format 1.9.1 (Microsoft, 2008). A group is entered with the state around
it and left with that state again, so that damage in one place stays there.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import Kind, ParsedText
from chunking_assets.parsed_elements.limits import Limits
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 1
LIBRARIES = ("python",)

MAX_DEPTH = 5000

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+"
    rb"|([^\\{}\r\n]+)",
    re.DOTALL,
)
_UNREAD = frozenset(
    (
        "fonttbl",
        "colortbl",
        "info",
        "pict",
        "object",
        "themedata",
        "colorschememapping",
        "latentstyles",
        "datastore",
        "listtable",
        "listoverridetable",
        "revtbl",
        "rsidtbl",
        "generator",
        "xmlnstbl",
        "fldinst",
        "filetbl",
        "mmathPr",
        "pgdsctbl",
        "nonshppict",
        "bkmkstart",
        "bkmkend",
        "datafield",
        "wgrffmtfilter",
        "defchp",
        "defpap",
        "falt",
        "panose",
        "pntxta",
        "pntxtb",
        "pnseclvl",
        "template",
        "operator",
        "author",
        "atnid",
        "atnref",
        "atrfstart",
        "atrfend",
        "atnicn",
        "atndate",
        "listname",
        "sn",
        "sv",
        "sp",
    )
)
_MARGINS = frozenset(
    ("header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf")
)
_SYMBOLS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ",
    "qmspace": " ", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "zwj": "\u200d", "zwnj": "\u200c",
}  # fmt: skip
_ESCAPES = {b"\\": "\\", b"{": "{", b"}": "}", b"~": "\u00a0", b"_": "\u2011", b"-": ""}
_CODE_PAGES = {
    0: "cp1252", 77: "mac-roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "big5",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_NUMBER = re.compile(r"\(?[\w.]{1,8}[.)]\Z")


@dataclass(slots=True)
class _State:
    """What a group inherits. `into` is where its text goes: "" the page, None nowhere."""

    into: str | None = ""
    fallback: int = 1
    """Characters after a Unicode one that older readers show in its place."""
    encoding: str = "cp1252"
    hidden: bool = False


@dataclass(slots=True)
class _Paragraph:
    style: int = 0
    outline: int | None = None
    level: int = 0
    in_table: bool = False


def parse(data: bytes, limits: Limits) -> ParsedText:
    """
    Raises:
        CorpusError: it is no rich text.
    """
    if not data[:64].lstrip().startswith(b"{\\rtf"):
        raise CorpusError("it does not begin as rich text does. Save it anew.")
    reader = _Reader()
    reader.read(data)
    missing = "the file is cut short; what it holds is read" if reader.states else None
    return reader.writer.parsed(missing=missing)


class _Reader:
    def __init__(self) -> None:
        self.writer = MarkdownWriter()
        self.states: list[_State] = []
        self.state = _State()
        self.paragraph = _Paragraph()
        self.pieces: dict[str, list[str]] = {"": []}
        self.raw = bytearray()
        self.skip = 0
        self.encoding = "cp1252"
        self.fonts: dict[int, str] = {}
        self.font = 0
        self.styles: dict[int, str] = {}
        self.style = 0
        self.notes = 0
        self.rows: list[list[str]] = []
        self.row: list[str] = []
        self.n_header = 0
        self.ignorable = False
        self.words: dict[str, Callable[[int | None], None]] = {
            "par": lambda _: self.end_paragraph(),
            "sect": lambda _: self.end_paragraph(),
            "page": lambda _: self.end_paragraph(),
            "pard": lambda _: self.plain_paragraph(),
            "cell": lambda _: self.end_cell(),
            "nestcell": lambda _: self.put(" "),
            "nestrow": lambda _: self.put("; "),
            "row": lambda _: self.end_row(),
            "intbl": lambda _: self.set_in_table(),
            "trhdr": lambda _: self.set_header(),
        }

    def read(self, data: bytes) -> None:
        at = 0
        while token := _TOKEN.match(data, at):
            at = token.end()
            word, number, hexadecimal, escape, brace, text = token.groups()
            if hexadecimal is not None:
                if self.skip:
                    self.skip -= 1
                else:
                    self.raw.append(int(hexadecimal, 16))
                continue
            if text is not None:
                dropped = min(self.skip, len(text))
                self.skip -= dropped
                self.raw += text[dropped:]
                continue
            if brace is None and word is None and escape is None:
                continue  # line ends of the source
            self.flush_raw()
            if brace == b"{":
                self.open()
            elif brace == b"}":
                if not self.states:
                    break
                self.close()
                if not self.states:
                    break  # what follows the last brace is no part of it
            elif word is not None:
                value = int(number) if number is not None else None
                if word == b"bin":
                    at += max(value or 0, 0)
                    continue
                self.control(word.decode("ascii"), value)
            elif escape == b"*":
                self.ignorable = True
            elif escape in (b"\r", b"\n"):
                self.end_paragraph()
            elif self.skip:
                self.skip -= 1
            else:
                self.put(_ESCAPES.get(escape, ""))
        self.flush_raw()
        self.end_paragraph()
        self.flush_table()

    # Groups and text

    def open(self) -> None:
        if len(self.states) >= MAX_DEPTH:
            raise CorpusError(f"its groups are nested over {MAX_DEPTH:,} deep. Save it anew.")
        self.states.append(self.state)
        self.state = replace(self.state)
        self.skip, self.ignorable = 0, False

    def close(self) -> None:
        left, self.state = self.state, self.states.pop()
        self.skip, self.ignorable = 0, False
        if left.into == "stylesheet style":
            text = "".join(self.pieces.pop(left.into, [])).strip()
            self.styles.setdefault(self.style, text.rstrip(";").strip())
            return
        if left.into == self.state.into or not left.into:
            return
        text = "".join(self.pieces.pop(left.into, [])).strip()
        if left.into == "label":
            self.pieces.setdefault("marker", []).append(text or "-")
        elif left.into == "footnote" and text:
            self.notes += 1
            self.put(f"[^{self.notes}]")
            self.pieces.setdefault("notes", []).append(f"[^{self.notes}]: {text}")
        elif left.into in ("margin", "annotation") and text:
            self.flush_table()
            if left.into == "margin":
                self.writer.paragraph(text, "furniture")
            else:
                self.pieces.setdefault("notes", []).append(text)

    def flush_raw(self) -> None:
        if self.raw:
            text = bytes(self.raw).decode(self.state.encoding, errors="replace")
            self.raw.clear()
            self.put(text)

    def put(self, text: str) -> None:
        if self.state.into is not None and not self.state.hidden:
            self.pieces.setdefault(self.state.into, []).append(text)

    # Control words

    def control(self, word: str, value: int | None) -> None:
        if word in _SYMBOLS:
            self.put(_SYMBOLS[word])
        elif word == "u" and value is not None:
            code = value % 65536
            self.put_unicode(code)
            self.skip = self.state.fallback
        elif word == "uc":
            self.state.fallback = min(max(value if value is not None else 1, 0), 100)
        elif word in ("v", "deleted"):
            self.state.hidden = value != 0
        elif word in self.words:
            if self.state.into == "":
                self.words[word](value)
            else:
                self.put("\n" if word in ("par", "sect", "page", "row") else " ")
        else:
            self.settings(word, value)
            self.destination(word)
        self.ignorable = False

    def put_unicode(self, code: int) -> None:
        """Characters beyond 16 bits come as two halves."""
        target = self.pieces.setdefault(self.state.into or "", [])
        if 0xDC00 <= code < 0xE000 and target and target[-1][-1:] >= "\ud800":
            last = target[-1][-1]
            if "\ud800" <= last < "\udc00" and self.state.into is not None:
                whole = 0x10000 + ((ord(last) - 0xD800) << 10) + (code - 0xDC00)
                target[-1] = target[-1][:-1] + chr(whole)
                return
        self.put(chr(code))

    def settings(self, word: str, value: int | None) -> None:
        if word == "ansicpg":
            self.encoding = self.state.encoding = _known(f"cp{value}", self.encoding)
        elif word == "mac":
            self.encoding = self.state.encoding = "mac-roman"
        elif word in ("f", "deff") and value is not None:
            self.font = value
            if self.state.into != "fonts":
                self.state.encoding = self.fonts.get(value, self.encoding)
        elif word == "fcharset" and value is not None and value in _CODE_PAGES and value:
            self.fonts[self.font] = _CODE_PAGES[value]
        elif word == "plain":
            self.state.encoding, self.state.hidden = self.encoding, False
        elif word == "s" and value is not None:
            if self.state.into == "stylesheet style":
                self.style = value
            elif self.state.into == "":
                self.paragraph.style = value
        elif word == "outlinelevel" and value is not None and self.state.into == "":
            self.paragraph.outline = value
        elif word in ("ilvl", "ls") and value is not None and self.state.into == "":
            self.paragraph.level = max(self.paragraph.level, value + 1 if word == "ilvl" else 1)

    def destination(self, word: str) -> None:
        """Words that begin a group say where its text goes."""
        if self.state.into is None:
            return
        if word == "stylesheet":
            self.state.into = "stylesheet style"
        elif self.state.into == "stylesheet style":
            return
        elif word == "fonttbl":
            self.state.into = "fonts"
        elif word in ("listtext", "pntext"):
            self.state.into = "label"
        elif word in ("footnote", "annotation"):
            self.state.into = word
        elif word in _MARGINS:
            self.state.into = "margin"
        elif word in _UNREAD or (self.ignorable and word not in ("shptxt", "shpinst", "shprslt")):
            self.state.into = None

    # Blocks

    def plain_paragraph(self) -> None:
        self.paragraph = _Paragraph()

    def set_in_table(self) -> None:
        self.paragraph.in_table = True

    def set_header(self) -> None:
        """Told before the row's cells."""
        self.n_header = len(self.rows) + 1

    def taken(self) -> str:
        text, self.pieces[""] = "".join(self.pieces.get("", [])), []
        return text.strip()

    def end_paragraph(self) -> None:
        if self.paragraph.in_table:
            self.put(" ")
            return
        self.flush_table()
        text, marker = self.taken(), "".join(self.pieces.pop("marker", []))
        paragraph = self.paragraph
        style = self.styles.get(paragraph.style, "").lower()
        named = _HEADING.match(style)
        if not text:
            pass
        elif named or style in ("title", "subtitle") or paragraph.outline in range(6):
            level = paragraph.outline + 1 if paragraph.outline in range(6) else 1  # type: ignore[operator]
            if named:
                level = int(named[1])
            is_number = marker[:1].isalnum()
            self.writer.heading(f"{marker} {text}" if is_number else text, level)
        elif marker or paragraph.level:
            shown = marker if _NUMBER.match(marker) else "-"
            self.writer.list_item(text, max(paragraph.level, 1), shown)
        else:
            kind: Kind = "caption" if style == "caption" else "paragraph"
            self.writer.paragraph(text, kind)
        for note in self.pieces.pop("notes", []):
            self.writer.paragraph(note, "definition")

    def end_cell(self) -> None:
        marker = "".join(self.pieces.pop("marker", []))
        text = self.taken()
        self.row.append(f"{marker} {text}" if marker[:1].isalnum() else text)

    def end_row(self) -> None:
        self.rows.append(self.row)
        self.row = []
        self.paragraph.in_table = False

    def flush_table(self) -> None:
        if self.row:
            self.rows.append(self.row)
        rows, self.rows, self.row = self.rows, [], []
        if rows:
            self.writer.table(rows, self.n_header)
        self.n_header = 0


def _known(encoding: str, otherwise: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return otherwise
