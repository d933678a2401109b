"""A small web service over the live index: `uvicorn --app-dir docs serve_questions:app`.

It serves the workspace CORPUS_HOME and follows promotions by itself. Every thread may use the one
reader; questions that arrive together are answered at the same time.
"""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from chunking_assets.errors import CorpusError
from chunking_assets.live_index.serve import open_live
from chunking_assets.retrieval.filters import Filters
from chunking_assets.workspace import Workspace

reader = open_live(Workspace(Path(os.environ.get("CORPUS_HOME", ".corpus"))))


@asynccontextmanager
async def ready(_: Starlette) -> AsyncIterator[None]:
    """The model is loaded before the first question comes, or the service does not start."""
    await reader.asearch("Is it there?")
    yield


async def search(request: Request) -> JSONResponse:
    """GET /search?q=...&language=...: passages, and milliseconds it took."""
    started = time.perf_counter()
    languages = tuple(request.query_params.getlist("language"))
    try:
        question = request.query_params.get("q", "")
        passages = await reader.asearch(question, Filters(language=languages))
    except CorpusError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    found = [{**passage.metadata(), "text": passage.text} for passage in passages]
    spent = 1000 * (time.perf_counter() - started)
    return JSONResponse({"strategy": reader.strategy, "ms": round(spent, 1), "passages": found})


async def explain(request: Request) -> JSONResponse:
    """GET /explain?q=...: every candidate, its scores, and why it was dropped."""
    try:
        answer = await reader.aanswer(request.query_params.get("q", ""))
    except CorpusError as error:
        return JSONResponse({"error": str(error)}, status_code=400)
    return JSONResponse([asdict(hit) for hit in answer.candidates])


app = Starlette(routes=[Route("/search", search), Route("/explain", explain)], lifespan=ready)
