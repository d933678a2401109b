"""docs/graph.svg shows the assets of the definitions, and nothing else."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = Path(__file__).parents[2] / "docs" / "graph.svg"


@pytest.fixture(scope="module")
def picture():
    return ElementTree.parse(PICTURE).getroot()


@pytest.fixture(scope="module")
def assets():
    """Name to (partitions, dependencies, built or reported) of every asset."""
    from dagster_defs.definitions import defs
    from dagster_defs.partitions import cells, chunker_versions, corpus_shards

    parts = {
        None: "whole",
        corpus_shards: "per shard",
        chunker_versions: "per version",
        cells: "per shard and version",
    }
    return {
        node.key.to_user_string(): (
            parts[node.partitions_def],
            {parent.to_user_string() for parent in node.parent_keys},
            node.is_materializable,
        )
        for node in defs.resolve_asset_graph().asset_nodes
    }


def boxes(picture):
    for group in picture.iter(f"{SVG}g"):
        name, parts = (text.text for text in group.iter(f"{SVG}text"))
        yield name, parts, group.get("class").split()


def test_a_box_is_an_asset_with_its_partitions_and_an_asset_is_a_box(picture, assets):
    assert sorted((name, parts) for name, parts, _ in boxes(picture)) == sorted(
        (name, parts) for name, (parts, _, _) in assets.items()
    )


def test_an_arrow_is_a_dependency_and_a_dependency_is_an_arrow(picture, assets):
    arrows = [p.get("id") for p in picture.iter(f"{SVG}path") if p.get("class") == "dep"]
    assert sorted(arrows) == sorted(
        f"{parent}--{name}" for name, (_, parents, _) in assets.items() for parent in parents
    )


def test_what_is_only_reported_is_dashed(picture, assets):
    dashed = {name for name, _, classes in boxes(picture) if "external" in classes}
    assert dashed == {name for name, (_, _, is_built) in assets.items() if not is_built}
