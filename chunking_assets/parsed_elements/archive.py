"""Zip archives and the XML in them, as office documents are built; opened only after a look.

The directory of an archive says what it unpacks to before anything is unpacked. No office format
declares entities, so XML that does is not read: they are how a page is made to explode.
"""

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree.ElementTree import Element, XMLParser

from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import Refused
from chunking_assets.parsed_elements.limits import Limits

VERSION = 1
"""Raised when what binary formats share gives another text: this, `drawing`, `markdown_writer`."""

HARMLESS_BYTES = 20_000_000
"""What unpacks to less may be squeezed as much as it likes."""

_ARCHIVES = (".zip", ".7z", ".rar", ".gz", ".bz2", ".xz", ".zst", ".tar", ".jar")
_ENTITY = re.compile(rb"<\0?!\0?E\0?N\0?T\0?I\0?T\0?Y", re.IGNORECASE)


class Archive:
    """The members of a zip by name, read one at a time.

    Raises:
        CorpusError: no zip, or a damaged one.
        Refused: suspicious (what it unpacks to, an archive inside), or encrypted.
    """

    def __init__(self, data: bytes, limits: Limits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
            raise CorpusError(
                f"the file is damaged or not what its name says: {error}. Save it anew."
            ) from error
        members = self._zip.infolist()
        _check(members, len(data), limits)
        self._names = {m.filename.lower(): m.filename for m in members}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    def names(self) -> list[str]:
        return list(self._names.values())

    def bytes(self, name: str) -> bytes:
        """The content of a member; names are compared as Windows does.

        Raises:
            CorpusError: there is no such member, or it is damaged.
        """
        try:
            return self._zip.read(self._names[name.lower()])
        except KeyError as error:
            raise CorpusError(f"the file has no part {name}. Save it anew.") from error
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            ValueError,
            RuntimeError,
        ) as error:
            raise CorpusError(f"its part {name} is damaged: {error}. Save it anew.") from error

    def xml(self, name: str) -> Element:
        """The root of a member, its tags and attributes without namespaces.

        Raises:
            CorpusError: no such member, or no XML.
            Refused: suspicious, for declared entities.
        """
        return parse_xml(self.bytes(name), name)

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """The parts a part of an Open XML package refers to: id to (kind, member or address)."""
        folder, base = posixpath.split(name)
        relations = f"{folder}/_rels/{base}.rels".lstrip("/")
        if relations not in self:
            return {}
        found = {}
        for relation in self.xml(relations):
            target = relation.get("Target", "")
            if relation.get("TargetMode") != "External":
                target = resolve(name, target)
            found[relation.get("Id", "")] = (relation.get("Type", "").rpartition("/")[2], target)
        return found

    def main_part(self, default: str) -> str:
        """The member an Open XML package begins with."""
        for kind, target in self.related("").values():
            if kind == "officeDocument":
                return target
        return default


def resolve(base: str, target: str) -> str:
    """The member that `target` means in the member `base`.

    >>> resolve("ppt/slides/slide1.xml", "../media/a.png"), resolve("", "/word/document.xml")
    ('ppt/media/a.png', 'word/document.xml')
    """
    target = unquote(target.partition("#")[0])
    if target.startswith("/"):
        return target.lstrip("/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), target))


def parse_xml(data: bytes, name: str) -> Element:
    """The root of an XML text, its tags and attributes without namespaces; see `Archive.xml`."""
    if _ENTITY.search(data):
        raise Refused(
            "suspicious",
            f"its part {name} declares entities, with which a few bytes expand to gigabytes",
            "Exclude it, or save it anew with an office program if it can be trusted.",
        )
    parser = XMLParser()  # noqa: S314  without entities
    try:
        parser.feed(data)
        root: Element = parser.close()
    except SyntaxError as error:
        raise CorpusError(f"its part {name} is no XML ({error}). Save it anew.") from error
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag[0] == "{":
            element.tag = element.tag.rpartition("}")[2]
        named = {k.rpartition("}")[2]: v for k, v in element.attrib.items() if k[0] == "{"}
        if named:  # `r:id` refers to another part, `id` is only a number
            plain = {k: v for k, v in element.attrib.items() if k[0] != "{"}
            element.attrib = plain | named
    return root


def tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


def children(element: Element | None, tag: str) -> Iterator[Element]:
    if element is not None:
        yield from (child for child in element if child.tag == tag)


def _check(members: list[zipfile.ZipInfo], size: int, limits: Limits) -> None:
    unpacked = sum(member.file_size for member in members)
    problem = None
    if len(members) > limits.members:
        problem = (
            f"it holds {len(members):,} files, the limit parsing.members is {limits.members:,}"
        )
    elif unpacked > limits.unpacked_mb * 1_000_000:
        problem = (
            f"{size:,} bytes unpack to {unpacked:,}, the limit parsing.unpacked_mb is "
            f"{limits.unpacked_mb:,}"
        )
    elif unpacked > HARMLESS_BYTES and unpacked > limits.expansion * size:
        problem = (
            f"{size:,} bytes unpack to {unpacked:,}, {unpacked // max(1, size):,} times as many; "
            f"the limit parsing.expansion is {limits.expansion:,}"
        )
    elif inner := next((m.filename for m in members if m.filename.lower().endswith(_ARCHIVES)), ""):
        problem = f"it holds another archive, {inner}"
    if problem:
        raise Refused(
            "suspicious",
            problem,
            "Exclude it, or save it anew with an office program if it can be trusted.",
        )
    if any(member.flag_bits & 1 for member in members):
        raise Refused("encrypted", "its parts are encrypted", "Save it without a password.")
