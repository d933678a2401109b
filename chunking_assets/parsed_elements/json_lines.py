"""JSON Lines: one JSON value a line, as `json_data` reads them."""

from chunking_assets.parsed_elements import json_data
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import ParsedText

VERSION = json_data.VERSION
LIBRARIES = json_data.LIBRARIES


def parse(data: bytes) -> ParsedText:
    return json_data.parse_lines(decode(data))
