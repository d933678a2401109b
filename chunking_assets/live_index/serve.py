"""The reader of whatever is live: it follows promotions and rollbacks by itself."""

import time
from threading import Lock

from chunking_assets.embedding_models.registry import MODELS
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import Live, live
from chunking_assets.retrieval.hit import Passage
from chunking_assets.retrieval.open import open_index
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import FOLLOW_SECONDS, Reader
from chunking_assets.workspace import Workspace


class LiveReader:
    """Answers from the live strategy; a promotion is followed within half a second."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._current: tuple[Live, Reader] | None = None
        self._looked = 0.0
        self._lock = Lock()

    @property
    def strategy(self) -> str:
        """The name of the strategy that answers now."""
        return self._follow()[0].strategy

    def search(self, question: str) -> list[Passage]:
        """The passages of the live strategy for a question, best first.

        Raises:
            CorpusError: nothing is live, or the question is empty.
        """
        return self._follow()[1].search(question)

    def _follow(self) -> tuple[Live, Reader]:
        with self._lock:
            now = time.monotonic()
            if self._current is None or now - self._looked > FOLLOW_SECONDS:
                current = live(self._workspace)
                if current is None:
                    raise CorpusError(
                        "Nothing is live yet. Promote a strategy: make promote STRATEGY=<name>"
                    )
                if self._current is None or self._current[0].event_id != current.event_id:
                    self._current = (current, _open(self._workspace, current))
                self._looked = now
            return self._current


def open_live(workspace: Workspace) -> LiveReader:
    """The reader of the live strategy.

    Raises:
        CorpusError: nothing is live yet.
    """
    reader = LiveReader(workspace)
    reader.strategy  # noqa: B018 - fails now rather than at the first question
    return reader


def _open(workspace: Workspace, current: Live) -> Reader:
    model = current.model
    return open_index(
        workspace,
        current.index_version,
        model["name"],
        MODELS[model["kind"]].model_validate(model["settings"]),
        RetrievalProfile.model_validate(current.profile),
    )
