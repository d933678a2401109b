import re
from itertools import product

from chunking_assets.config import SCORED
from evals.retrieval_scores.build import CUTOFFS
from evals.retrieval_scores.registry import METRICS


def test_the_configuration_accepts_exactly_what_is_scored():
    accepted = [m for m in map("@".join, product(METRICS, CUTOFFS)) if re.fullmatch(SCORED, m)]
    assert len(accepted) == len(METRICS) * len(CUTOFFS)
    words = re.findall(r"[a-z_]+(?=[|)])", SCORED)
    assert set(words) == {*METRICS, "served"} | {c[-1] for c in CUTOFFS if c.endswith("t")}
