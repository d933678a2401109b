"""Parsed elements: one canonical text per document, and typed spans over it."""
