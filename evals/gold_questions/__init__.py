"""Evidence as exact quotes, located in the canonical text of each revision."""
