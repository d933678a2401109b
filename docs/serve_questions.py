"""A small web service over the live index: `uvicorn --app-dir docs serve_questions:app`.

It serves the workspace CORPUS_HOME and follows promotions by itself. Every thread may use the one
reader; questions that arrive together are answered at the same time.
"""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse

from chunking_assets.errors import CorpusError
from chunking_assets.live_index.serve import open_live
from chunking_assets.retrieval.filters import Filters
from chunking_assets.workspace import Workspace

reader = open_live(Workspace(os.environ.get("CORPUS_HOME", ".corpus")))


@asynccontextmanager
async def ready(_: FastAPI) -> AsyncIterator[None]:
    """The model is loaded before the first question comes, or the service does not start."""
    await reader.asearch("Is it there?")
    yield


app = FastAPI(title="Questions to the live index", lifespan=ready)


@app.exception_handler(CorpusError)
async def refused(_: Request, error: CorpusError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=400)


@app.get("/search")
async def search(q: str = "", language: Annotated[tuple[str, ...], Query()] = ()) -> dict[str, Any]:
    """Passages, best first, and the milliseconds it took."""
    started = time.perf_counter()
    passages = await reader.asearch(q, Filters(language=language))
    found = [{**passage.metadata(), "text": passage.text} for passage in passages]
    spent = 1000 * (time.perf_counter() - started)
    return {"strategy": reader.strategy, "ms": round(spent, 1), "passages": found}


@app.get("/explain")
async def explain(q: str = "") -> list[dict[str, Any]]:
    """Every candidate, its scores, and why it was dropped."""
    answer = await reader.aanswer(q)
    return [asdict(hit) for hit in answer.candidates]
