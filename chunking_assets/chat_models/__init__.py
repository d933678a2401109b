"""Chat models behind an OpenAI-compatible endpoint: typed replies, checked, paid for once."""
