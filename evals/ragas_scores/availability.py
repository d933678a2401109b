"""Whether ragas works here.

It can be missing or broken on a machine that is otherwise fine. The stage then writes its rows as
skipped, with the reason and the cure; nothing else depends on it.
"""

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version

RAGAS_VERSION = "0.4.3"
INSTALL = f"pip install 'ragas=={RAGAS_VERSION}' 'langchain-community>=0.3.27,<0.4'"


def ragas_problem() -> str | None:
    """What keeps ragas from working here, with the cure; None if it imports.

    The version is compared before the import, which takes seconds: prompts of another release
    would be another measurement.
    """
    try:
        installed = version("ragas")
    except PackageNotFoundError:
        return f"ragas is not installed: {INSTALL}"
    if installed != RAGAS_VERSION:
        return f"ragas {installed} is installed, its prompts were not checked: {INSTALL}"
    return _import_problem()


@cache
def _import_problem() -> str | None:
    # Read once by ragas at its first use, and only this literal value turns its telemetry off.
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    try:
        import ragas.metrics.collections  # noqa: F401
    except Exception as error:  # whatever a broken dependency raises disables this stage only
        return f"ragas does not import ({type(error).__name__}: {error}): {INSTALL}"
    return None
