"""Where Dagster keeps its own state: below the workspace, with telemetry off."""

import os
from pathlib import Path

from chunking_assets.workspace import write_atomically

DAGSTER_YAML = b"""\
telemetry: {enabled: false}
nux: {enabled: false}
freshness: {enabled: true}
concurrency:
  runs: {max_concurrent_runs: 2}
  # Runs wait in the queue for their pools, not in a process of their own. The limits are set by
  # dagster_defs/pools.py; the UI, or `dagster instance concurrency set POOL N`, changes them.
  pools: {granularity: run, default_limit: 1}
"""


def prepare_home(workspace: Path) -> Path:
    """Make `dagster` in the workspace's folder on this machine the DAGSTER_HOME of this process,
    unless one is set already."""
    home = Path(os.environ.setdefault("DAGSTER_HOME", str(workspace / "dagster")))
    if not (home / "dagster.yaml").exists():
        write_atomically(home / "dagster.yaml", DAGSTER_YAML)
    return home
