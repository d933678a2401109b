"""Raw documents: what is in a collection's folder, and what changed since it was last read."""
