"""What a file is: by its first bytes, and only where they do not say, by its name. Of a script
without a name that says anything, by its interpreter.

Names lie (a renamed zip, a page saved as .txt), and a parser fed the wrong format gives nonsense
rather than an error. The tables are our own because the system's differ between machines, and a
media type decides which parser reads a document.
"""

import codecs
import re
from pathlib import PurePosixPath

VERSION = 5
"""Raised when the same file would be taken for another type."""

BINARY = "application/octet-stream"
TEXT = "text/plain"
PDF = "application/pdf"
PDF_LAYOUTS = {"docling": f"{PDF};layout=docling"}
"""How a PDF is read where a collection says by which layout models, by their name."""
LFS_POINTER = "application/vnd.git-lfs.pointer"
"""What git-lfs leaves in place of a file that it has not fetched; the name is our own."""

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", PDF),
    (b"{\\rtf", "application/rtf"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"(\xb5/\xfd", "application/zstd"),
    (b"7z\xbc\xaf'\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
)
OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_OLE2_BY_SUFFIX = {
    ".doc": "application/msword",
    ".xls": "application/vnd.ms-excel",
    ".ppt": "application/vnd.ms-powerpoint",
    ".msg": "application/vnd.ms-outlook",
}
_OPENXML = "application/vnd.openxmlformats-officedocument"
_ZIP_BY_MEMBER = (
    (b"word/", f"{_OPENXML}.wordprocessingml.document"),
    (b"ppt/", f"{_OPENXML}.presentationml.presentation"),
    (b"xl/", f"{_OPENXML}.spreadsheetml.sheet"),
)
_CPP = "text/x-c++"
_SHELL = "text/x-shellscript"
_BY_SUFFIX = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".mdx": "text/mdx",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".txt": TEXT,
    ".text": TEXT,
    ".log": TEXT,
    ".py": "text/x-python",
    ".pyi": "text/x-python",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "text/javascript"),
    **dict.fromkeys((".ts", ".mts", ".cts"), "text/typescript"),
    ".tsx": "text/typescript-jsx",
    ".java": "text/x-java",
    ".go": "text/x-go",
    ".rs": "text/x-rust",
    ".c": "text/x-c",
    ".h": "text/x-c",
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".ipp"), _CPP),
    **dict.fromkeys((".rb", ".rake", ".gemspec"), "text/x-ruby"),
    ".sql": "application/sql",
    **dict.fromkeys((".sh", ".bash", ".ksh", ".zsh"), _SHELL),
    ".rst": "text/x-rst",
    ".org": "text/x-org",
    ".adoc": "text/asciidoc",
    ".asciidoc": "text/asciidoc",
    ".vtt": "text/vtt",
    ".srt": "application/x-subrip",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".ndjson": "application/x-ndjson",
    ".ipynb": "application/x-ipynb+json",
    ".xml": "application/xml",
    ".svg": "image/svg+xml",
    ".eml": "message/rfc822",
    ".pdf": "application/pdf",
    ".rtf": "application/rtf",
    ".docx": f"{_OPENXML}.wordprocessingml.document",
    ".pptx": f"{_OPENXML}.presentationml.presentation",
    ".xlsx": f"{_OPENXML}.spreadsheetml.sheet",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".epub": "application/epub+zip",
    ".zip": "application/zip",
    **_OLE2_BY_SUFFIX,
}
_BY_INTERPRETER = {
    **dict.fromkeys((b"sh", b"bash", b"dash", b"ash", b"ksh", b"zsh"), _SHELL),
    **dict.fromkeys((b"node", b"nodejs", b"bun"), "text/javascript"),
    b"python": "text/x-python",
    b"ruby": "text/x-ruby",
}
_ZIP_SUFFIXES = {".docx", ".pptx", ".xlsx", ".odt", ".ods", ".odp", ".epub"}
_BOMS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HTML = re.compile(
    r"\ufeff?\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--[^-]{0,2000}-->\s*)?"
    r"<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE,
)
_INTERPRETER = re.compile(
    rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*(?:\w+=\S*[ \t]+)*)?(?:\S*/)?([a-z]+)"
)
_CPP_HEADER = re.compile(
    rb"^[ \t]*(?:(?:class|namespace|template|using|public:|private:|protected:)(?![\w(])"
    rb"|#[ \t]*include[ \t]*<[a-z_]+>)",
    re.MULTILINE,
)
"""No line of a header of C; the standard headers of C++ have no suffix."""
_MAIL_HEADER = re.compile(r"([A-Za-z][\w-]{1,40}):[ \t]")
_MAIL_HEADERS = {"from", "to", "subject", "date", "message-id", "mime-version", "received"}
_MAIL_NEEDS = 4
"""So many of these headers make a text without a telling name an e-mail."""
_LFS = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\r?\n(?:ext-.+\n)*"
    rb"oid sha256:[0-9a-f]{64}\r?\nsize \d+\s*"
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def media_type(head: bytes, name: str) -> str:
    r"""The media type of a file that begins with `head` (8 KB are plenty) and is called `name`.

    Text whose name says nothing is text/plain; bytes that are no text are
    application/octet-stream.

    >>> media_type(b"%PDF-1.7 ...", "terms.txt"), media_type(b"# Terms", "terms.md")
    ('application/pdf', 'text/markdown')
    """
    suffix = PurePosixPath(name.lower()).suffix
    for signature, kind in _SIGNATURES:
        if head.startswith(signature):
            return kind
    if _LFS.fullmatch(head):
        return LFS_POINTER
    if head.startswith(b"PK\x03\x04"):
        return _zip(head, suffix)
    if head.startswith(OLE2):  # under the name of a zip format: encrypted by Office
        return _OLE2_BY_SUFFIX.get(suffix, "application/x-ole-storage")
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if b"%PDF-" in head[:1024]:
        return "application/pdf"  # as readers accept it: after some bytes of a mail or a server
    encoding = unicode_encoding(head)
    if encoding is None and b"\0" in head:
        return BINARY
    if _HTML.match(head.decode(encoding or "utf-8", errors="replace")):
        return "text/html"
    if suffix == ".h" and _CPP_HEADER.search(head):
        return _CPP
    if suffix in _BY_SUFFIX and _BY_SUFFIX[suffix] != TEXT:
        return _BY_SUFFIX[suffix]
    if _is_mail(head.decode(encoding or "utf-8", errors="replace")):
        return "message/rfc822"
    if suffix in _BY_SUFFIX:
        return TEXT
    script = _INTERPRETER.match(head[:200])
    if script and script[1] in _BY_INTERPRETER:
        return _BY_INTERPRETER[script[1]]
    return BINARY if encoding is None and _CONTROL.search(head) else TEXT


