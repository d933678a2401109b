"""The command `python -m dagster_defs.materialize` with the test model registered.

Says `ready` once everything is imported, so that a test can interrupt the work itself.
"""

import sys

if __name__ == "__main__":
    import lancedb  # noqa: F401
    import small_corpus  # noqa: F401 - registers `kind: hash`

    from dagster_defs import definitions  # noqa: F401
    from dagster_defs.materialize import main

    print("ready", flush=True)
    sys.exit(main())
