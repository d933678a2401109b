"""What every asset's page has beside its numbers: its place, its code, what to read, its tags.

Said once, for all assets. Groups are numbered because the UI sorts them by name, and they are to be
read in the order data flows.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from chunking_assets.workspace import Workspace
from dagster_defs.freshness import freshness_policy
from dagster_defs.partitions import CONFIG
from evals.strategy_comparison.meeting_report import report_file

SOURCE_URL_VARIABLE = "CORPUS_SOURCE_URL"
"""Where the repository is shown, up to and with the branch."""

ROOT = Path(__file__).parents[1]
GROUPS = {
    name: f"{number}_{name}"
    for number, name in enumerate(("documents", "chunks", "index", "evaluation", "verdict"), 1)
}
SOURCES = ("raw_documents", "chunker_versions")
READ = {"chunk_sets": "docs/chunking.md", "eval_tables": "docs/analysts.md"}
LAYERS = {"documents": "corpus", "chunks": "corpus", "index": "corpus"}
SPENDS = {"chunk_embeddings": "embedding", "ragas_scores": "chat_model"}
WITH_REPORT = ("strategy_comparison", "live_index", "retrieval_scores", "ragas_scores")


def shown(assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]) -> list[Any]:
    """The assets with what all pages have.

    Code and pages are links if `CORPUS_SOURCE_URL` says where the repository is shown
    (`https://github.com/acme/corpus/blob/main`), and else paths on this machine.
    """
    return [
        _page(asset) if isinstance(asset, dg.AssetSpec) else asset.map_asset_specs(_page)
        for asset in assets
    ]


def _page(spec: dg.AssetSpec) -> dg.AssetSpec:
    name = spec.key.to_user_string()
    group = spec.group_name or "documents"
    tags = {"layer": LAYERS.get(group, "measurement")}
    if name in SPENDS:
        tags["spends"] = SPENDS[name]
    metadata: dict[str, Any] = {
        **spec.metadata,
        "dagster/code_references": _code(
            f"dagster_defs/assets/{'sources' if name in SOURCES else name}.py"
        ),
        "read": _link(READ.get(name, "docs/concepts.md")),
    }
    if name in WITH_REPORT:
        page = report_file(Workspace(CONFIG.home))
        metadata["report"] = dg.MetadataValue.url(page.as_uri())
    return spec.replace_attributes(
        group_name=GROUPS.get(group, group),
        tags={**spec.tags, **tags},
        metadata=metadata,
        **_freshness(name),
    )


def _freshness(name: str) -> dict[str, Any]:
    policy = freshness_policy(CONFIG) if name == "raw_documents" else None
    return {"freshness_policy": policy} if policy else {}


def _code(file: str) -> dg.CodeReferencesMetadataValue:
    url = os.environ.get(SOURCE_URL_VARIABLE)
    reference: dg.UrlCodeReference | dg.LocalFileCodeReference = (
        dg.UrlCodeReference(url=f"{url}/{file}", label=file)
        if url
        else dg.LocalFileCodeReference(file_path=str(ROOT / file), label=file)
    )
    return dg.CodeReferencesMetadataValue(code_references=[reference])


def _link(page: str) -> dg.MetadataValue[Any]:
    url = os.environ.get(SOURCE_URL_VARIABLE)
    return dg.MetadataValue.url(f"{url}/{page}") if url else dg.MetadataValue.path(str(ROOT / page))
