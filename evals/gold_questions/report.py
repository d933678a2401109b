"""Lost quotes as people read them: what the passage said, and what it says now."""

from collections.abc import Sequence

from evals.gold_questions.build import LostQuote

LISTED = 20


def lost_passages(lost: Sequence[LostQuote]) -> str:
    """Markdown: each quote that is not found, with the diff of its passage; the first few."""
    lines = [
        f"- `{quote.question_id}` in `{quote.doc_id}`:\n\n{_block(quote)}\n"
        for quote in lost[:LISTED]
    ]
    if len(lost) > LISTED:
        lines.append(f"- … and {len(lost) - LISTED} more in `gold_evidence`")
    return "\n".join(lines) or "none"


def _block(quote: LostQuote) -> str:
    """Indented, so that nothing a document says is Markdown."""
    text = quote.diff or f"[-{quote.quote}-] (nothing there is like it)"
    return "      " + " ".join(text.split())
