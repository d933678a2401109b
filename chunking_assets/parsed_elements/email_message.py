"""E-mail, written as Markdown: subject, who and when, the body, and what was attached.

The plain body is preferred: the other is the same with decoration. A body is read by the parser of
its type. Attachments are listed and not read: a document that has any is partial and says so.
"""

import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from itertools import pairwise
from typing import cast

from chunking_assets.parsed_elements import html, plain_text
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import Element, ParsedText, Refused, line_starts
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter
from chunking_assets.raw_documents.media_type import unicode_encoding

VERSION = 1
LIBRARIES = ("python", *html.LIBRARIES)

HEADERS = ("From", "To", "Cc", "Date", "Reply-To")
_SHOWN_CHARS = 500
"""Most of one header: a list of recipients can be longer than the message."""
_SHOWN_ATTACHMENTS = 20
_ENCRYPTED = {"multipart/encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"}
_QUOTED = re.compile(r"[ \t]{0,3}>")


def parse(data: bytes) -> ParsedText:
    """
    Raises:
        Refused: the message is encrypted.
    """
    if encoding := unicode_encoding(data[:8192]):
        data = data.decode(encoding, errors="replace").removeprefix("\ufeff").encode()
    message = message_from_bytes(data, policy=policy.default)
    if message.get_content_type() in _ENCRYPTED and "signed" not in str(
        message.get_param("smime-type", "")
    ):
        raise Refused("encrypted", "the message is encrypted", "Save it decrypted, or exclude it")
    if not any(name in message for name in ("From", "Subject", "Date", "Received")):
        parsed = plain_text.parse(data)
        return ParsedText(parsed.text, parsed.elements, "has no headers of an e-mail: plain text")
    writer = MarkdownWriter()
    if subject := _header(message, "Subject"):
        writer.heading(subject, 1)
    told = [f"{name}: {value}" for name in HEADERS if (value := _header(message, name))]
    writer.paragraph("\n".join(told), part="header")
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None:
        writer.add(_body(cast(EmailMessage, body)))
    attached = list(_attachments(message, cast("EmailMessage | None", body)))
    if attached:
        writer.heading("Attachments", 2)
        for name, media_type, size in attached:
            writer.list_item(f"{name} ({media_type}, {size:,} bytes)", 1, part="attachment")
    names = ", ".join(name for name, _, _ in attached[:_SHOWN_ATTACHMENTS])
    return writer.parsed(missing=f"attachments not read: {names}" if attached else None)


def _header(message: EmailMessage, name: str) -> str:
    """On one line, decoded; headers can be broken in ways their own parser does not survive."""
    try:
        value = message[name]
    except (MessageError, ValueError, IndexError, AttributeError, TypeError):
        value = next((raw for key, raw in message.raw_items() if key.lower() == name.lower()), "")
    return " ".join(str(value or "").split())[:_SHOWN_CHARS]


def _body(part: EmailMessage) -> ParsedText:
    text = _content(part)
    if part.get_content_type() == "text/html":
        return html.parse_text(text)
    return _with_quotes(text)


def _content(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    return decode(payload, part.get_content_charset()) if isinstance(payload, bytes) else ""


def _with_quotes(text: str) -> ParsedText:
    """Plain text in which lines that begin with `>` are what somebody else wrote."""
    elements: list[Element] = []
    for element in plain_text.parse_text(text).elements:
        lines = line_starts(text[element.start : element.end])
        runs: list[tuple[bool, int, int]] = []
        for start, end in pairwise(lines):
            begin, stop = element.start + start, element.start + end
            quoted = bool(_QUOTED.match(text, begin, stop))
            if runs and runs[-1][0] == quoted:
                runs[-1] = (quoted, runs[-1][1], stop)
            elif text[begin:stop].strip():
                runs.append((quoted, begin, stop))
        for quoted, begin, stop in runs:
            end = begin + len(text[begin:stop].rstrip())
            kind = "quote" if quoted else element.kind
            elements.append(Element(kind, begin, end, attributes=element.attributes))
    return ParsedText(text, tuple(elements))


def _attachments(
    message: EmailMessage, body: EmailMessage | None
) -> Iterator[tuple[str, str, int]]:
    """Name, media type and bytes of each; a picture shown inside the body is none."""
    for part in message.walk():
        is_frame = part.is_multipart() and part.get_content_type() != "message/rfc822"
        if part is body or is_frame:
            continue
        name = part.get_filename()
        if part.get_content_disposition() != "attachment" and not (
            name and part.get_content_maintype() != "image"
        ):
            continue
        payload = part.get_payload(decode=True)
        size = len(payload) if isinstance(payload, bytes) else 0
        yield name or "unnamed", part.get_content_type(), size
