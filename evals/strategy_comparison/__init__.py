"""Which strategy is better on these questions, and whether these questions can tell."""
