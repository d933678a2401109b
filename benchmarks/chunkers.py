"""`python -m benchmarks.chunkers FOLDER`: what cutting costs, ours beside other libraries.

FOLDER holds `corpora/*.md`, as Chroma's chunking_evaluation does. All count in the tokens of the
default model and run in turns in one process; the least of the rounds in CPU seconds is compared,
so that a busy machine changes no ratio. Parsing is not timed: no library here does it.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError
from rich.console import Console
from rich.table import Table

from chunking_assets.chunk_sets.adapters.library import LibraryChunker, release
from chunking_assets.chunk_sets.chunker import Chunker
from chunking_assets.chunk_sets.chunking import chunk
from chunking_assets.chunk_sets.cluster import best_segmentation, similarity_band
from chunking_assets.chunk_sets.fixed import FixedChunker
from chunking_assets.chunk_sets.heading import HeadingChunker
from chunking_assets.chunk_sets.recursive import RecursiveChunker
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.chunk_sets.spans import Document
from chunking_assets.embedding_models.e5_small import E5Small
from chunking_assets.embedding_models.tokenizer import TextTokenizer
from chunking_assets.errors import CorpusError
from chunking_assets.parsed_elements.document import Element
from chunking_assets.parsed_elements.markdown import parse_text

BUDGET = 256
"""Tokens a chunk."""
LARGE_CHARS = 20_000_000
DOUBLED_CHARS = 600_000
ROUNDS_TO_DOUBLE = 2
"""Times as many rounds where ours are compared with themselves: those texts are short."""
LEAST_WIDTH = 100

PIECES, DIMENSIONS, PIECES_PER_CLUSTER = 5_000, 384, 16

VERSIONS: Sequence[Chunker] = [
    RecursiveChunker(max_tokens=BUDGET),
    *(
        kind(max_tokens=max_tokens, overlap=overlap)
        for kind in (FixedChunker, RecursiveChunker, HeadingChunker)
        for max_tokens, overlap in ((128, 0), (256, 32), (400, 0))
    ),
]
"""Ten declarations over one document; the first is also measured alone."""


@dataclass(frozen=True)
class Source:
    """A text with its elements, as parsing leaves it."""

    text: str
    elements: Sequence[Element]

    def document(self, tokenizer: TextTokenizer) -> Document:
        return Document(self.text, self.elements, tokenizer)


Cut = Callable[[Source], Sequence[object]]
"""Chunks of one text, nothing kept from a call before."""
Chunks = Sequence[Sequence[object]]
"""By text."""
Work = Callable[[], Chunks]


@dataclass(frozen=True)
class Measured:
    """The least CPU seconds of all rounds, and the chunks of the last one."""

    seconds: float
    chunks: Chunks

    @property
    def n_chunks(self) -> int:
        return sum(map(len, self.chunks))


@dataclass(frozen=True)
class Target:
    """A ratio that is promised, and what was found."""

    claim: str
    found: float
    at_least: float | None = None
    below: float | None = None

    @property
    def reached(self) -> bool:
        above = self.at_least is None or self.found >= self.at_least
        return above and (self.below is None or self.found < self.below)


def read_corpora(folder: Path, large: bool = False) -> list[Source]:
    """The Markdown files below `folder/corpora`, or with `large` one text of 20 million characters:
    the files again and again, each time with the words of their lines in another order, or a
    splitter would be measured by how much it remembers.

    Raises:
        CorpusError: there are none.
    """
    texts = [f.read_text(encoding="utf-8") for f in sorted((folder / "corpora").glob("*.md"))]
    if not any(texts):
        raise CorpusError(f"{folder} has no corpora/*.md")
    if large:
        whole = "\n\n".join(texts)
        copies = -(-LARGE_CHARS // len(whole))
        texts = ["\n\n".join(_turned(whole, by) for by in range(copies))]
    return [_parsed(text) for text in texts]


def _turned(text: str, by: int) -> str:
    """The text with the words of each line moved on, the first one left where it is."""
    lines = []
    for line in text.split("\n"):
        first, *words = line.split(" ")
        at = by % max(1, len(words))
        lines.append(" ".join([first, *words[at:], *words[:at]]))
    return "\n".join(lines)


def _parsed(text: str) -> Source:
    return Source(text, parse_text(text).elements)


def race(contestants: Mapping[str, Work], rounds: int) -> dict[str, Measured]:
    """Everyone's work, in turns."""
    seconds: dict[str, float] = dict.fromkeys(contestants, math.inf)
    chunks: dict[str, Chunks] = {}
    for _ in range(rounds):
        for name, work in contestants.items():
            started = time.process_time()
            chunks[name] = work()
            seconds[name] = min(seconds[name], time.process_time() - started)
    return {name: Measured(seconds[name], chunks[name]) for name in contestants}


def over(sources: Sequence[Source], cut: Cut) -> Work:
    """The cutting of every text."""
    return lambda: [cut(source) for source in sources]


def ours(chunker: Chunker, tokenizer: TextTokenizer) -> Cut:
    return lambda source: chunk(source.document(tokenizer), chunker)


