"""Every candidate for a question, best first, and what the later steps need to know of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chunking_assets.retrieval.expand import Place
from chunking_assets.retrieval.hit import Hit


@dataclass(frozen=True)
class Ranking:
    """`hits` before any limit of the profile. `beside` are the chunks around the best of them, with
    the scores they have before reranking, of which `best_score` is the highest; `vectors` those of
    hits that were compared, by chunk_id; `dropped` why a candidate is not among the hits;
    `language` the question's, where the profile asks for it and it can be told; `translated` the
    hits of other languages, best first of each, where the profile translates; `served` the
    published index that all of it was found in, where the later steps look too."""

    hits: Sequence[Hit]
    beside: Mapping[Place, Hit] = field(default_factory=dict)
    best_score: float = 0.0
    vectors: Mapping[str, np.ndarray] = field(default_factory=dict)
    dropped: Mapping[str, tuple[Hit, str]] = field(default_factory=dict)
    language: str | None = None
    translated: Sequence[Hit] = ()
    served: Any = field(default=None, repr=False, compare=False)
