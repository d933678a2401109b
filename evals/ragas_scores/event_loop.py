"""Asynchronous work from plain code, also where a loop runs already, as in a notebook."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def in_own_loop(work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run to the end, in another thread if this one has a loop; loops are never nested."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(lambda: asyncio.run(work())).result()
