"""Where the workspaces of tests are: in a folder, in a bucket, or in both, one after the other."""

import os

import pytest

EVERYWHERE = "CORPUS_TEST_EVERYWHERE"
"""If this variable is set, every test of `place` runs over both: `make test-bucket`."""
FOLDER, BUCKET = "folder", "bucket"

both_places = pytest.mark.parametrize("place", [FOLDER, BUCKET], indirect=True)
"""Marks tests of `place` that run over both each time: one for everything a bucket does otherwise
than a folder. The others take minutes more."""
places = [FOLDER, BUCKET] if os.environ.get(EVERYWHERE) else [FOLDER]