def of_other_libraries(tokenizer: TextTokenizer) -> dict[str, Cut]:
    """Splitters that keep a budget in tokens, called as their documentation says."""
    import semantic_text_splitter
    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from semchunk.semchunk import chunkerify

    def count(text: str) -> int:
        return tokenizer.count([text])[0]

    def semchunk(source: Source) -> Sequence[object]:
        # A counter of its own each time, because counts are remembered by counter.
        return list(chunkerify(lambda text: count(text), BUDGET)(source.text))

    langchain = RecursiveCharacterTextSplitter(
        chunk_size=BUDGET, chunk_overlap=0, length_function=count
    )
    splitter = semantic_text_splitter.TextSplitter.from_callback(count, BUDGET)
    return {
        f"langchain-text-splitters {release('langchain-text-splitters')}": (
            lambda source: langchain.split_text(source.text)
        ),
        f"semchunk {release('semchunk')}": semchunk,
        f"semantic-text-splitter {release('semantic-text-splitter')}": (
            lambda source: splitter.chunks(source.text)
        ),
    }


def token_chunker(tokenizer: TextTokenizer) -> Cut:
    """chonkie's TokenChunker with the same vocabulary, which reads tokens back into text."""
    from chonkie import TokenChunker
    from tokenizers import Tokenizer, decoders

    engine = Tokenizer.from_str(tokenizer._engine.to_str())
    engine.encode_special_tokens = True
    engine.decoder = decoders.Metaspace()
    chunker = TokenChunker(engine, chunk_size=BUDGET)  # type: ignore[arg-type]  # documented
    return lambda source: [c.text for c in chunker.chunk(source.text)]


def own_strategies() -> dict[str, Chunker]:
    """Every registered strategy of ours that asks no model, at the budget if it takes one."""
    found: dict[str, Chunker] = {}
    for kind, strategy in CHUNKERS.items():
        if not issubclass(strategy, LibraryChunker):
            for settings in ({"max_tokens": BUDGET}, {}):
                with suppress(ValidationError):  # sizes declared otherwise, or a model to name
                    found.setdefault(kind, strategy.model_validate(settings))
    return {k: c for k, c in found.items() if not c.models_asked() and not c.asks_chat()}


def doubled(sources: Sequence[Source], characters: int) -> tuple[Source, Source]:
    """A text of paragraphs from all over the sources, and one of the same sort twice as long, of
    about `characters` or all there is."""
    paragraphs = "\n\n".join(source.text for source in sources).split("\n\n")
    share = min(1.0, characters / sum(map(len, paragraphs)))
    return _parsed(_sample(paragraphs, share / 2)), _parsed(_sample(paragraphs, share))


def _sample(paragraphs: Sequence[str], share: float) -> str:
    """Every so many paragraphs, so that `share` of the characters is taken."""
    taken, seen, found = 0, 0, []
    for paragraph in paragraphs:
        seen += len(paragraph)
        if taken + len(paragraph) / 2 <= share * seen:
            taken += len(paragraph)
            found.append(paragraph)
    return "\n\n".join(found)


def ten_versions(
    sources: Sequence[Source], tokenizer: TextTokenizer, rounds: int
) -> dict[str, Measured]:
    """One chunker version, and ten over the same documents, tokens found by the first."""

    def versions(chunkers: Sequence[Chunker]) -> Cut:
        def cut(source: Source) -> Sequence[object]:
            document = source.document(tokenizer)
            return [found for chunker in chunkers for found in chunk(document, chunker)]

        return cut

    return race(
        {
            "one version": over(sources, versions(VERSIONS[:1])),
            "ten versions": over(sources, versions(VERSIONS)),
        },
        rounds,
    )


def cluster_seconds(rounds: int) -> float:
    """CPU seconds of `cluster` for 5,000 pieces whose vectors are known."""
    vectors = np.random.default_rng(0).normal(size=(PIECES, DIMENSIONS))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    furthest = np.minimum(np.arange(PIECES) + PIECES_PER_CLUSTER - 1, PIECES - 1)
    seconds = math.inf
    for _ in range(rounds):
        started = time.process_time()
        best_segmentation(similarity_band(vectors, PIECES_PER_CLUSTER), furthest)
        seconds = min(seconds, time.process_time() - started)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunkers", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--large", action="store_true", help="one text of 20 million characters")
    parser.add_argument("--rounds", type=int, default=2, help="the fastest counts (default: 2)")
    arguments = parser.parse_args()
    console = Console()
    console.width = max(console.width, LEAST_WIDTH)
    tokenizer = E5Small().tokenizer(Path())
    assert isinstance(tokenizer, TextTokenizer)
    try:
        sources = read_corpora(arguments.folder, arguments.large)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    targets = [
        *compare_recursive(console, sources, tokenizer, arguments.rounds),
        *compare_fixed(console, sources, tokenizer, arguments.rounds),
        *compare_growth(console, sources, tokenizer, arguments.rounds),
        *compare_versions(console, sources, tokenizer, arguments.rounds),
        *compare_cluster(arguments.rounds),
    ]
    _print_targets(console, targets)
    return 0


