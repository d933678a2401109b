"""Retrieval: one file a step, composed by a profile; the same code serves and is scored."""
