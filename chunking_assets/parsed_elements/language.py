"""The language of a document, found once for the whole of it; its chunks inherit it.

A naive Bayes model over byte sequences (Lui and Baldwin 2012, langid.py) as `py3langid` ships it:
no network, one wheel of 5 MB. Short strings are what such models fail at, so a sample from all
over the prose is judged, never a chunk, and no language is better than a doubtful one.
"""

import io
import lzma
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from chunking_assets.parsed_elements.document import Element
from chunking_assets.workspace import write_atomically

if TYPE_CHECKING:
    import numpy as np
    from py3langid.langid import LanguageIdentifier  # type: ignore[import-untyped]

VERSION = 1
"""Raised when the same text would be given another language."""
LIBRARIES = ("py3langid",)

SAMPLE_CHARS = 1500
"""Read of a longer text, a third each from its start, middle and end: about a millisecond."""
LEAST_BYTES = 60
"""In UTF-8, without white space: 60 Latin letters or 20 Chinese characters. Shorter texts are
given a wrong language with confidence."""
LEAST_CONFIDENCE = 0.5

_PROSE = frozenset(("heading", "paragraph", "list_item", "quote", "caption", "definition", "turn"))
_INCLUDES = {"ar": ("arz", "ary"), "zh": ("yue", "wuu"), "no": ("nn",)}
"""Varieties told apart by the model and written, counted and searched like the language."""


class Language(NamedTuple):
    """`code` is ISO 639-1; `confidence` the model's probability, 0 to 1."""

    code: str
    confidence: float


def detect_language(
    text: str, elements: Sequence[Element], models_folder: Path | None = None
) -> Language | None:
    """The language most of a document's prose is in; code, tables and front matter do not count.

    None for source code, for too little text (`LEAST_BYTES`), where no language reaches
    `LEAST_CONFIDENCE`, and for a language without a code of two letters. Deterministic, and safe
    in threads. The model is kept in `models_folder` as it is read fastest; without one it is
    unpacked from its wheel, once a process.

    >>> text = "Os reembolsos demoram cinco dias úteis a chegar ao cartão com que foram pagos."
    >>> detect_language(text, [Element("paragraph", 0, len(text))]).code
    'pt'
    >>> detect_language(text, [Element("code", 0, len(text))])
    """
    sample = _sample(" ".join(text[e.start : e.end] for e in elements if e.kind in _PROSE))
    if len("".join(sample.split()).encode(errors="surrogatepass")) < LEAST_BYTES:
        return None
    found = dict(_identifier(models_folder).rank(sample))
    for language, varieties in _INCLUDES.items():
        found[language] += sum(found.pop(variety) for variety in varieties)
    code, confidence = max(found.items(), key=lambda item: item[1])
    if confidence < LEAST_CONFIDENCE or len(code) != 2:
        return None
    return Language(code, round(min(confidence, 1.0), 3))


def _sample(prose: str) -> str:
    if len(prose) <= SAMPLE_CHARS:
        return prose
    third = SAMPLE_CHARS // 3
    middle = (len(prose) - third) // 2
    return " ".join((prose[:third], prose[middle : middle + third], prose[-third:]))


_loaded: "list[LanguageIdentifier]" = []
"""The one of this process, whichever form it was read from."""


def _identifier(models_folder: Path | None) -> "LanguageIdentifier":
    if not _loaded:
        _loaded.append(_read(models_folder))
    return _loaded[0]


def _read(models_folder: Path | None) -> "LanguageIdentifier":
    """From the arrays of the wheel. Compressed by LZMA, as they come there, they take most of a
    second to read; as they are kept, a twentieth of it."""
    from py3langid.langid import LanguageIdentifier

    file = models_folder and models_folder / f"py3langid-{version('py3langid')}.arrow"
    arrays = _kept(file) if file else None
    if arrays is None:
        arrays = _of_the_wheel()
        if file:
            _keep(file, arrays)
    return LanguageIdentifier(
        arrays["ptc"].reshape(-1, len(arrays["pc"])),
        arrays["pc"],
        arrays["classes"].tolist(),
        arrays["nextmove"].data,
        arrays["out_feat"].tolist(),
        norm_probs=True,
        tk_row=arrays["nextmove_row"].data,
    )


def _of_the_wheel() -> "dict[str, np.ndarray]":
    import numpy as np
    from py3langid.langid import MODEL_DIR, MODEL_FILE

    content = io.BytesIO(lzma.decompress((MODEL_DIR / MODEL_FILE).read_bytes()))
    with np.load(content, allow_pickle=False) as arrays:
        return {name: arrays[name].ravel() for name in arrays.files}


def _keep(file: Path, arrays: "Mapping[str, np.ndarray]") -> None:
    import pyarrow as pa

    columns = {
        f"{name} {values.dtype.str}": pa.array([values.tobytes()], pa.large_binary())
        for name, values in arrays.items()
    }
    batch, packed = pa.record_batch(columns), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(packed, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    with suppress(OSError):  # read from the wheel again, then
        write_atomically(file, packed.getvalue().to_pybytes())


def _kept(file: Path) -> "dict[str, np.ndarray] | None":
    """None where they are not kept, or damaged."""
    import numpy as np
    import pyarrow as pa

    try:
        batch = pa.ipc.open_file(file.read_bytes()).get_batch(0)
    except (OSError, pa.ArrowException):
        return None
    columns = zip(map(str.split, batch.schema.names), batch.columns, strict=True)
    return {name: np.frombuffer(c[0].as_buffer(), dtype) for (name, dtype), c in columns}
