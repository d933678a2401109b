"""Rows of an index without a corpus: a vector and a word each."""

import numpy as np
import pyarrow as pa

DIMENSIONS = 16


def made_up_rows(vectors, first=0, parents=0):
    """A chunk a vector, and so many that are only read."""
    size = len(vectors)
    total = size + parents
    flat = np.concatenate([vectors, np.zeros((parents, DIMENSIONS), np.float32)]).reshape(-1)
    mask = pa.array([False] * size + [True] * parents)
    texts = [f"word{first + n}" for n in range(total)]
    return pa.table(
        {
            "chunk_id": [f"{first + n:05}" for n in range(total)],
            "shard": ["docs"] * total,
            "doc_id": [f"docs/{first}.md"] * total,
            "ordinal": range(total),
            "start": range(total),
            "end": range(1, total + 1),
            "prefix": [""] * total,
            "text": texts,
            "embed_text": texts,
            "heading_path": pa.array([[]] * total, pa.list_(pa.string())),
            "level": [0] * size + [1] * parents,
            "parent_id": pa.nulls(total, pa.string()),
            "searched": [True] * size + [False] * parents,
            "n_tokens": [1] * total,
            "vec_key": texts,
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(flat), DIMENSIONS, mask=mask),
        }
    )
