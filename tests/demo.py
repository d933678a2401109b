"""The sample corpus as `make demo` leaves it: built once a session, in a process of its own.

Nothing of it is stored between sessions: every vector is computed by the default model. Nothing is
judged and answers copy sentences, for there is no endpoint.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from chunking_assets.workspace import Workspace, write_atomically

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "dagster_defs.materialize", "--promote-first"]
ITS_OWN = ("CORPUS_HOME", "CORPUS_CONFIG", "DAGSTER_HOME")


@dataclass(frozen=True)
class Demo:
    """Where it was built, and what it printed. It is shared: change a copy of `home`."""

    home: Path
    printed: str

    @property
    def database(self) -> Path:
        return Workspace(self.home).eval_database


def build_demo(folder: Path, models: Path) -> Demo:
    """What `make demo` makes, by the first process that asks; others wait for it."""
    home, printed = folder / "corpus", folder / "printed.txt"
    home.mkdir(parents=True, exist_ok=True)
    with Workspace(folder).lock("building"):
        if not printed.exists():
            if not (home / "models").exists():
                (home / "models").symlink_to(models)
            environment = {k: v for k, v in os.environ.items() if k not in ITS_OWN}
            done = subprocess.run(
                COMMAND,
                cwd=ROOT,
                env={**environment, "CORPUS_HOME": str(home)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
            write_atomically(printed, done.stdout.encode())
    return Demo(home, printed.read_text(encoding="utf-8"))
