"""What cells claim of a cluster: by model and by version, and only of what is declared."""

import pytest
from small_corpus import write_corpus

from chunking_assets import config as configuration
from chunking_assets.errors import ConfigError
from chunking_assets.execution import Claim


def load(root, **resources):
    return configuration.load(write_corpus(root, {}, execution={"ray": resources}))


def test_a_task_claims_the_most_that_one_of_its_version_and_models_does(tmp_path):
    claims = load(
        tmp_path,
        models={"hash": {"num_cpus": 2, "memory_gb": 1, "resources": {"embedder": 1}}},
        versions={"fixed-20@1": {"num_cpus": 4, "num_gpus": 0.5, "resources": {"embedder": 2}}},
    ).execution.ray
    assert claims.of(["fixed-20@1"], ["hash"]) == Claim(
        num_cpus=4, num_gpus=0.5, memory_gb=1, resources={"embedder": 2}
    )
    assert claims.of(["recursive-20@1"], ["hash"]) == Claim(
        num_cpus=2, memory_gb=1, resources={"embedder": 1}
    )
    assert claims.of(["recursive-20@1"], []) == Claim(num_cpus=1)


def test_a_claim_of_no_cpu_is_one(tmp_path):
    claims = load(tmp_path, models={"hash": {"num_cpus": 0}}).execution.ray
    assert claims.of(["fixed-20@1"], ["hash"]) == Claim(num_cpus=0)


@pytest.mark.parametrize(
    ("resources", "key"),
    [
        (
            {"models": {"hush": {"num_cpus": 1}}},
            "execution.ray.models: unknown embedding",
        ),
        ({"versions": {"fixed-20@2": {}}}, "execution.ray.versions: unknown chunker"),
        (
            {"models": {"hash": {"cpus": 1}}},
            "execution.ray.models.hash.cpus: unknown key",
        ),
        ({"models": {"hash": {"num_gpus": -1}}}, "execution.ray.models.hash.num_gpus"),
    ],
)
def test_a_claim_that_cannot_be_meant_is_named(tmp_path, resources, key):
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, **resources)
    assert key in str(refused.value)
