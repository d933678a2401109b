"""Small documents, one for each thing that readers of documents get wrong, and what must be read.

`fault` says what goes wrong elsewhere. The first fault that comes back here is named by the test
that fails. Whoever adds a format, or finds a document that is read wrong, adds a document.
"""

import io
import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage

import pytest
from written_files import (
    column,
    docx,
    epub,
    grid,
    odt,
    p,
    pdf,
    pptx,
    shape,
    slide_table,
    tbl,
    xlsx,
    zipped,
)

from chunking_assets.parsed_elements.build import HEAD_BYTES
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.parse import STATUSES, parse_document
from chunking_assets.parsed_elements.registry import MODELS, PARSERS
from chunking_assets.raw_documents.media_type import OLE2, media_type

LINES = [
    "The first line of a page that is about something, and",
    "goes on with a second line of the very same size that",
    "ends on the third.",
]


def notebook(*cells: object) -> bytes:
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}).encode()


def mail(body: str, subtype: str = "plain", attach: str = "") -> bytes:
    message = EmailMessage()
    message["From"], message["Subject"] = "Ana <ana@example.org>", "Fees"
    message.set_content(body, subtype=subtype)
    if attach:
        message.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename=attach)
    return message.as_bytes()


def cut(data: bytes, share: float) -> bytes:
    return data[: int(share * len(data))]


