"""MDX: Markdown with components, imports and expressions between its blocks.

Read by the rules of `markdown`, but for indentation, which in MDX makes no code.
"""

from chunking_assets.parsed_elements import markdown
from chunking_assets.parsed_elements.decoding import decode
from chunking_assets.parsed_elements.document import ParsedText

VERSION = markdown.VERSION
LIBRARIES = markdown.LIBRARIES


def parse(data: bytes) -> ParsedText:
    return markdown.parse_text(decode(data), mdx=True)
