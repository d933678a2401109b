"""One text in sixteen languages, to compare what languages cost a tokenizer and to detect them."""

from collections.abc import Mapping
from pathlib import Path

import yaml

PARALLEL_TEXT: Mapping[str, str] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
"""By ISO 639-1 code, English first."""