def bomb() -> bytes:
    """600 MB of paragraphs in less than 1.4 MB."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        with archive.open("word/document.xml", "w", force_zip64=True) as member:
            for _ in range(600):
                member.write(b"<w:p/>    " * 100_000)
    return buffer.getvalue()


def xls(rows: Sequence[Sequence[str | float]]) -> bytes:
    """A workbook of one sheet in BIFF8, in the smallest compound file ([MS-XLS], [MS-CFB])."""

    def record(kind: int, content: bytes) -> bytes:
        return struct.pack("<HH", kind, len(content)) + content

    bof, eof = struct.pack("<HHHHII", 0x600, 5, 0, 0, 0, 0), record(0x0A, b"")
    name = b"\x05\x00Sheet"
    first = len(record(0x809, bof)) + len(record(0x85, bytes(6) + name)) + len(eof)
    stream = record(0x809, bof) + record(0x85, struct.pack("<IH", first, 0) + name) + eof
    stream += record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 0, 0, 0))
    for y, row in enumerate(rows):
        for x, value in enumerate(row):
            place = struct.pack("<HHH", y, x, 0)
            if isinstance(value, str):
                text = struct.pack("<HB", len(value), 0) + value.encode("latin-1")
                stream += record(0x204, place + text)
            else:
                stream += record(0x203, place + struct.pack("<d", value))
    stream = (stream + eof).ljust(4096, b"\0")  # a shorter stream would be a small one
    n_sectors = len(stream) // 512
    chain = [*range(3, n_sectors + 2), 0xFFFFFFFE]
    fat = [0xFFFFFFFD, 0xFFFFFFFE, *chain]
    head = OLE2 + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    head += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, 0xFFFFFFFE, 0, 0xFFFFFFFE, 0)
    head += struct.pack("<I", 0) + b"\xff" * 432

    def entry(called: str, kind: int, child: int, start: int, size: int) -> bytes:
        encoded = called.encode("utf-16-le") + b"\0\0"
        links = struct.pack("<III", 0xFFFFFFFF, 0xFFFFFFFF, child)
        return (
            encoded.ljust(64, b"\0") + struct.pack("<HBB", len(encoded), kind, 1) + links
            + bytes(36) + struct.pack("<IQ", start, size)
        )  # fmt: skip

    directory = entry("Root Entry", 5, 1, 0xFFFFFFFE, 0)
    directory += entry("Workbook", 2, 0xFFFFFFFF, 2, len(stream))
    table = struct.pack(f"<{len(fat)}I", *fat).ljust(512, b"\xff")
    return head + table + directory.ljust(512, b"\0") + stream


_OPEN = " ".join(
    f'xmlns:{n}="urn:oasis:names:tc:opendocument:xmlns:{n}:1.0"'
    for n in ("office", "text", "table", "drawing")
).replace("xmlns:drawing", "xmlns:draw")


def open_document(kind: str, body: str) -> bytes:
    return zipped(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "content.xml": f"<office:document-content {_OPEN}><office:body><office:{kind}>{body}"
            f"</office:{kind}></office:body></office:document-content>",
            "META-INF/manifest.xml": "<manifest/>",
        },
        stored=["mimetype"],
    )


def ods(rows: Sequence[Sequence[str]]) -> bytes:
    lines = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
            for cell in row
        )
        + "</table:table-row>"
        for row in rows
    )
    return open_document("spreadsheet", f'<table:table table:name="Sheet">{lines}</table:table>')


def odp(title: str) -> bytes:
    return open_document(
        "presentation",
        f"<draw:page><draw:frame><draw:text-box><text:p>{title}</text:p></draw:text-box>"
        "</draw:frame></draw:page>",
    )


Expected = tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, dict[str, object]]
"""Kind, text, heading path, and what else is known: level, language, header, attributes."""


@dataclass(frozen=True)
class Canary:
    fault: str
    file: str
    data: bytes | Callable[[], bytes]
    status: str
    elements: Sequence[Expected] = ()
    says: str = ""

    def content(self) -> bytes:
        return self.data if isinstance(self.data, bytes) else self.data()


CANARIES = [
    # Markdown
    Canary(
        "a heading is hidden behind the mark of a page",
        "converted.md",
        b"# Guide\n\n<!-- PAGE 2 -->### Refunds\nFive days.\n",
        "ok",
        [
            ("heading", "# Guide", "Guide"),
            ("html", "<!-- PAGE 2 -->", "Guide"),
            ("heading", "### Refunds", "Guide > Refunds", {"level": 3}),
            ("paragraph", "Five days.", "Guide > Refunds"),
        ],
    ),
    Canary(
        "the own text of an item with a list below it is dropped",
        "list.md",
        b"- Pay by card\n  - Visa\n    - debit\n- Pay cash\n\n  at the desk\n",
        "ok",
        [
            ("list_item", "- Pay by card", "", {"level": 1}),
            ("list_item", "  - Visa", "", {"level": 2}),
            ("list_item", "    - debit", "", {"level": 3}),
            ("list_item", "- Pay cash", "", {"level": 1}),
            ("list_item", "  at the desk", "", {"level": 1}),
        ],
    ),
    Canary(
        "a table before the first heading is moved below it",
        "table.md",
        b"| Card | Fee |\n|---|---|\n| Visa | 1 % |\n\n# Fees\n\nPaid yearly.\n",
        "ok",
        [
            (
                "table",
                "| Card | Fee |\n|---|---|\n| Visa | 1 % |",
                "",
                {"header": "| Card | Fee |\n|---|---|\n"},
            ),
            ("heading", "# Fees", "Fees"),
            ("paragraph", "Paid yearly.", "Fees"),
        ],
    ),
    Canary(
        "a # in a fence is taken for a heading",
        "fence.md",
        b"# Install\n\n~~~~sh\n# not a heading\n~~~\nstill code\n~~~~~\n\n   ```\n   # nor this\n   ```\nDone.\n",
        "ok",
        [
            ("heading", "# Install", "Install"),
            (
                "code",
                "~~~~sh\n# not a heading\n~~~\nstill code\n~~~~~",
                "Install",
                {"language": "sh"},
            ),
            ("code", "   ```\n   # nor this\n   ```", "Install"),
            ("paragraph", "Done.", "Install"),
        ],
    ),
    Canary(
        "a fence that is never closed ends at the next heading",
        "unclosed.md",
        b"Run:\n\n```sh\nmake\n\n# all of it\n",
        "ok",
        [
            ("paragraph", "Run:"),
            ("code", "```sh\nmake\n\n# all of it", "", {"language": "sh"}),
        ],
    ),
    Canary(
        "the top heading is lost once a deeper one appears",
        "levels.md",
        b"# Guide\n\n### Cards\n\na\n\n## Cash\n\nb\n\n# Help\n\nc\n",
        "ok",
        [
            ("heading", "# Guide", "Guide"),
            ("heading", "### Cards", "Guide > Cards", {"level": 3}),
            ("paragraph", "a", "Guide > Cards"),
            ("heading", "## Cash", "Guide > Cash"),
            ("paragraph", "b", "Guide > Cash"),
            ("heading", "# Help", "Help"),
            ("paragraph", "c", "Help"),
        ],
    ),
    Canary(
        "what stands before the first heading is dropped",
        "before.md",
        b"Read this first.\n# Guide\nThen this.\n",
        "ok",
        [
            ("paragraph", "Read this first."),
            ("heading", "# Guide", "Guide"),
            ("paragraph", "Then this.", "Guide"),
        ],
    ),
    Canary(
        "tabs and no-break spaces in code become spaces",
        "makefile.md",
        "```make\nall:\n\tcc\u00a0-O2  \n```\n".encode(),
        "ok",
        [
            ("code", "```make\nall:\n\tcc\xa0-O2  \n```", "", {"language": "make"}),
        ],
    ),
    Canary(
        "blank lines and indentation in code are lost",
        "yaml.md",
        b"```yaml\na:\n  b:\n\n    - c\n```\n",
        "ok",
        [
            ("code", "```yaml\na:\n  b:\n\n    - c\n```", "", {"language": "yaml"}),
        ],
    ),
    Canary(
        "front matter is text, or a heading",
        "front.md",
        b"---\ntitle: Fees\ntags: [cards, eu]\nowner: {name: Ana}\n---\nPaid yearly.\n",
        "ok",
        [
            (
                "front_matter",
                "---\ntitle: Fees\ntags: [cards, eu]\nowner: {name: Ana}\n---",
                "",
                {"language": "yaml", "metadata.title": "Fees", "metadata.tags": "cards, eu"},
            ),
            ("paragraph", "Paid yearly."),
        ],
    ),
    Canary(
        "a break is taken for front matter",
        "break.md",
        b"---\n\nNo keys here: none at all.\n\n---\n\nEnd.\n",
        "ok",
        [
            ("residual", "---"),
            ("paragraph", "No keys here: none at all."),
            ("residual", "---"),
            ("paragraph", "End."),
        ],
    ),
    Canary(
        "a line of dashes below a paragraph is no heading",
        "setext.md",
        b"Fees\n----\n\nPaid yearly.\n",
        "ok",
        [
            ("heading", "Fees\n----", "Fees", {"level": 2}),
            ("paragraph", "Paid yearly.", "Fees"),
        ],
    ),
    Canary(
        "the byte-order mark hides the first heading",
        "bom.md",
        b"\xef\xbb\xbf# Fees\r\n\r\nPaid yearly.\r\n",
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            ("paragraph", "Paid yearly.", "Fees"),
        ],
    ),
    Canary(
        "blocks nested deeper than twenty are dropped",
        "deep.md",
        b"> " * 30 + b"deep\n\nafter\n",
        "ok",
        [
            ("quote", "> > > > > > > > > > > > > > > > > > > > > > > > > > > > > > deep"),
            ("paragraph", "after"),
        ],
    ),
    Canary(
        "an emoji shifts every later offset",
        "emoji.md",
        "# \U0001f469\u200d\U0001f4bb Fees\n\n- e\u0301t\u00e9 \U0001f3d6\ufe0f\n\n```py\npay('\U0001f4b6')\n```\n".encode(),
        "ok",
        [
            ("heading", "# 👩\u200d💻 Fees", "👩\u200d💻 Fees"),
            ("list_item", "- été 🏖️", "👩\u200d💻 Fees", {"level": 1}),
            ("code", "```py\npay('💶')\n```", "👩\u200d💻 Fees", {"language": "py"}),
        ],
    ),
    Canary(
        "a link definition or a pipe in a cell tears its block",
        "pipes.md",
        b"| a | b |\n|---|---|\n| x \\| y | `p\\|q` |\n\n[fees]: https://example.org/fees\n",
        "ok",
        [
            (
                "table",
                "| a | b |\n|---|---|\n| x \\| y | `p\\|q` |",
                "",
                {"header": "| a | b |\n|---|---|\n"},
            ),
            ("definition", "[fees]: https://example.org/fees"),
        ],
    ),
    Canary(
        "HTML in Markdown swallows the Markdown in it",
        "details.md",
        b"<details>\n<summary>More</summary>\n\n## Limits\n\n1000 EUR.\n\n</details>\n\n<!-- hidden\n# no heading -->\n",
        "ok",
        [
            ("html", "<details>\n<summary>More</summary>"),
            ("heading", "## Limits", "Limits", {"level": 2}),
            ("paragraph", "1000 EUR.", "Limits"),
            ("html", "</details>", "Limits"),
            ("html", "<!-- hidden\n# no heading -->", "Limits"),
        ],
    ),
    Canary(
        "the components of MDX swallow code, and its imports are prose",
        "tabs.mdx",
        b"""import {Card} from '@site/card'

# Install

<Tabs>
  <Tab title="npm">
    ```sh
    npm i

    # no heading
    ```
  </Tab>
</Tabs>
<Card
  title="Fees"
>
    Indented {props.text} is no code.
</Card>

{/* not shown */}
""",
        "ok",
        [
            ("code", "import {Card} from '@site/card'", "", {"language": "jsx"}),
            ("heading", "# Install", "Install"),
            ("html", "<Tabs>", "Install"),
            ("html", '  <Tab title="npm">', "Install"),
            (
                "code",
                "    ```sh\n    npm i\n\n    # no heading\n    ```",
                "Install",
                {"language": "sh"},
            ),
            ("html", "  </Tab>", "Install"),
            ("html", "</Tabs>", "Install"),
            ("html", '<Card\n  title="Fees"\n>', "Install"),
            ("paragraph", "    Indented {props.text} is no code.", "Install"),
            ("html", "</Card>", "Install"),
            ("html", "{/* not shown */}", "Install"),
        ],
    ),
    # HTML
    Canary(
        "navigation, cookie bars and footers are read as the page",
        "help.html",
        b"""<!doctype html><title>Fees - Tidepay</title><body><a class="skip-link" href="#m">Skip</a>
