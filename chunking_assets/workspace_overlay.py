"""A workspace that shows another one and never writes to it: what is tried leaves no trace.

What is written goes to a folder of its own and hides what lies beneath. Parquet files are read
where they are, since nobody changes them; the small files of stamps, declarations and file stats
are copied, and models are linked.
"""

import shutil
from collections.abc import Iterable
from pathlib import Path

from chunking_assets.workspace import WHOLE, Manifest, Snapshot, Table, Workspace

_COPIED = ("stamps", "declarations", "caches/files")
_GONE = ".gone"


class Overlay(Workspace):
    """Shows the workspace `base`; what is written is kept below `root`, an empty folder."""

    def __init__(self, base: Workspace, root: Path) -> None:
        super().__init__(root)
        self.base = base
        for name in _COPIED:
            if (base.root / name).is_dir():
                shutil.copytree(base.root / name, root / name)
        self.models.mkdir(parents=True, exist_ok=True)
        for prepared in base.models.iterdir() if base.models.is_dir() else ():
            (self.models / prepared.name).symlink_to(prepared)

    def table(self, name: str) -> Table:
        return _Shown(self.base.table(name), super().table(name).folder)

    @property
    def lance(self) -> Path:
        return self.base.lance

    @property
    def eval_database(self) -> Path:
        return self.base.eval_database


class _Shown(Table):
    """A table of which some partitions were written or removed here."""

    def __init__(self, base: Table, folder: Path) -> None:
        super().__init__(folder, base.name)
        self.base = base

    def partitions(self) -> list[str]:
        beneath = {p for p in self.base.partitions() if not self._is_gone(p)}
        return sorted({*super().partitions(), *beneath})

    def manifest(self, partition: str = WHOLE) -> Manifest | None:
        written = super().manifest(partition)
        if written is not None or self._is_gone(partition):
            return written
        return self.base.manifest(partition)

    def files(self, partitions: Iterable[str] | None = None) -> list[Path]:
        return [
            file
            for partition in (self.partitions() if partitions is None else partitions)
            if (manifest := self.manifest(partition)) is not None
            for file in self.snapshot(manifest).files
        ]

    def snapshot(self, manifest: Manifest) -> Snapshot:
        written = super().snapshot(manifest)
        is_here = all(file.exists() for file in written.files)
        return written if is_here else self.base.snapshot(manifest)

    def remove(self, partition: str = WHOLE) -> None:
        super().remove(partition)
        self._folder(partition).mkdir(parents=True)
        (self._folder(partition) / _GONE).touch()

    def _is_gone(self, partition: str) -> bool:
        return (self._folder(partition) / _GONE).exists()

    def _begin_grace(self, partition: str) -> None:
        """What lies beneath is replaced by nobody."""
