"""Where Dagster keeps its own state: below the workspace, with telemetry off."""

import os
from pathlib import Path

from chunking_assets.workspace import write_atomically

DAGSTER_YAML = b"""\
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 2}
"""


def prepare_home(workspace: Path) -> Path:
    """Make `<workspace>/dagster` the DAGSTER_HOME of this process, unless one is set already."""
    home = Path(os.environ.setdefault("DAGSTER_HOME", str(workspace / "dagster")))
    if not (home / "dagster.yaml").exists():
        write_atomically(home / "dagster.yaml", DAGSTER_YAML)
    return home
