"""A workspace that shows another one and never writes to it: what is tried leaves no trace.

What is written goes to a folder of its own and hides what lies beneath. Parquet files are read
where they are, since nobody changes them; the small files of stamps, declarations and file stats
are copied, and models are linked.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from chunking_assets.storage import Store
from chunking_assets.workspace import WHOLE, Manifest, Snapshot, Table, Workspace, encode

_COPIED = ("stamps", "declarations")
_FILE_STATS = "caches/files"
_GONE = ".gone"


class Overlay(Workspace):
    """Shows the workspace `base`; what is written is kept below `root`, an empty folder."""

    def __init__(self, base: Workspace, root: Path) -> None:
        super().__init__(root)
        self.base = base
        for name in _COPIED:
            for file in base.store.files(name):
                (root / file.key).parent.mkdir(parents=True, exist_ok=True)
                (root / file.key).write_bytes(base.store.read(file.key) or b"")
        if (base.root / _FILE_STATS).is_dir():
            shutil.copytree(base.root / _FILE_STATS, root / _FILE_STATS)
        self.models.mkdir(parents=True, exist_ok=True)
        for prepared in base.models.iterdir() if base.models.is_dir() else ():
            (self.models / prepared.name).symlink_to(prepared)

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (self.base, self.root)

    def table(self, name: str) -> Table:
        return _Shown(self.base.table(name), super().table(name).store)

    @property
    def lance(self) -> Store:
        return self.base.lance

    @property
    def eval_database(self) -> Path:
        return self.base.eval_database


def _reopened(base: Workspace, root: Path) -> Overlay:
    """In another process, without copying anything again."""
    overlay = Overlay.__new__(Overlay)
    Workspace.__init__(overlay, root)
    overlay.base = base
    return overlay


class _Shown(Table):
    """A table of which some partitions were written or removed here."""

    def __init__(self, base: Table, store: Store) -> None:
        super().__init__(store, base.name)
        self.base = base

    def partitions(self) -> list[str]:
        beneath = {p for p in self.base.partitions() if not self._is_gone(p)}
        return sorted({*super().partitions(), *beneath})

    def manifest(self, partition: str = WHOLE) -> Manifest | None:
        written = super().manifest(partition)
        if written is not None or self._is_gone(partition):
            return written
        return self.base.manifest(partition)

    def snapshot(self, manifest: Manifest) -> Snapshot:
        written = super().snapshot(manifest)
        is_here = all(file.exists() for file in written.files)
        return written if is_here else self.base.snapshot(manifest)

    def remove(self, partition: str = WHOLE) -> None:
        super().remove(partition)
        self.store.write(f"{encode(partition)}/{_GONE}", b"")

    def _is_gone(self, partition: str) -> bool:
        return self.store.read(f"{encode(partition)}/{_GONE}") is not None

    def _begin_grace(self, partition: str) -> Sequence[str]:
        """What lies beneath is replaced by nobody."""
        return ()
