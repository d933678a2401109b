"""`python -m chunking_assets.chunk_sets FILE --chunker recursive-400@1 --html chunks.html`.

Cuts one file under several chunker versions, to see them side by side before anything is indexed.
Of the workspace only caches change. A version that corpus.yaml does not declare is read as
`kind-max_tokens@n`: `sliding-window-200@1` is the kind `sliding_window` with 200 tokens.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

from chunking_assets import config as configuration
from chunking_assets.chat_models.chat import Chat
from chunking_assets.chat_models.endpoint import endpoint_from_environment
from chunking_assets.chat_models.response_cache import CACHE_FILE
from chunking_assets.chunk_sets.batches import title_of
from chunking_assets.chunk_sets.chunking import chunk, for_language
from chunking_assets.chunk_sets.cleaning import excluded_spans
from chunking_assets.chunk_sets.page import COLUMNS, Bands, chunks_page, summary
from chunking_assets.chunk_sets.registry import chunker_kinds
from chunking_assets.chunk_sets.spans import Document, Facts
from chunking_assets.chunk_sets.version import ChunkerVersion
from chunking_assets.config import Config
from chunking_assets.embedding_models.loaded import Models
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.language import detect_language
from chunking_assets.parsed_elements.parse import READABLE, ParsedDocument
from chunking_assets.parsed_elements.single_file import parse_file
from chunking_assets.workspace import Workspace, write_atomically

LEAST_WIDTH = 100
BOILERPLATE = "boilerplate is what other documents have too: with one file there is none"


def version_of(config: Config, name: str) -> ChunkerVersion:
    """The declared version of that name, or one read from it.

    Raises:
        CorpusError: it is neither declared nor `kind-max_tokens@n`.
    """
    if name in config.chunker_versions:
        return config.chunker_versions[name]
    kind, _, size = name.partition("@")[0].rpartition("-")
    kind = kind.replace("-", "_")
    if kind not in chunker_kinds() or not size.isdecimal():
        raise CorpusError(
            f"no chunker version is called {name!r}. Declare it in {config.file}, use one of "
            f"{', '.join(config.chunker_versions)}, or write kind-max_tokens@n with one of the "
            f"kinds {', '.join(chunker_kinds())}."
        )
    entry = {"kind": kind, "max_tokens": int(size)}
    return configuration.chunker_version(config.file, name, entry, config.embedding_models)


def read_document(file: Path) -> tuple[ParsedDocument, Facts]:
    """The file as the pipeline would parse it.

    Raises:
        CorpusError: it cannot be read, or not as text.
    """
    kind, parsed = parse_file(file)
    if parsed.status not in READABLE:
        raise CorpusError(f"{parsed.error} ({parsed.status}). {parsed.cure}")
    language = detect_language(parsed.text, parsed.elements)
    code = language.code if language else None
    return parsed, Facts(kind, code, title_of(file.name, parsed.elements))


def cut(
    parsed: ParsedDocument, facts: Facts, version: ChunkerVersion, models: Models, chat: Chat
) -> Bands:
    """What one version makes of a document."""
    clean = version.chunker.clean
    excluded = [(e.start, e.end) for e in excluded_spans(parsed.text, parsed.elements, clean)]
    document = Document(
        parsed.text,
        parsed.elements,
        models.tokenizer(version.tokenizer_model),
        excluded=excluded,
        form=clean.unicode if clean else "none",
        facts=facts,
        models=models,
        chat=chat,
    )
    budget = for_language(version.chunker, facts.language).max_tokens
    return Bands(version.name, budget, chunk(document, version.chunker), excluded)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m chunking_assets.chunk_sets",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--chunker", action="append", metavar="NAME@N", help="may be given several times"
    )
    parser.add_argument("--html", type=Path, help="write the page here")
    arguments = parser.parse_args()
    try:
        config = configuration.load()
        workspace = Workspace(config.home)
        models = Models(config.embedding_models, workspace)
        settings = config.ragas
        endpoint, cache = endpoint_from_environment(), workspace.caches / CACHE_FILE
        chat = Chat(endpoint, cache, settings.concurrency, settings.timeout)
        names = list(dict.fromkeys(arguments.chunker or config.chunker_versions))
        versions = [version_of(config, name) for name in names]
        parsed, facts = read_document(arguments.file)
        strategies = [cut(parsed, facts, version, models, chat) for version in versions]
        if any(v.chunker.clean and v.chunker.clean.boilerplate for v in versions):
            print(f"note: {BOILERPLATE}.", file=sys.stderr)
        if arguments.html:
            page = chunks_page(arguments.file.name, parsed.text, strategies)
            write_atomically(arguments.html.absolute(), page.encode())
    except (CorpusError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    table = Table(Column(COLUMNS[0], no_wrap=True), *COLUMNS[1:], box=None)
    for bands in strategies:
        table.add_row(*summary(bands))
    Console(width=max(Console().width, LEAST_WIDTH)).print(table)
    if arguments.html:
        print(f"\n{arguments.html}: open it in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())
