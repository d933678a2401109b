"""Retrieval scored on character spans, through the code that serves."""