def compare_recursive(
    console: Console, sources: Sequence[Source], tokenizer: TextTokenizer, rounds: int
) -> list[Target]:
    """The default strategy beside what people would use instead."""
    own = ours(RecursiveChunker(max_tokens=BUDGET), tokenizer)
    cuts = {"recursive": own, **of_other_libraries(tokenizer)}
    found = race({name: over(sources, cut) for name, cut in cuts.items()}, rounds)
    _print_race(console, f"Chunks of at most {BUDGET} tokens", sources, found)
    return [
        Target(f"{name} / recursive", _ratio(found[name], found["recursive"]), at_least=least)
        for name in found
        for library, least in (("langchain", 1.5), ("semchunk", 1.0))
        if name.startswith(library)
    ]


def compare_fixed(
    console: Console, sources: Sequence[Source], tokenizer: TextTokenizer, rounds: int
) -> list[Target]:
    """Windows of tokens beside chonkie's."""
    theirs = f"chonkie {release('chonkie')}"
    own = ours(FixedChunker(max_tokens=BUDGET), tokenizer)
    cuts = {"fixed": own, theirs: token_chunker(tokenizer)}
    found = race({name: over(sources, cut) for name, cut in cuts.items()}, rounds)
    _print_race(console, f"Windows of {BUDGET} tokens", sources, found)
    changed = sum(
        text not in source.text
        for source, texts in zip(sources, found[theirs].chunks, strict=True)
        for text in map(str, texts)
    )
    console.print(
        f"{changed} of {found[theirs].n_chunks} chunks of {theirs} are nowhere in the text: they "
        "are tokens read back, after the model's normalisation.\n",
        highlight=False,
    )
    return [Target(f"{theirs} / fixed", _ratio(found[theirs], found["fixed"]), at_least=1.0)]


def compare_growth(
    console: Console, sources: Sequence[Source], tokenizer: TextTokenizer, rounds: int
) -> list[Target]:
    """Every strategy of ours that asks no model, on texts one twice as long as the other; the
    libraries too, where that takes seconds."""
    contestants = {kind: ours(chunker, tokenizer) for kind, chunker in own_strategies().items()}
    own, large = list(contestants), len(sources) == 1
    if not large:
        contestants |= of_other_libraries(tokenizer)
        contestants[f"chonkie {release('chonkie')}"] = token_chunker(tokenizer)
    half, whole = doubled(sources, LARGE_CHARS if large else DOUBLED_CHARS)
    table = Table(title="Twice the text", title_justify="left")
    for column in ("splitter", "CPU s", "of twice", "growth", "chunks"):
        table.add_column(column, justify="left" if column == "splitter" else "right")
    targets = []
    for name, cut in contestants.items():
        # In turns, so that a busy moment of the machine is not held against the longer text.
        works = {"half": over([half], cut), "all": over([whole], cut)}
        found = race(works, rounds if large or name not in own else ROUNDS_TO_DOUBLE * rounds)
        less, more = found["half"], found["all"]
        grown = _ratio(more, less)
        table.add_row(
            name, f"{less.seconds:.2f}", f"{more.seconds:.2f}", f"{grown:.2f}", f"{more.n_chunks}"
        )
        if name in own:
            targets.append(Target(f"{name}: twice the text", grown, below=2.2))
    console.print(table, "")
    return targets


def compare_versions(
    console: Console, sources: Sequence[Source], tokenizer: TextTokenizer, rounds: int
) -> list[Target]:
    """Ten chunker versions over the same documents beside one."""
    found = ten_versions(sources, tokenizer, rounds)
    _print_race(console, "Versions over the same documents", sources, found)
    return [
        Target("ten versions / one", _ratio(found["ten versions"], found["one version"]), below=1.6)
    ]


def compare_cluster(rounds: int) -> list[Target]:
    claim = f"cluster, {PIECES} pieces: CPU seconds without embedding"
    return [Target(claim, cluster_seconds(rounds), below=1.0)]


def _ratio(one: Measured, other: Measured) -> float:
    return one.seconds / other.seconds


def _print_race(
    console: Console, title: str, sources: Sequence[Source], found: Mapping[str, Measured]
) -> None:
    characters = sum(len(source.text) for source in sources)
    table = Table(title=f"{title}, {characters / 1e6:.2f} million characters", title_justify="left")
    table.add_column("splitter", no_wrap=True)
    for column in ("CPU s", "million characters / s", "chunks", "cost"):
        table.add_column(column, justify="right")
    first = next(iter(found.values()))
    for name, measured in found.items():
        table.add_row(
            name,
            f"{measured.seconds:.2f}",
            f"{characters / 1e6 / measured.seconds:.2f}",
            f"{measured.n_chunks}",
            f"{_ratio(measured, first):.2f} x",
        )
    console.print(table, "")


def _print_targets(console: Console, targets: Iterable[Target]) -> None:
    table = Table(title="What is promised", title_justify="left")
    table.add_column("ratio")
    for column in ("found", "promised", ""):
        table.add_column(column, justify="right")
    for target in targets:
        promised = f">= {target.at_least}" if target.below is None else f"< {target.below}"
        table.add_row(
            target.claim, f"{target.found:.2f}", promised, "" if target.reached else "missed"
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
