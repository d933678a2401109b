"""docs/configuration.md has every key of corpus.yaml, its type and its default, and no other."""

import re
from pathlib import Path

import pytest
import yaml

from chunking_assets import config as configuration
from chunking_assets.chunk_sets.chunker import Chunker, Cleaning, Context, Neighbours
from chunking_assets.chunk_sets.registry import CHUNKERS
from chunking_assets.config import (
    ChunkingSettings,
    ComparisonSettings,
    EmbeddingSettings,
    JudgeSettings,
    StorageSettings,
    StrategySettings,
    _File,
)
from chunking_assets.embedding_models.model import EmbeddingModel
from chunking_assets.embedding_models.openai_model import Limits
from chunking_assets.embedding_models.registry import MODELS
from chunking_assets.errors import CorpusError
from chunking_assets.execution import Claim, Claims, ExecutionSettings
from chunking_assets.live_index.gate import PromotionSettings
from chunking_assets.live_index.maintenance import MaintenanceSettings
from chunking_assets.parsed_elements.limits import Limits as ParsingLimits
from chunking_assets.prices import Price
from chunking_assets.raw_documents.collection import Collection
from chunking_assets.retrieval.bm25 import Bm25Settings
from chunking_assets.retrieval.expand import Expand
from chunking_assets.retrieval.filters import Filters
from chunking_assets.retrieval.profile import RetrievalProfile
from chunking_assets.retrieval.rerank import Rerank
from evals.gold_questions.load import _Evidence, _Question
from evals.ragas_scores.labels import _Label
from evals.retrieval_scores.build import CUTOFFS
from evals.retrieval_scores.registry import METRICS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
EXAMPLE = yaml.safe_load((ROOT / "corpus.yaml").read_text(encoding="utf-8"))

KINDS = {
    kind: model
    for kind, model in {**CHUNKERS, **MODELS}.items()
    if model.__module__.startswith("chunking_assets.")  # tests register models of their own
}
SECTIONS = {
    "The file": _File,
    "`storage`": StorageSettings,
    "`collections`": Collection,
    "`retrieval_profiles`": RetrievalProfile,
    "`bm25`": Bm25Settings,
    "`filters`": Filters,
    "`rerank`": Rerank,
    "`expand`": Expand,
    "`strategies`": StrategySettings,
    "`clean`": Cleaning,
    "`neighbours`": Neighbours,
    "`context`": Context,
    "`parsing`": ParsingLimits,
    "`chunking`": ChunkingSettings,
    "`limits`": Limits,
    "`ragas`": JudgeSettings,
    "`comparison`": ComparisonSettings,
    "`promotion`": PromotionSettings,
    "`embedding`": EmbeddingSettings,
    "`execution`": ExecutionSettings,
    "`ray`": Claims,
    "Claims": Claim,
    "`maintenance`": MaintenanceSettings,
    "`prices`": Price,
    "Question files": _Question,
    "`evidence`": _Evidence,
    "Label files": _Label,
}


