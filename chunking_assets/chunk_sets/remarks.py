"""What a chunk says of itself where a chat model did not do its part.

A failure that may pass makes the chunk provisional, so that the next build asks again; one that
lies in the text or the model would only be paid for again.
"""

from dataclasses import replace

from chunking_assets.chat_models.chat_endpoint import CallFailed
from chunking_assets.chunk_sets.chunker import Chunk

_LASTING = frozenset(("refused", "content_filter", "truncated", "invalid_output"))


def may_pass(failure: CallFailed) -> bool:
    """Whether the same question may be answered another day.

    >>> may_pass(CallFailed("timeout", "no reply")), may_pass(CallFailed("refused", "no"))
    (True, False)
    """
    return failure.kind not in _LASTING


def remarked(chunk: Chunk, remark: str, *, provisional: bool = False) -> Chunk:
    """The chunk with one more remark."""
    remarks = remark if chunk.remark is None else f"{chunk.remark}; {remark}"
    return replace(chunk, remark=remarks, provisional=chunk.provisional or provisional)
