"""Chunk sets: exact spans of the canonical text, one strategy a file, one primitive for all."""
