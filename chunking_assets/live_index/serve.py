"""The reader of whatever is live: it follows promotions and rollbacks by itself."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock

from chunking_assets.chunk_embeddings.lance_index import LanceIndex
from chunking_assets.embedding_models.model import EmbeddingModel
from chunking_assets.embedding_models.registry import model_class
from chunking_assets.errors import CorpusError
from chunking_assets.live_index.promotion import PROMOTIONS, Live, live
from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.hit import Answer
from chunking_assets.retrieval.open import open_index
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.reader import FOLLOW_SECONDS, Answering, Reader
from chunking_assets.storage import Place
from chunking_assets.workspace import Workspace


class LiveReader(Answering):
    """Answers from the live strategy; a promotion is followed within half a second."""

    def __init__(
        self, workspace: Workspace, declared: Mapping[str, EmbeddingModel] | None = None
    ) -> None:
        self._workspace, self._declared = workspace, declared or {}
        self._current: tuple[Live, Reader] | None = None
        self._looked = 0.0
        self._lock = Lock()

    @property
    def strategy(self) -> str:
        """The name of the strategy that answers now."""
        return self._follow()[0].strategy

    def answers(
        self, questions: Sequence[str], filters: Filters | None = None, *, explained: bool = True
    ) -> list[Answer]:
        """The answers of the strategy that is live now, all of one.

        Raises:
            CorpusError: nothing is live, or a question is empty.
        """
        return self._follow()[1].answers(questions, filters, explained=explained)

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
                    self._current = (
                        current,
                        _open(self._workspace, current, declared=self._declared),
                    )
                self._looked = now
            return self._current


def open_live(
    workspace: Workspace | Place | str, declared: Mapping[str, EmbeddingModel] | None = None
) -> LiveReader:
    """The reader of the live strategy of a workspace, or of the one in a folder or at s3://...

    A model is asked where it was asked at the promotion, unless `declared`, the
    `embedding_models` of corpus.yaml as it is now, has the same model elsewhere.

    Raises:
        CorpusError: nothing is live yet.
    """
    if not isinstance(workspace, Workspace):
        workspace = Workspace(workspace)
    reader = LiveReader(workspace, declared)
    reader.strategy  # noqa: B018 - fails now rather than at the first question
    return reader


def open_past(workspace: Workspace, moment: datetime) -> tuple[Live, Reader]:
    """What was live at a moment, and the reader of its index as it was served then.

    Raises:
        CorpusError: nothing was live, or that state is cleaned; the message names those kept.
    """
    then = live(workspace, moment)
    if then is None:
        raise CorpusError(f"Nothing was live on {moment:%Y-%m-%d %H:%M:%S} UTC.")
    LanceIndex(workspace, then.index_version).open_at(moment)  # fails now if it is cleaned
    return then, _open(workspace, then, moment)


def moment_of(workspace: Workspace, text: str) -> datetime:
    """A moment as a person writes it: a date (its end), a date with a time (UTC unless it says
    otherwise), or the first characters of a promotion's event_id.

    Raises:
        CorpusError: it is none of these.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        events = workspace.table(PROMOTIONS).read(columns=["event_id", "at"])
        rows = [] if events is None else events.rows()
        found: list[datetime] = [at for event_id, at in rows if event_id.startswith(text)]
        if len(found) != 1:
            raise CorpusError(
                f"{text!r} is no date (2026-05-31, 2026-05-31T12:00), and "
                f"{len(found) or 'no'} promotions begin with it."
            ) from None
        return found[0]
    if len(text) <= len("2026-05-31"):
        moment += timedelta(days=1, microseconds=-1)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _open(
    workspace: Workspace,
    current: Live,
    at: datetime | None = None,
    declared: Mapping[str, EmbeddingModel] | None = None,
) -> Reader:
    model = current.model
    promoted = model_class(model["kind"]).model_validate(model["settings"])
    now = (declared or {}).get(model["name"], promoted)
    return open_index(
        workspace,
        current.index_version,
        model["name"],
        now if now.declaration() == promoted.declaration() else promoted,
        RetrievalProfile.model_validate(current.profile),
        at=at,
    )