def section(heading):
    """What stands under a heading, down to the next of any level."""
    found = re.search(
        rf"^##+ {re.escape(heading)}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
    assert found, f"docs/configuration.md has no section {heading}"
    return found[1]


def documented(heading):
    """Key to (type, default) as the section's table has them."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| .+\S \|$", section(heading), re.MULTILINE)
    keys = [key for key, _, _ in rows]
    assert len(keys) == len(set(keys))
    return {key: (kind, default) for key, kind, default in rows}


def declared(model):
    """Key to (type, default) as the settings have them."""
    schema = model.model_json_schema()
    return {
        key: (type_of(value), default_of(value, key in schema.get("required", [])))
        for key, value in schema["properties"].items()
    }


def type_of(schema):
    if "anyOf" in schema:
        return type_of(next(s for s in schema["anyOf"] if s.get("type") != "null"))
    if "enum" in schema:
        return one_of(schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    match schema.get("type", "object"):
        case "array":
            return f"list of {type_of(schema['items'])}"
        case "boolean":
            return "`true` or `false`"
        case "string":
            return "text"
        case "object":
            return "mapping"
        case number:
            return ", ".join([number, *bounds(schema)])


def bounds(schema):
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if least is not None:
        return [f"at least {least}" if most is None else f"{least} to {most}"]
    if above is not None:
        if most is not None:
            return [f"above {above} and at most {most}"]
        return [f"above {above}" if below is None else f"above {above} and below {below}"]
    return []


def one_of(names):
    *first, last = (f"`{name}`" for name in names)
    return f"{', '.join(first)} or {last}"


def default_of(schema, required):
    if required:
        return "required"
    if "$ref" in schema:
        return "see below"
    match schema.get("default", {} if schema.get("type") == "object" else []):
        case None | "":
            return "none"
        case bool(value):
            return f"`{str(value).lower()}`"
        case list(values) | dict(values):
            return f"`{yaml.safe_dump(values, default_flow_style=True).strip()}`"
        case value:
            return f"`{value}`"


@pytest.mark.parametrize("heading", SECTIONS)
def test_a_section_has_every_key_with_type_and_default_and_no_other(heading):
    assert documented(heading) == declared(SECTIONS[heading])


@pytest.mark.parametrize(
    ("heading", "base", "kinds"),
    [("`chunkers`", Chunker, CHUNKERS), ("`embedding_models`", EmbeddingModel, MODELS)],
)
def test_what_all_kinds_have_is_said_once(heading, base, kinds):
    kind = {"kind": (one_of(k for k in kinds if k in KINDS), "required")}
    assert documented(heading) == kind | declared(base)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_its_own_keys_and_defaults(kind):
    base = Chunker if issubclass(KINDS[kind], Chunker) else EmbeddingModel
    common = declared(base)
    own = {k: v for k, v in declared(KINDS[kind]).items() if common.get(k) != v}
    assert documented(f"`kind: {kind}`") == own
    assert own or "No keys of its own." in section(f"`kind: {kind}`")


def test_every_section_is_of_a_setting_or_known():
    headings = set(re.findall(r"^##+ (.+)$", PAGE, re.MULTILINE))
    kinds = {f"`kind: {kind}`" for kind in KINDS}
    assert headings == {*SECTIONS, *kinds, "`chunkers`", "`embedding_models`", "Environment"}


def test_the_metrics_and_cut_offs_that_may_decide_are_those_that_are_measured():
    row = next(
        line for line in section("`comparison`").splitlines() if line.startswith("| `metric`")
    )
    metrics, cutoffs = row.partition("Metrics:")[2].split("Cut-offs:")
    assert re.findall(r"`(\w+)`", metrics) == list(METRICS)
    assert re.findall(r"`(\w+)`", cutoffs) == list(CUTOFFS)


def test_the_example_of_a_mistake_is_what_is_printed(tmp_path, monkeypatch):
    said = re.search(r"^error: (corpus\.yaml: chunkers\..+)$", PAGE, re.MULTILINE)[1]
    changed = {**EXAMPLE["chunkers"]["recursive-400@1"], "overlap": "10%"}
    content = {**EXAMPLE, "chunkers": {**EXAMPLE["chunkers"], "recursive-400@1": changed}}
    file = tmp_path / "corpus.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        configuration.load(file)
    assert str(caught.value) == said.replace("corpus.yaml", str(file), 1)


def test_the_environment_variables_are_those_the_code_reads():
    page = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", section("Environment")))
    code = "".join(
        file.read_text(encoding="utf-8")
        for package in ("chunking_assets", "evals", "dagster_defs")
        for file in (ROOT / package).rglob("*.py")
    )
    assert page == set(
        re.findall(
            r'"((?:CORPUS|OPENAI)_[A-Z_]+|DAGSTER_HOME|RAY_ADDRESS|DOCLING_ARTIFACTS_PATH)"', code
        )
    )