<header><a href="/">Home</a></header><nav><ul><li>Menu</ul></nav>
<div id="cookie-consent-banner">We use cookies <button>OK</button></div>
<main><h1>Fees</h1><p>Paid yearly.</p></main><aside>Related</aside><footer>(c) 2026</footer>""",
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            ("paragraph", "Paid yearly.", "Fees"),
        ],
    ),
    Canary(
        "headings and asides of an article are taken for the site's",
        "article.html",
        b"<html><body><article><header><h1>Fees</h1></header><aside><p>Not for gifts.</aside>"
        b"<section><header><h2>Cards</h2></header><p>1 %</section></article></body></html>",
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            ("paragraph", "Not for gifts.", "Fees"),
            ("heading", "## Cards", "Fees > Cards"),
            ("paragraph", "1 %", "Fees > Cards"),
        ],
    ),
    Canary(
        "a table in a cell becomes rows of the table around it",
        "nested.html",
        b"<html><table><tr><th>Plan<th>Fees<tr><td>Start<td><table><tr><td>Visa<td>1 %<tr><td>Amex<td>2 %"
        b"</table></table>",
        "ok",
        [
            (
                "table",
                "| Plan | Fees |\n| --- | --- |\n| Start | Visa 1 %; Amex 2 % |",
                "",
                {"header": "| Plan | Fees |\n| --- | --- |\n"},
            ),
        ],
    ),
    Canary(
        "cells that reach over rows and columns shift the others",
        "spans.html",
        b"<html><table><tr><th>Plan<th colspan=2>Fee<tr><td rowspan=2>Start<td>Visa<td>1 %<tr><td>Amex<td>2 %"
        b"</table>",
        "ok",
        [
            (
                "table",
                "| Plan | Fee | Fee |\n| --- | --- | --- |\n| Start | Visa | 1 % |\n| Start | Amex | 2 % |",
                "",
                {"header": "| Plan | Fee | Fee |\n| --- | --- | --- |\n"},
            ),
        ],
    ),
    Canary(
        "preformatted text is folded, and its entities are kept",
        "pre.html",
        b'<html><body><pre><code class="language-sh">if a; then\n\techo "&lt;b&gt;"\nfi\n</code></pre>',
        "ok",
        [
            ("code", '```sh\nif a; then\n\techo "<b>"\nfi\n```', "", {"language": "sh"}),
        ],
    ),
    Canary(
        "terms are torn from their definitions",
        "terms.html",
        b"<html><body><dl><dt>Payout<dd>Money to you.<dd>Daily.<dt>Fee<dd>Money to us.</dl>",
        "ok",
        [
            ("definition", "Payout\n: Money to you.\n: Daily."),
            ("definition", "Fee\n: Money to us."),
        ],
    ),
    Canary(
        "items with blocks in them lose text or nesting",
        "steps.html",
        b"<html><ol start=3><li>Open<ul><li>the app</ul><li><p>Pay<p>and wait</ol>",
        "ok",
        [
            ("list_item", "3. Open", "", {"level": 1}),
            ("list_item", "   - the app", "", {"level": 2}),
            ("list_item", "4. Pay", "", {"level": 1}),
            ("list_item", "   and wait", "", {"level": 1}),
        ],
    ),
    Canary(
        "a table that only arranges the page is read as data",
        "layout.html",
        b"<html><table><tr><td><h2>News</h2><p>None.<td><ul><li>Archive</ul></table>",
        "ok",
        [
            ("heading", "## News", "News", {"level": 2}),
            ("paragraph", "None.", "News"),
            ("list_item", "- Archive", "News", {"level": 1}),
        ],
    ),
    Canary(
        "a page in another encoding than it is served in",
        "latin.html",
        '<html><meta charset="iso-8859-1"><p>Geb\u00fchren: 5 \u20ac'.encode("cp1252"),
        "ok",
        [
            ("paragraph", "Gebühren: 5 €"),
        ],
    ),
    Canary(
        "a page that a script fills in passes for an empty success",
        "app.html",
        b"<html><head><title>App</title></head><body><script>render()</script></body></html>",
        "empty",
        says="nothing to read in it",
    ),
    Canary(
        "a page saved as .doc fails as Word",
        "fees.doc",
        b"<html><body><h1>Fees</h1><p>None.</p></body></html>",
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            ("paragraph", "None.", "Fees"),
        ],
    ),
    # Plain text and encodings
    Canary(
        "line ends of old systems, and U+2028, move offsets",
        "lines.txt",
        "one\r\nline\r\rtwo\u2028still two\n\nthree\n".encode(),
        "ok",
        [
            ("paragraph", "one\r\nline"),
            ("paragraph", "two\u2028still two"),
            ("paragraph", "three"),
        ],
    ),
    Canary(
        "UTF-16 without a mark is binary to readers",
        "utf16.txt",
        "Geb\u00fchren\n\nF\u00fcnf Euro.\n".encode("utf-16-le"),
        "ok",
        [
            ("paragraph", "Gebühren"),
            ("paragraph", "Fünf Euro."),
        ],
    ),
    Canary(
        "Latin-1 becomes question marks",
        "latin.txt",
        (
            "Die Geb\u00fchren f\u00fcr \u00dcberweisungen betragen f\u00fcnf Euro, g\u00fcltig f\u00fcr alle L\u00e4nder.\n"
        ).encode("cp1252"),
        "ok",
        [
            (
                "paragraph",
                "Die Gebühren für Überweisungen betragen fünf Euro, gültig für alle Länder.",
            ),
        ],
    ),
    Canary(
        "one broken byte makes a whole UTF-8 text mojibake",
        "broken.txt",
        "G\u00fcltig f\u00fcr \u00d6sterreich, L\u00e4nder und St\u00e4dte \u2013 ".encode()
        + b"\xff.\n",
        "ok",
        [
            ("paragraph", "Gültig für Österreich, Länder und Städte – �."),
        ],
    ),
    Canary(
        "text from right to left, and without spaces, is reordered or cut",
        "scripts.txt",
        "\u0627\u0644\u0631\u0633\u0648\u0645 5 \u064a\u0648\u0631\u0648.\n\n\u624b\u6570\u6599\u306f\u4e94\u30e6\u30fc\u30ed\u3067\u3059\u3002\u5e74\u306b\u4e00\u5ea6\u3002\n".encode(),
        "ok",
        [
            ("paragraph", "الرسوم 5 يورو."),
            ("paragraph", "手数料は五ユーロです。年に一度。"),
        ],
    ),
    Canary(
        "a NUL ends the text, or is stored where no table can hold it",
        "nul.md",
        "# Fees\x00\n".encode("utf-16"),
        "ok",
        [
            ("heading", "# Fees�", "Fees�"),
        ],
    ),
    Canary(
        "bytes that are no text are read as text",
        "photo.txt",
        bytes(range(256)) * 4,
        "unsupported",
        says="binary content",
    ),
    Canary(
        "a file of nothing",
        "nothing.md",
        b"\xef\xbb\xbf \r\n",
        "empty",
        says="nothing to read in it",
    ),
    Canary(
        "a conversation is cut between a speaker and what was said",
        "chat.txt",
        b"Ticket 4711\n\n[2026-05-12 09:14] Ana (customer): Where is it?\nIt was due.\n\nReally.\n[2026-05-12 09:15] Rui (Tidepay): On its way.\n",
        "ok",
        [
            ("paragraph", "Ticket 4711"),
            (
                "turn",
                "[2026-05-12 09:14] Ana (customer): Where is it?\nIt was due.\n\nReally.",
                "",
                {"role": "customer", "speaker": "Ana", "time": "2026-05-12 09:14"},
            ),
            (
                "turn",
                "[2026-05-12 09:15] Rui (Tidepay): On its way.",
                "",
                {"role": "Tidepay", "speaker": "Rui", "time": "2026-05-12 09:15"},
            ),
        ],
    ),
    Canary(
        "a messenger's export is one paragraph",
        "export.txt",
        b"12/05/2026, 09:14 - Ana: Where is\nmy card?\n12/05/2026, 09:15 - Bo: On its way.\n",
        "ok",
        [
            (
                "turn",
                "12/05/2026, 09:14 - Ana: Where is\nmy card?",
                "",
                {"speaker": "Ana", "time": "12/05/2026, 09:14"},
            ),
            (
                "turn",
                "12/05/2026, 09:15 - Bo: On its way.",
                "",
                {"speaker": "Bo", "time": "12/05/2026, 09:15"},
            ),
        ],
    ),
    Canary(
        "a log is taken for a conversation",
        "server.log",
        b"[09:14] INFO: started\n[09:15] ERROR: stopped\n[09:16] INFO: started\n",
        "ok",
        [
            ("paragraph", "[09:14] INFO: started\n[09:15] ERROR: stopped\n[09:16] INFO: started"),
        ],
    ),
    # Conversations and subtitles
    Canary(
        "captions lose their times and voices",
        "talk.vtt",
        b"WEBVTT\n\nNOTE by Ana\n\n1\n00:01.000 --> 00:02.500\n<v Ana>Hello\nthere.\n",
        "ok",
        [
            ("residual", "WEBVTT"),
            ("residual", "NOTE by Ana"),
            (
                "turn",
                "1\n00:01.000 --> 00:02.500\n<v Ana>Hello\nthere.",
                "",
                {"time": "00:01.000", "until": "00:02.500", "speaker": "Ana"},
            ),
        ],
    ),
    Canary(
        "captions of SubRip lose theirs",
        "film.srt",
        b"1\r\n00:00:01,000 --> 00:00:02,000\r\nOl\xc3\xa1.\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nSim.\r\n",
        "ok",
        [
            (
                "turn",
                "1\r\n00:00:01,000 --> 00:00:02,000\r\nOlá.",
                "",
                {"time": "00:00:01,000", "until": "00:00:02,000"},
            ),
            (
                "turn",
                "2\r\n00:00:03,000 --> 00:00:04,000\r\nSim.",
                "",
                {"time": "00:00:03,000", "until": "00:00:04,000"},
            ),
        ],
    ),
    # Data
    Canary(
        "a CSV of Excel is split at commas, and its quoted lines are torn",
        "prices.csv",
        b'name;note;price\r\nAna;one, or two;1,5\r\nBo;"two\r\n\r\nlines; and ""more""";2\r\nCy;three;3\r\n',
        "ok",
        [
            (
                "table",
                "name;note;price\r\nAna;one, or two;1,5",
                "",
                {"row": 1, "header": "name;note;price\r\n"},
            ),
            (
                "table",
                'Bo;"two\r\n\r\nlines; and ""more""";2',
                "",
                {"row": 3, "header": "name;note;price\r\n"},
            ),
            ("table", "Cy;three;3", "", {"row": 4, "header": "name;note;price\r\n"}),
        ],
    ),
    Canary(
        "a quote that is never closed swallows the rest of a CSV",
        "quote.csv",
        b'name,note\nAna,"one\nBo,two\n',
        "ok",
        [
            ("table", 'name,note\nAna,"one\nBo,two', "", {"row": 1, "header": "name,note\n"}),
        ],
        says="a quote opened in line 2 is never closed",
    ),
    Canary(
        "tabs between cells are white space",
        "prices.tsv",
        b"name\tprice\nAna\t1\nBo\t2\n",
        "ok",
        [
            ("table", "name\tprice\nAna\t1\nBo\t2", "", {"row": 1, "header": "name\tprice\n"}),
        ],
    ),
    Canary(
        "escapes of JSON hide words",
        "city.json",
        b'{"city": "M\\u00fcnster", "fee": {"eur": 5}}',
        "ok",
        [
            ("code", '{"city": "Münster", "fee": {"eur": 5}}', "", {"language": "json"}),
        ],
    ),
    Canary(
        "an export of a chat is JSON to everybody",
        "export.json",
        b'[{"user": "ana", "text": "Where is it?", "ts": "1747041240.1"}, {"user": "bo", "text": "Soon."}]',
        "ok",
        [
            (
                "turn",
                "[1747041240.1] ana: Where is it?",
                "",
                {"speaker": "ana", "time": "1747041240.1"},
            ),
            ("turn", "bo: Soon.", "", {"speaker": "bo"}),
        ],
    ),
    Canary(
        "JSON cut short passes for a document",
        "half.json",
        b'{"a": [1, 2',
        "ok",
        [
            ("paragraph", '{"a": [1, 2'),
        ],
        says="no valid JSON (Expecting ',' delimiter, line 1), read as plain text",
    ),
    Canary(
        "a broken line ends JSON Lines",
        "log.jsonl",
        b'{"a": 1}\n{"a": \n{"a": 3}\n',
        "ok",
        [
            ("code", '{"a": 1}', "", {"language": "json", "line": 1}),
            ("code", '{"a":', "", {"language": "json", "line": 2}),
            ("code", '{"a": 3}', "", {"language": "json", "line": 3}),
        ],
        says="1 lines are no JSON, the first: 2",
    ),
    # Notebooks and e-mail
    Canary(
        "a notebook's outputs are larger than the notebook",
        "loud.ipynb",
        notebook(
            {"cell_type": "markdown", "source": ["# Fees\n", "```\n", "open"]},
            {"cell_type": "code", "source": "pay()", "outputs": [{"text": "y" * 1_000_000}]},
            {
                "cell_type": "code",
                "source": "plot()",
                "outputs": [{"data": {"image/png": "iVBORw0KGgo="}}],
            },
        ),
        "ok",
        [
            ("heading", "# Fees", "Fees", {"cell": 1}),
            ("code", "```\nopen", "Fees", {"cell": 1}),
            ("code", "```\npay()\n```", "Fees", {"cell": 2}),
            (
                "code",
                "```\n" + "y" * 2000 + "\n… 998000 more characters of output\n```",
                "Fees",
                {"cell": 2, "output": True},
            ),
            ("code", "```\nplot()\n```", "Fees", {"cell": 3}),
        ],
        says="1 outputs are cut to 2000 characters",
    ),
    Canary(
        "a notebook that is none",
        "none.ipynb",
        b'{"cells": 3}',
        "failed",
        says="there are no cells in it",
    ),
    Canary(
        "an e-mail saved in UTF-16 has no headers",
        "fees.eml",
        "From: Ana <ana@example.org>\r\nSubject: =?utf-8?q?Geb=C3=BChren?=\r\n\r\nF\u00fcnf Euro.\r\n\r\n> Wie viel?\r\n".encode(
            "utf-16"
        ),
        "ok",
        [
            ("heading", "# Gebühren", "Gebühren"),
            ("paragraph", "From: Ana <ana@example.org>", "Gebühren", {"part": "header"}),
            ("paragraph", "Fünf Euro.", "Gebühren"),
            ("quote", "> Wie viel?", "Gebühren"),
        ],
    ),
    Canary(
        "an attachment vanishes",
        "attached.eml",
        mail("See the list.", attach="fees.pdf"),
        "partial",
        elements=[
            ("heading", "# Fees", "Fees"),
            ("paragraph", "From: Ana <ana@example.org>", "Fees", {"part": "header"}),
            ("paragraph", "See the list.", "Fees"),
            ("heading", "## Attachments", "Fees > Attachments"),
            (
                "list_item",
                "- fees.pdf (application/pdf, 4 bytes)",
                "Fees > Attachments",
                {"level": 1, "part": "attachment"},
            ),
        ],
        says="attachments not read: fees.pdf",
    ),
    Canary(
        "the page of an e-mail is read as its source",
        "page.eml",
        mail("<h2>Cards</h2><p>1 %", subtype="html"),
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            ("paragraph", "From: Ana <ana@example.org>", "Fees", {"part": "header"}),
            ("heading", "## Cards", "Fees > Cards"),
            ("paragraph", "1 %", "Fees > Cards"),
        ],
    ),
    Canary(
        "an encrypted e-mail is gibberish",
        "sealed.eml",
        b"From: a@b.c\nSubject: x\nContent-Type: multipart/encrypted; boundary=b\n\n--b--\n",
        "encrypted",
        says="the message is encrypted",
    ),
    Canary(
        "an Outlook file is binary rubbish",
        "fees.msg",
        OLE2 + bytes(900),
        "unsupported",
        says="no parser for application/vnd.ms-outlook",
    ),
    Canary(
        "tags of XML are read as text",
        "data.xml",
        b"<?xml version='1.0'?><fees><fee>5</fee></fees>",
        "unsupported",
        says="no parser for application/xml",
    ),
    # Other markup
    Canary(
        "titles, directives and literal blocks of reStructuredText",
        "guide.rst",
        b"Guide\n=====\n\nPay::\n\n    $ pay 5\n\n.. code-block:: python\n\n   pay(5)\n\nCards\n-----\n\n- card\n\n  of yours\n- cash\n\n=====  ===\nCard   Fee\n=====  ===\nVisa   1\n=====  ===\n",
        "ok",
        [
            ("heading", "Guide\n=====", "Guide"),
            ("paragraph", "Pay::", "Guide"),
            ("code", "    $ pay 5", "Guide"),
            ("code", ".. code-block:: python\n\n   pay(5)", "Guide", {"language": "python"}),
            ("heading", "Cards\n-----", "Guide > Cards"),
            ("list_item", "- card", "Guide > Cards", {"level": 1}),
            ("list_item", "  of yours", "Guide > Cards", {"level": 1}),
            ("list_item", "- cash", "Guide > Cards", {"level": 1}),
            ("table", "=====  ===\nCard   Fee\n=====  ===\nVisa   1\n=====  ===", "Guide > Cards"),
        ],
    ),
    Canary(
        "Org is read as text",
        "notes.org",
        b"* Fees\n\nPaid yearly.\n",
        "ok",
        [
            ("paragraph", "* Fees"),
            ("paragraph", "Paid yearly."),
        ],
    ),
    Canary(
        "AsciiDoc is read as text",
        "notes.adoc",
        b"= Fees\n\nPaid yearly.\n",
        "ok",
        [
            ("paragraph", "= Fees"),
            ("paragraph", "Paid yearly."),
        ],
    ),
    # Source code
    Canary(
        "a decorator is torn from its function",
        "pay.py",
        '"""Pays \U0001f4b6."""\nimport os\n\n@cache\ndef pay(card):\n    """Once."""\n    return card\n\nclass Card:\n    fee = 1\n\n    def charge(self): ...\n'.encode(),
        "ok",
        [
            ("docstring", '"""Pays 💶."""', "", {"language": "python"}),
            ("import", "import os", "", {"language": "python"}),
            (
                "function",
                '@cache\ndef pay(card):\n    """Once."""\n    return card',
                "pay",
                {"language": "python", "header": "@cache\ndef pay(card):\n"},
            ),
            (
                "class",
                "class Card:\n    fee = 1",
                "Card",
                {"language": "python", "header": "class Card:\n"},
            ),
            ("method", "    def charge(self): ...", "Card > charge", {"language": "python"}),
        ],
    ),
    Canary(
        "Python that does not parse is dropped",
        "half.py",
        b"def f(:\n",
        "ok",
        [
            ("code", "def f(:", "", {"language": "python"}),
        ],
        says="not valid Python at line 1 (invalid syntax); read as plain text",
    ),
    Canary(
        "classes and methods of JavaScript",
        "card.js",
        b"import fs from 'fs';\n\n// Pays.\nexport class Card {\n  charge() { return 1; }\n}\n",
        "ok",
        [
            ("import", "import fs from 'fs';", "", {"language": "javascript"}),
            (
                "class",
                "// Pays.\nexport class Card {",
                "Card",
                {"language": "javascript", "header": "// Pays.\nexport class Card {\n"},
            ),
            ("method", "  charge() { return 1; }\n}", "Card > charge", {"language": "javascript"}),
        ],
    ),
    Canary(
        "types of TypeScript",
        "card.ts",
        b"interface Card { fee: number }\n\nfunction pay(card: Card): number {\n  return card.fee;\n}\n",
        "ok",
        [
            ("class", "interface Card { fee: number }", "Card", {"language": "typescript"}),
            (
                "function",
                "function pay(card: Card): number {\n  return card.fee;\n}",
                "pay",
                {"language": "typescript", "header": "function pay(card: Card): number {\n"},
            ),
        ],
    ),
    Canary(
        "markup in TypeScript",
        "card.tsx",
        b"export function Card() {\n  return <p># no heading</p>;\n}\n",
        "ok",
        [
            (
                "function",
                "export function Card() {\n  return <p># no heading</p>;\n}",
                "Card",
                {"language": "tsx", "header": "export function Card() {\n"},
            ),
        ],
    ),
    Canary(
        "the comment of a Java method is torn from it",
        "Card.java",
        b"import java.util.List;\n\nclass Card {\n  /** Pays. */\n  int charge() { return 1; }\n}\n",
        "ok",
        [
            ("import", "import java.util.List;", "", {"language": "java"}),
            ("class", "class Card {", "Card", {"language": "java", "header": "class Card {\n"}),
            (
                "method",
                "  /** Pays. */\n  int charge() { return 1; }\n}",
                "Card > charge",
                {"language": "java"},
            ),
        ],
    ),
    Canary(
        "the comment of a Go function is torn from it",
        "card.go",
        b'package card\n\nimport "fmt"\n\n// Pay pays.\nfunc Pay() { fmt.Println(1) }\n',
        "ok",
        [
            ("import", 'package card\n\nimport "fmt"', "", {"language": "go"}),
            ("function", "// Pay pays.\nfunc Pay() { fmt.Println(1) }", "Pay", {"language": "go"}),
        ],
    ),
    Canary(
        "methods of Rust do not say whose they are",
        "card.rs",
        b"use std::fmt;\n\nimpl Card {\n    /// Pays.\n    fn pay(&self) -> u8 { 1 }\n}\n",
        "ok",
        [
            ("import", "use std::fmt;", "", {"language": "rust"}),
            ("class", "impl Card {", "Card", {"language": "rust", "header": "impl Card {\n"}),
            (
                "method",
                "    /// Pays.\n    fn pay(&self) -> u8 { 1 }\n}",
                "Card > pay",
                {"language": "rust"},
            ),
        ],
    ),
    Canary(
        "the comment of a C function is torn from it",
        "card.c",
        b"#include <stdio.h>\n\n/* Pays. */\nint pay(int fee) {\n  return fee;\n}\n",
        "ok",
        [
            ("import", "#include <stdio.h>", "", {"language": "c"}),
            (
                "function",
                "/* Pays. */\nint pay(int fee) {\n  return fee;\n}",
                "pay",
                {"language": "c", "header": "/* Pays. */\nint pay(int fee) {\n"},
            ),
        ],
    ),
    Canary(
        "a header of C++ is taken for C",
        "card.h",
        b"#include <vector>\n\nclass Card {\n public:\n  int pay() { return 1; }\n};\n",
        "ok",
        [
            ("import", "#include <vector>", "", {"language": "cpp"}),
            ("class", "class Card {", "Card", {"language": "cpp", "header": "class Card {\n"}),
            (
                "method",
                " public:\n  int pay() { return 1; }\n};",
                "Card > pay",
                {"language": "cpp"},
            ),
        ],
    ),
    Canary(
        "methods of Ruby do not say whose they are",
        "card.rb",
        b"require 'json'\n\nclass Card\n  def pay\n    1\n  end\nend\n",
        "ok",
        [
            ("import", "require 'json'", "", {"language": "ruby"}),
            ("class", "class Card", "Card", {"language": "ruby", "header": "class Card\n"}),
            (
                "method",
                "  def pay\n    1\n  end\nend",
                "Card > pay",
                {"language": "ruby", "header": "  def pay\n"},
            ),
        ],
    ),
    Canary(
        "statements of SQL are cut at semicolons in strings",
        "fees.sql",
        b"create table fee (eur int);\n\ninsert into fee values (';');\n",
        "ok",
        [
            ("class", "create table fee (eur int);", "fee", {"language": "sql"}),
            ("code", "insert into fee values (';');", "", {"language": "sql"}),
        ],
    ),
    Canary(
        "a script without a suffix",
        "install",
        b"#!/bin/sh\n# not a heading\npay() {\n  echo 1\n}\npay\n",
        "ok",
        [
            (
                "function",
                "#!/bin/sh\n# not a heading\npay() {\n  echo 1\n}",
                "pay",
                {"language": "shell", "header": "#!/bin/sh\n# not a heading\npay() {\n"},
            ),
            ("code", "pay", "", {"language": "shell"}),
        ],
    ),
    # PDF
    Canary(
        "the columns of a page are spliced line by line",
        "columns.pdf",
        pdf(
            [
                [
                    line
                    for n in range(6)
                    for line in (
                        (60, 700 - 12 * n, 10, "F1", f"The left column says thing {n} in words"),
                        (330, 700 - 12 * n, 10, "F1", f"while the right tells of {n} at length"),
                    )
                ]
            ]
        ),
        "ok",
        [
            (
                "paragraph",
                "The left column says thing 0 in words The left column says thing 1 in words The left column says thing 2 in words The left column says thing 3 in words The left column says thing 4 in words The left column says thing 5 in words",
                "",
                {"page": 1},
            ),
            (
                "paragraph",
                "while the right tells of 0 at length while the right tells of 1 at length while the right tells of 2 at length while the right tells of 3 at length while the right tells of 4 at length while the right tells of 5 at length",
                "",
                {"page": 1},
            ),
        ],
    ),
    Canary(
        "a page ends amid a sentence",
        "over.pdf",
        pdf(
            [
                [*column(LINES[:2], top=80), (300, 30, 9, "F1", "Page 1")],
                [*column(LINES[2:], top=740), (300, 30, 9, "F1", "Page 2")],
                [
                    *column(["Nothing else is due, whatever the country is."]),
                    (300, 30, 9, "F1", "Page 3"),
                ],
            ]
        ),
        "ok",
        [
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "",
                {"page": 1, "page_end": 2},
            ),
            ("furniture", "Page 1", "", {"page": 1}),
            ("furniture", "Page 2", "", {"page": 2}),
            ("paragraph", "Nothing else is due, whatever the country is.", "", {"page": 3}),
            ("furniture", "Page 3", "", {"page": 3}),
        ],
    ),
    Canary(
        "headings are found by nobody, and running lines are text",
        "headings.pdf",
        pdf(
            [
                [
                    (72, 770, 8, "F1", "Tidepay terms"),
                    *column([title], size=16, top=720),
                    *column(LINES),
                    (300, 30, 9, "F1", f"{n} of 3"),
                ]
                for n, title in enumerate(["Fees", "Refunds", "Cards"], 1)
            ]
        ),
        "ok",
        [
            ("furniture", "Tidepay terms", "", {"page": 1}),
            ("heading", "# Fees", "Fees", {"page": 1}),
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "Fees",
                {"page": 1},
            ),
            ("furniture", "1 of 3", "Fees", {"page": 1}),
            ("furniture", "Tidepay terms", "Fees", {"page": 2}),
            ("heading", "# Refunds", "Refunds", {"page": 2}),
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "Refunds",
                {"page": 2},
            ),
            ("furniture", "2 of 3", "Refunds", {"page": 2}),
            ("furniture", "Tidepay terms", "Refunds", {"page": 3}),
            ("heading", "# Cards", "Cards", {"page": 3}),
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "Cards",
                {"page": 3},
            ),
            ("furniture", "3 of 3", "Cards", {"page": 3}),
        ],
    ),
    Canary(
        "cells of several lines are rows of their own, though lines are ruled between the rows",
        "ruled.pdf",
        pdf(
            [
                [
                    (76, 680, 10, "F2", "Card"),
                    (226, 680, 10, "F2", "What it costs"),
                    (76, 660, 10, "F1", "Visa"),
                    (226, 660, 10, "F1", "one per cent of what is"),
                    (226, 648, 10, "F1", "paid, and no less than"),
                    (226, 636, 10, "F1", "ten cents"),
                    (76, 616, 10, "F1", "Amex"),
                    (226, 616, 10, "F1", "two per cent"),
                ]
            ],
            ruled={1: grid([72, 222, 372], [694, 674, 630, 610])},
        ),
        "ok",
        [
            (
                "table",
                "| Card | What it costs |\n| --- | --- |\n"
                "| Visa | one per cent of what is paid, and no less than ten cents |\n"
                "| Amex | two per cent |",
                "",
                {"header": "| Card | What it costs |\n| --- | --- |\n", "page": 1},
            ),
        ],
    ),
    Canary(
        "what goes on of a table on the next page has no header",
        "long_table.pdf",
        pdf(
            [
                [
                    (72, 90, 10, "F2", "Country"),
                    (222, 90, 10, "F2", "Fee"),
                    (72, 76, 10, "F1", "France"),
                    (222, 76, 10, "F1", "4.90"),
                ],
                [
                    (72, 740, 10, "F1", "Brazil"),
                    (222, 740, 10, "F1", "19.00"),
                    (72, 726, 10, "F1", "Chile"),
                    (222, 726, 10, "F1", "21.00"),
                ],
            ],
            ruled={
                1: grid([72, 222, 372], [104, 86, 72]),
                2: grid([72, 222, 372], [754, 736, 722]),
            },
        ),
        "ok",
        [
            (
                "table",
                "| Country | Fee |\n| --- | --- |\n| France | 4.90 |\n| Brazil | 19.00 |\n"
                "| Chile | 21.00 |",
                "",
                {"header": "| Country | Fee |\n| --- | --- |\n", "page": 1, "page_end": 2},
            ),
        ],
    ),
    Canary(
        "a hyphen at a line's end cuts a word",
        "hyphen.pdf",
        pdf([column(["The reimburse-", "ment of Jean-", "Luc was late again this year."])]),
        "ok",
        [
            (
                "paragraph",
                "The reimbursement of Jean-Luc was late again this year.",
                "",
                {"page": 1},
            ),
        ],
    ),
    Canary(
        "a table on a page is words in a row",
        "table.pdf",
        pdf(
            [
                [
                    *column(LINES),
                    *[
                        (72 + 120 * x, 650 - 14 * y, 10, "F1", cell)
                        for y, row in enumerate(
                            [
                                ("Country", "Fee", "Days"),
                                ("France", "4.90", "2"),
                                ("Brazil", "19.00", "9"),
                            ]
                        )
                        for x, cell in enumerate(row)
                    ],
                ]
            ]
        ),
        "ok",
        [
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "",
                {"page": 1},
            ),
            (
                "table",
                "| Country | Fee | Days |\n| --- | --- | --- |\n| France | 4.90 | 2 |\n| Brazil | 19.00 | 9 |",
                "",
                {"page": 1, "header": "| Country | Fee | Days |\n| --- | --- | --- |\n"},
            ),
        ],
    ),
    Canary(
        "a header of two lines is two rows",
        "wrapped.pdf",
        pdf(
            [
                [
                    *column(LINES),
                    *[
                        (72 + 120 * x, 650 - 12 * y, 10, font, cell)
                        for y, (font, row) in enumerate(
                            [
                                ("F2", ("Country", "Fee in", "Working")),
                                ("F2", ("", "euros", "days")),
                                ("F1", ("France", "4.90", "2")),
                                ("F1", ("Brazil", "19.00", "9")),
                            ]
                        )
                        for x, cell in enumerate(row)
                        if cell
                    ],
                ]
            ]
        ),
        "ok",
        [
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "",
                {"page": 1},
            ),
            (
                "table",
                "| Country | Fee in euros | Working days |\n| --- | --- | --- |\n| France | 4.90 | 2 |\n| Brazil | 19.00 | 9 |",
                "",
                {
                    "page": 1,
                    "header": "| Country | Fee in euros | Working days |\n| --- | --- | --- |\n",
                },
            ),
        ],
    ),
    Canary(
        "a PDF with a password parses to nothing",
        "sealed.pdf",
        pdf([column(LINES)], password="secret"),
        "encrypted",
        says="it asks for a password",
    ),
    Canary(
        "a scanned PDF parses to nothing",
        "scan.pdf",
        pdf([[], []], scanned=[1, 2]),
        "needs_ocr",
        says="pictures of text, on all of its 2 pages",
    ),
    Canary(
        "scanned pages vanish between others",
        "mixed.pdf",
        pdf([column(LINES), [], column(LINES)], scanned=[2]),
        "partial",
        elements=[
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "",
                {"page": 1},
            ),
            (
                "paragraph",
                "The first line of a page that is about something, and goes on with a second line of the very same size that ends on the third.",
                "",
                {"page": 3},
            ),
        ],
        says="page 2: pictures of text",
    ),
    Canary(
        "a truncated PDF is read in part and called whole",
        "cut.pdf",
        cut(pdf([column(LINES)] * 3), 0.6),
        "failed",
        says="it cannot be opened as PDF: it is cut short, damaged, or something else under this name. Save it anew.",
    ),
    Canary(
        "garbage under the name of a PDF",
        "garbage.pdf",
        b"\x8f\x01 no such file" * 9,
        "failed",
        says="it cannot be opened as PDF: it is cut short, damaged, or something else under this name. Save it anew.",
    ),
    Canary(
        "a PDF of empty pages",
        "blank.pdf",
        pdf([[]]),
        "empty",
        says="nothing to read in it",
    ),
    # Office and books
    Canary(
        "an item's own text is dropped from a list in Word",
        "list.docx",
        docx(
            p("Open", numbered=(2, 0)) + p("the app", numbered=(2, 1)) + p("Pay", numbered=(2, 0))
        ),
        "ok",
        [
            ("list_item", "1. Open", "", {"level": 1}),
            ("list_item", "  a) the app", "", {"level": 2}),
            ("list_item", "2. Pay", "", {"level": 1}),
        ],
    ),
    Canary(
        "tables come before all headings of a Word document",
        "order.docx",
        docx(
            p("Fees", "Heading1")
            + tbl([["Card", "Fee"], ["Visa", "1 %"]], 1)
            + p("Taxes", "Heading1")
            + p("None.")
        ),
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            (
                "table",
                "| Card | Fee |\n| --- | --- |\n| Visa | 1 % |",
                "Fees",
                {"header": "| Card | Fee |\n| --- | --- |\n"},
            ),
            ("heading", "# Taxes", "Taxes"),
            ("paragraph", "None.", "Taxes"),
        ],
    ),
    Canary(
        "deleted text is read, and inserted text is not",
        "tracked.docx",
        docx(
            "<w:p><w:r><w:t>Pay in </w:t></w:r><w:del><w:r><w:delText>30</w:delText></w:r></w:del><w:ins><w:r><w:t>14</w:t></w:r></w:ins>"
            "<w:r><w:t> days.</w:t></w:r></w:p>"
        ),
        "ok",
        [
            ("paragraph", "Pay in 14 days."),
        ],
    ),
    Canary(
        "a text box is read twice",
        "box.docx",
        docx(
            '<w:p xmlns:mc="m"><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>'
            + p("In the box")
            + "</w:txbxContent></mc:Choice>"
            "<mc:Fallback><w:txbxContent>"
            + p("In the box")
            + "</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>"
        ),
        "ok",
        [
            ("paragraph", "In the box"),
        ],
    ),
    Canary(
        "600 MB in a Word document of 1.4 MB",
        "bomb.docx",
        bomb,
        "suspicious",
        says="1,165,000 bytes unpack to 600,000,008, the limit parsing.unpacked_mb is 500",
    ),
    Canary(
        "entities explode",
        "entities.docx",
        docx(
            "",
            extra={
                "word/document.xml": '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
            },
        ),
        "suspicious",
        says="its part word/document.xml declares entities, with which a few bytes expand to gigabytes",
    ),
    Canary(
        "an archive inside an archive",
        "inside.docx",
        docx(p("a"), extra={"word/embeddings/inner.zip": zipped({"a": "b"})}),
        "suspicious",
        says="it holds another archive, word/embeddings/inner.zip",
    ),
    Canary(
        "an office file with a password is damaged to readers",
        "sealed.xlsx",
        OLE2 + bytes(600) + "EncryptedPackage".encode("utf-16-le") + bytes(600),
        "encrypted",
        says="it asks for a password",
    ),
    Canary(
        "a truncated Word document",
        "cut.docx",
        cut(docx(p("Hello")), 0.7),
        "failed",
        says="the file is damaged or not what its name says: File is not a zip file. Save it anew.",
    ),
    Canary(
        "slides lose their titles, notes and order",
        "deck.pptx",
        pptx(
            [
                shape(["Welcome"], "title") + shape(["Free", "1|in Europe"], "body"),
                shape(["Fees"], "title") + slide_table([["Card", "Fee"], ["Visa", "1"]]),
            ],
            {1: "Smile."},
        ),
        "ok",
        [
            ("heading", "# Welcome", "Welcome", {"slide": 1}),
            ("list_item", "- Free", "Welcome", {"level": 1, "slide": 1}),
            ("list_item", "  - in Europe", "Welcome", {"level": 2, "slide": 1}),
            ("paragraph", "Smile.", "Welcome", {"slide": 1, "part": "notes"}),
            ("heading", "# Fees", "Fees", {"slide": 2}),
            (
                "table",
                "| Card | Fee |\n| --- | --- |\n| Visa | 1 |",
                "Fees",
                {"slide": 2, "header": "| Card | Fee |\n| --- | --- |\n"},
            ),
        ],
    ),
    Canary(
        "tables on one sheet run together",
        "fees.xlsx",
        xlsx(
            {
                "Fees": [["Card", "Fee"], ["Visa", 1.5], [], ["Country", "Days"], ["France", 2]],
                "Notes": [["Ask Ana."]],
            }
        ),
        "ok",
        [
            ("heading", "# Fees", "Fees", {"sheet": "Fees"}),
            (
                "table",
                "| Card | Fee |\n| --- | --- |\n| Visa | 1.5 |",
                "Fees",
                {"sheet": "Fees", "row": 1, "header": "| Card | Fee |\n| --- | --- |\n"},
            ),
            (
                "table",
                "| Country | Days |\n| --- | --- |\n| France | 2 |",
                "Fees",
                {"sheet": "Fees", "row": 4, "header": "| Country | Days |\n| --- | --- |\n"},
            ),
            ("heading", "# Notes", "Notes", {"sheet": "Notes"}),
            ("paragraph", "Ask Ana.", "Notes", {"sheet": "Notes", "row": 1}),
        ],
    ),
    Canary(
        "a workbook of before 2007",
        "fees.xls",
        xls([["Card", "Fee"], ["Visa", 1.5]]),
        "ok",
        [
            ("heading", "# Sheet", "Sheet", {"sheet": "Sheet"}),
            (
                "table",
                "| Card | Fee |\n| --- | --- |\n| Visa | 1.5 |",
                "Sheet",
                {"sheet": "Sheet", "row": 1, "header": "| Card | Fee |\n| --- | --- |\n"},
            ),
        ],
    ),
    Canary(
        "a workbook of OpenDocument",
        "fees.ods",
        ods([["Card", "Fee"], ["Visa", "1.5"]]),
        "ok",
        [
            ("heading", "# Sheet", "Sheet", {"sheet": "Sheet"}),
            (
                "table",
                "| Card | Fee |\n| --- | --- |\n| Visa | 1.5 |",
                "Sheet",
                {"sheet": "Sheet", "row": 1, "header": "| Card | Fee |\n| --- | --- |\n"},
            ),
        ],
    ),
    Canary(
        "a text of OpenDocument",
        "fees.odt",
        odt('<text:h text:outline-level="1">Fees</text:h><text:p>Paid yearly.</text:p>'),
        "ok",
        [
            ("heading", "# Fees", "Fees"),
            ("paragraph", "Paid yearly.", "Fees"),
        ],
    ),
    Canary(
        "a presentation of OpenDocument",
        "deck.odp",
        odp("Welcome"),
        "ok",
        [
            ("paragraph", "Welcome", "", {"slide": 1}),
        ],
    ),
    Canary(
        "the chapters of a book come in the order of its archive",
        "book.epub",
        epub({"b.xhtml": "<h1>One</h1><p>First.", "a.xhtml": "<h1>Two</h1><p>Second."}),
        "ok",
        [
            ("heading", "# One", "One", {"chapter": 1}),
            ("paragraph", "First.", "One", {"chapter": 1}),
            ("heading", "# Two", "Two", {"chapter": 2}),
            ("paragraph", "Second.", "Two", {"chapter": 2}),
        ],
    ),
    Canary(
        "rich text shows its control words",
        "fees.rtf",
        rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\b Geb\'fchren}\par F\u252?nf Euro.\par}",
        "ok",
        [
            ("paragraph", "Gebühren"),
            ("paragraph", "Fünf Euro."),
        ],
    ),
    Canary(
        "a picture is no document",
        "logo.png",
        b"\x89PNG\r\n\x1a\n" + bytes(20),
        "unsupported",
        says="no parser for image/png",
    ),
]


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: f"{canary.file}: {canary.fault}")
def test_what_is_read_of(canary: Canary):
    data = canary.content()
    read = parse_document(data, canary.file, media_type(data[:HEAD_BYTES], canary.file))
    assert (read.status, read.error) == (
        canary.status,
        f"{canary.file}: {canary.says}" if canary.says else None,
    )
    assert bool(read.cure) == bool(canary.says)
    assert [_told(read.text, element) for element in read.elements] == [
        (*expected, *("", {})[len(expected) - 2 :]) for expected in canary.elements
    ]


def _told(text: str, element: Element) -> tuple[str, str, str, dict[str, object]]:
    """An element as `CANARIES` has it; offsets into the text as the text they lead to."""
    facts: dict[str, object] = {}
    if element.kind == "list_item" or (
        element.kind == "heading" and element.level != len(element.heading_path)
    ):
        facts["level"] = element.level
    if element.language:
        facts["language"] = element.language
    facts |= dict(element.attributes)
    start, end = facts.pop("header_start", element.start), facts.pop("header_end", None)
    if end is not None:
        facts["header"] = text[start:end]
    path = " > ".join(element.heading_path)
    return element.kind, text[element.start : element.end], path, facts


def test_there_are_documents_for_each_parser_and_status():
    types = {media_type(c.content()[:HEAD_BYTES], c.file) for c in CANARIES if c.data is not bomb}
    assert types >= PARSERS.keys() - MODELS.keys()
    # What ends a reader has tests of its own, beside `guard`; what cannot be opened, beside `build`.
    elsewhere = {"timeout", "crashed", "too_large", "unreadable", "refused"}
    assert {canary.status for canary in CANARIES} == STATUSES.keys() - elsewhere
    assert len({canary.file for canary in CANARIES}) == len(CANARIES) >= 100
