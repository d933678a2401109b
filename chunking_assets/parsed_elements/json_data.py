"""JSON and JSON Lines. The canonical text is the decoded file, escapes of letters written out.

A value is an element, led by the keys above it as its heading path; one too large is taken apart
into those it holds. A list of messages is a conversation: it is written as people read one, turn by
turn. What is no JSON is read as plain text, with a warning.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements import plain_text
from chunking_assets.parsed_elements.decoding import decode, storable
from chunking_assets.parsed_elements.document import (
    Element,
    ParsedText,
    inked_lines,
    line_starts,
    short_title,
)
from chunking_assets.parsed_elements.markdown_writer import MarkdownWriter

VERSION = 2
LIBRARIES = ("charset-normalizer",)

WHOLE_CHARS = 1_000
"""A longer value is taken apart into the values it holds."""
DEEPEST = 50

_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
                      r"|u([0-9a-fA-F]{4})|.)", re.DOTALL)  # fmt: skip
_TEXT_KEYS = ("text", "content", "message", "body")
_SPEAKER_KEYS = ("speaker", "role", "author", "sender", "user", "username", "from", "name")
_TIME_KEYS = ("time", "timestamp", "ts", "date", "created_at", "sent_at")
_PROFILE, _NAMES = "user_profile", ("display_name", "real_name")
_SIDE_KEYS = (
    "id", "type", "subtype", "channel", "team", "thread_ts", "client_msg_id", "blocks", "edited",
    "user_team", "source_team", "parent_user_id", "reply_count", "reply_users",
    "reply_users_count", "latest_reply", "replies", "is_locked", "subscribed", "last_read",
    _PROFILE,
)  # fmt: skip
"""What exports of chats add to a message and nobody reads; `blocks` is the text once more."""
_SHOWN_LINES = 5

_DECODER = json.JSONDecoder()


class TooDeep(CorpusError):
    """Values inside values, more than any reader of JSON follows."""


def parse(data: bytes) -> ParsedText:
    return parse_text(decode(data))


def parse_text(text: str) -> ParsedText:
    """
    >>> parsed = parse_text('[{"speaker": "Ana", "text": "Hi"}, {"speaker": "Bo", "text": "Yes?"}]')
    >>> parsed.text
    'Ana: Hi\\n\\nBo: Yes?\\n'
    """
    text = _ESCAPED.sub(_written_out, text)
    try:
        value = _loaded(text)
    except json.JSONDecodeError as error:
        parsed = plain_text.parse_text(text)
        reason = f"no valid JSON ({error.msg}, line {error.lineno}), read as plain text"
        return ParsedText(parsed.text, parsed.elements, reason)
    if (conversation := _conversation_in(value)) is not None:
        return conversation
    start = _space(text, 0)
    return ParsedText(text, tuple(_elements(text, start)))


def parse_lines(text: str) -> ParsedText:
    """JSON Lines: a value a line; a line that is none is kept and told."""
    text = _ESCAPED.sub(_written_out, text)
    starts = line_starts(text)
    values, elements, broken = [], [], []
    for n, start in enumerate(starts[:-1]):
        span = inked_lines(text, start, starts[n + 1])
        if span is None:
            continue
        try:
            values.append(_loaded(text[span[0] : span[1]]))
        except json.JSONDecodeError:
            broken.append(n + 1)
        elements.append(Element("code", *span, language="json", attributes=(("line", n + 1),)))
    if not broken and (conversation := _conversation_in(values)) is not None:
        return conversation
    some = ", ".join(map(str, broken[:_SHOWN_LINES]))
    warning = f"{len(broken)} lines are no JSON, the first: {some}" if broken else None
    return ParsedText(text, tuple(elements), warning)


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise TooDeep("values are nested too deep to be read as JSON. Flatten them.") from error


def _written_out(escape: re.Match[str]) -> str:
    """A letter for its escape; what JSON must escape, and what cannot be stored, stays."""
    high, low, single = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))
    if single is None:
        return escape.group()
    letter = chr(int(single, 16))
    return letter if letter.isprintable() and letter not in '"\\' else escape.group()


def _elements(text: str, start: int) -> Iterator[Element]:
    """The values in order. Together with what punctuates them they cover the text."""
    open_values: list[tuple[Iterator[tuple[str, int, int]], tuple[str, ...]]] = []
    pending, position = start, start
    members: Iterator[tuple[str, int, int]] = iter([("", start, len(text.rstrip()))])
    path: tuple[str, ...] = ()
    while True:
        member = next(members, None)
        if member is None:
            if not open_values:
                break
            members, path = open_values.pop()
            continue
        name, begin, end = member
        below = (*path, short_title(storable(name))) if name else path
        if end - begin > WHOLE_CHARS and text[begin] in "{[" and len(open_values) < DEEPEST:
            open_values.append((members, path))
            members, path = _members(text, begin), below
            continue
        position = end
        comma = _space(text, end)
        if text[comma : comma + 1] == ",":
            position = comma + 1
        yield Element("code", pending, position, 0, path, "json")
        pending = _space(text, position)
    if text[pending:].strip():
        yield Element("residual", pending, len(text.rstrip()))


def _members(text: str, opening: int) -> Iterator[tuple[str, int, int]]:
    """The name (of an object's), start and end of each value inside a value."""
    is_object = text[opening] == "{"
    position = _space(text, opening + 1)
    while text[position] not in "}]":
        name = ""
        if is_object:
            name, position = _DECODER.raw_decode(text, position)
            position = _space(text, _space(text, position) + 1)
        _, end = _DECODER.raw_decode(text, position)
        yield name, position, end
        position = _space(text, end)
        if text[position] == ",":
            position = _space(text, position + 1)


def _space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _conversation_in(value: Any) -> ParsedText | None:
    """What people wrote to each other, if the value says little else: nothing may be lost."""
    about: dict[str, Any] = {}
    if isinstance(value, dict):
        lists = [key for key, held in value.items() if isinstance(held, list)]
        about = {key: held for key, held in value.items() if key not in lists}
        if len(lists) != 1 or any(isinstance(held, dict) for held in about.values()):
            return None
        value = value[lists[0]]
    if not isinstance(value, list) or len(value) < 2 or not all(map(_is_message, value)):
        return None
    writer = MarkdownWriter()
    writer.paragraph("\n".join(f"{key}: {held}" for key, held in about.items()), part="header")
    for message in value:
        speaker, time = storable(_speaker(message)), _first(message, _TIME_KEYS)
        when = None if time is None else storable(str(time))
        stamp = f"[{when}] " if when else ""
        text = f"{stamp}{speaker}: {_first(message, _TEXT_KEYS)}"
        writer.paragraph(text, "turn", speaker=speaker, time=when)
    return writer.parsed()


def _is_message(value: Any) -> bool:
    known = {*_TEXT_KEYS, *_SPEAKER_KEYS, *_TIME_KEYS, *_SIDE_KEYS}
    return (
        isinstance(value, dict)
        and value.keys() <= known
        and isinstance(_first(value, _TEXT_KEYS), str)
        and isinstance(_first(value, _SPEAKER_KEYS), str)
        and not isinstance(_first(value, _TIME_KEYS), dict | list)
    )


def _speaker(message: Mapping[str, Any]) -> str:
    """By the name of their profile, where the message only has the key of one."""
    profile = message.get(_PROFILE)
    names = [profile.get(key) for key in _NAMES] if isinstance(profile, dict) else []
    return str(next(filter(None, names), None) or _first(message, _SPEAKER_KEYS))


def _first(message: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((message[key] for key in keys if message.get(key) is not None), None)
