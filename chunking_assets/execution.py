"""`execution:` of corpus.yaml: what the build of a cell claims of a cluster.

A claim is a word to Ray, which starts a task where so much is free. Nothing about the results
depends on it, and without Ray nothing reads it.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Amount = Annotated[float, Field(ge=0, le=1_000_000)]


class Claim(BaseModel):
    """What a task needs: CPUs, GPUs, GiB of memory, and resources that nodes were given by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    num_cpus: Amount | None = None
    num_gpus: Amount | None = None
    memory_gb: Amount | None = None
    resources: Mapping[str, Amount] = Field(default_factory=dict)


class Claims(BaseModel):
    """The claims of embedding models and of chunker versions, by their names."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    models: Mapping[str, Claim] = Field(default_factory=dict)
    versions: Mapping[str, Claim] = Field(default_factory=dict)

    def of(self, versions: Iterable[str], models: Iterable[str]) -> Claim:
        """What a task for these versions and models claims: of everything the most that one does.

        A task works on one after the other. Without any claim it is one CPU.

        >>> claims = Claims(models={"e5": Claim(num_cpus=2)}, versions={"a@1": Claim(num_gpus=0.5)})
        >>> claims.of(["a@1"], ["e5"])
        Claim(num_cpus=2.0, num_gpus=0.5, memory_gb=None, resources={})
        >>> claims.of(["b@1"], [])
        Claim(num_cpus=1.0, num_gpus=None, memory_gb=None, resources={})
        """
        found = [self.versions[v] for v in versions if v in self.versions]
        found += [self.models[m] for m in models if m in self.models]

        def most(amounts: Iterable[float | None]) -> float | None:
            return max((amount for amount in amounts if amount is not None), default=None)

        cpus = most(claim.num_cpus for claim in found)
        named = {name for claim in found for name in claim.resources}
        return Claim(
            num_cpus=1 if cpus is None else cpus,
            num_gpus=most(claim.num_gpus for claim in found),
            memory_gb=most(claim.memory_gb for claim in found),
            resources={
                name: max(claim.resources.get(name, 0) for claim in found) for name in sorted(named)
            },
        )


class ExecutionSettings(BaseModel):
    """`execution:`: what builds claim of where they run. Changes nothing about the results.

    `ray` is read where `CORPUS_EXECUTOR` is `ray`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    ray: Claims = Claims()
