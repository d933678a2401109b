"""Embedding models: where weights come from, what a model is called, how it counts and embeds."""
