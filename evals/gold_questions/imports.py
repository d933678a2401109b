"""What the importers share: what they return, the names they give, and the folder they fill."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from evals.gold_questions.load import GoldQuestion

_LONGEST_NAME = 100


@dataclass(frozen=True)
class Imported:
    """The questions of another layout; `documents` files were written.

    `skipped` says, a line each, what was left out and why.
    """

    questions: Sequence[GoldQuestion]
    skipped: Sequence[str]
    documents: int = 0


def question_id(name: str) -> str:
    """A name of another tool as an id: equal names give equal ids, others other ones.

    >>> question_id("PLAIN-12"), question_id("a/b c")
    ('PLAIN-12', 'a-b-c-b78d2eba')
    """
    plain = re.sub(r"[^\w.-]", "-", name)
    if plain == name and len(name) <= _LONGEST_NAME:
        return name
    return f"{plain[:_LONGEST_NAME]}-{digest(name)[:8]}"


def file_name(name: str) -> str:
    """A name of another tool as the name of a file that is listed; see `question_id`.

    >>> file_name("MED-10"), file_name(".hidden/x")
    ('MED-10', '%2Ehidden%2Fx')
    """
    plain = quote(name, safe=" @+")
    plain = f"%2E{plain[1:]}" if plain.startswith(".") else plain
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}-{digest(name)[:8]}"


def new_folder(folder: Path) -> Path:
    """The folder, made if it is not there.

    Raises:
        CorpusError: it holds something, or cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise CorpusError(f"{folder} is not empty. Name a new folder for the documents.")
    except OSError as error:
        raise CorpusError(
            f"{folder}: {error.strerror}. Name a folder for the documents."
        ) from error
    return folder