def type_of_suffix(suffix: str) -> str | None:
    """The media type that a name with this suffix promises, without the dot.

    >>> type_of_suffix("md"), type_of_suffix("nonsense")
    ('text/markdown', None)
    """
    return _BY_SUFFIX.get(f".{suffix.lower()}")


def unicode_encoding(head: bytes) -> str | None:
    r"""The Unicode encoding that the first bytes show: by their mark, or by the NUL that is every
    other byte of western text in UTF-16, and never both.

    >>> unicode_encoding(b"\xff\xfeH\x00i\x00"), unicode_encoding("Hi there".encode("utf-16-be"))
    ('utf-16-le', 'utf-16-be')
    """
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    even, odd = head[0::2], head[1::2]
    for sparse, full, encoding in ((even, odd, "utf-16-be"), (odd, even, "utf-16-le")):
        if 0 not in full and len(sparse) >= 4 and sparse.count(0) > 0.6 * len(sparse):
            return encoding
    return None


def _is_mail(text: str) -> bool:
    """Whether a text begins with the headers of an e-mail, and with nothing else."""
    names = set()
    for line in text.removeprefix("\ufeff").splitlines():
        header = _MAIL_HEADER.match(line)
        if header:
            names.add(header[1].lower())
        elif not (names and line[:1] in (" ", "\t")):
            break
    return len(names & _MAIL_HEADERS) >= _MAIL_NEEDS


def _zip(head: bytes, suffix: str) -> str:
    if head[30:38] == b"mimetype":  # the first member of OpenDocument and EPUB, stored as it is
        declared = re.match(rb"[\w.+/-]+", head[38 : 38 + 80].split(b"PK")[0])
        if declared:
            return declared.group().decode("ascii")
    if b"[Content_Types].xml" in head:
        for member, kind in _ZIP_BY_MEMBER:
            if member in head:
                return kind
    return _BY_SUFFIX[suffix] if suffix in _ZIP_SUFFIXES else "application/zip"
