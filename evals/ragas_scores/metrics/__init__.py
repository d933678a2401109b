"""One file a RAGAS metric; `registry.py` names them all."""
