"""Chunk embeddings: vectors cached by content, one LanceDB table per index version."""
