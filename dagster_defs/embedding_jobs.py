"""Sensor: collects what the batch API of an embedding model has brought since it was asked.

The run that sent a job ended with it, and nothing it was built from has changed: no condition would
start it again. A finished job does.
"""

from collections.abc import Iterator

import dagster as dg

from chunking_assets.chunk_sets.build import cell
from chunking_assets.config import Config
from chunking_assets.embedding_models.openai_model import OpenAIModel
from chunking_assets.errors import CorpusError
from chunking_assets.keys import digest
from chunking_assets.workspace import Workspace
from dagster_defs.inputs import out_of_date
from dagster_defs.resources import Corpus
from dagster_defs.run_requests import run_requests

EMBEDDINGS = "chunk_embeddings"


@dg.sensor(
    name="embedding_jobs",
    target=dg.AssetSelection.assets(EMBEDDINGS),
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Asks after jobs of the batch API, and builds what waited for those that are done.",
)
def embedding_jobs(context: dg.SensorEvaluationContext, corpus: Corpus) -> dg.SensorResult:
    config, workspace = corpus.config, corpus.workspace
    done: dict[str, list[str]] = {}
    said: list[str] = []
    for name, model in config.embedding_models.items():
        if not isinstance(model, OpenAIModel) or not has_jobs(model, workspace):
            continue
        try:
            finished, under_way = model.embedder(workspace.models).jobs()
        except CorpusError as error:
            said.append(f"{name}: {error}")
            continue
        if finished:
            done[name] = finished
        if under_way:
            said.append(f"{name}: {under_way} jobs are under way")
    requests = list(_requests(context, waiting_cells(config, workspace, set(done)), done))
    quiet = "; ".join(said) or "no job of a batch API is open"
    return dg.SensorResult(run_requests=requests, skip_reason=None if requests else quiet)


def _requests(
    context: dg.SensorEvaluationContext, due: list[str], done: dict[str, list[str]]
) -> Iterator[dg.RunRequest]:
    """Runs over many cells each, once for the jobs they collect."""
    if not due or context.repository_def is None:
        return
    graph = context.repository_def.asset_graph
    for request in run_requests(EMBEDDINGS, due, graph, context.instance):
        once = digest("embedding_jobs", done, request.partition_key, request.tags)
        yield request._replace(run_key=once)


def has_jobs(model: OpenAIModel, workspace: Workspace) -> bool:
    """Known without asking anybody."""
    return any(model.jobs_folder(workspace.models).glob("*.jsonl"))


def waiting_cells(config: Config, workspace: Workspace, models: set[str]) -> list[str]:
    """Cells out of date that are embedded by one of these models."""
    versions = {
        i.chunker_version.name for i in config.index_versions.values() if i.model_name in models
    }
    keys = [cell(version, shard) for version in sorted(versions) for shard in config.shards()]
    return out_of_date(config, workspace, EMBEDDINGS, keys)
