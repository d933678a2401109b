"""The corpus as data: documents, elements, chunks, vectors, retrieval. No Dagster in here."""
