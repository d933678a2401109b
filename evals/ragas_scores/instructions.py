"""The language a judge is instructed in: the English of ragas, or a reviewed translation.

ragas can have a model translate its prompts at each run, which makes every run another measurement.
Here a translation is a file that people reviewed and committed; what it says is part of the judge's
name. Questions, answers and passages stay in their own language either way.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from chunking_assets.errors import CorpusError
from chunking_assets.strict_yaml import UnreadableYaml, first_mistake, read_yaml
from evals.ragas_scores.metrics.metric import Metric
from evals.ragas_scores.metrics.registry import METRICS

_PINNED = {
    "question": "q",
    "answer": "a",
    "response": "a",
    "context": "c",
    "statements": ["s"],
}
"""What prompts are filled with to be told apart."""


@dataclass(frozen=True)
class Instructions:
    """Prompts by metric and name in `content` (JSON); those it lacks are in English.

    `language` is the name of the file without its suffix.
    """

    language: str = "en"
    file: str = ""
    content: str = "{}"

    @cached_property
    def prompts(self) -> Mapping[str, Mapping[str, Any]]:
        loaded: dict[str, dict[str, Any]] = json.loads(self.content)
        return loaded


ENGLISH = Instructions()


def read_instructions(file: Path | None) -> Instructions:
    """A translation as `python -m evals.ragas_scores prompts` lays it out; None is English.

    Raises:
        CorpusError: it cannot be read, or translates metrics that do not exist.
    """
    if file is None:
        return ENGLISH
    try:
        content = read_yaml(file)
    except OSError as error:
        raise _mistake(file, "(file)", f"cannot be read ({error.strerror})") from error
    except UnreadableYaml as error:
        raise _mistake(file, error.mistake.key, error.mistake.problem) from error
    if not isinstance(content, dict) or not all(isinstance(c, dict) for c in content.values()):
        raise _mistake(file, "(file)", "is not a mapping of metrics to prompts")
    for name in content:
        if name not in METRICS:
            raise _mistake(file, name, f"is no metric; there are {', '.join(METRICS)}")
    return Instructions(file.stem, str(file), json.dumps(content, ensure_ascii=False))


def instructed(metric: Metric, instructions: Instructions, llm: Any, embeddings: Any) -> Any:
    """The metric of ragas with its prompts in the language of `instructions`.

    Raises:
        CorpusError: the translation lacks a prompt, or is another prompt than the one in English.
    """
    made = metric.of_ragas(llm, embeddings)
    if instructions == ENGLISH:
        return made
    given = instructions.prompts.get(metric.name, {})
    prompts = _prompts(made)
    names = {type(prompt).__name__ for prompt in prompts}
    if names != given.keys():
        key = f"{metric.name}: {', '.join(sorted(names ^ given.keys()))}"
        raise _mistake(instructions.file, key, "is missing or unknown")
    for prompt in prompts:
        name = type(prompt).__name__
        _translate(prompt, given[name], instructions.file, f"{metric.name}: {name}")
    return made


@cache
def prompt_version(name: str, instructions: Instructions = ENGLISH) -> str:
    """12 hex digits of the sha256 of the prompts that a metric sends for fixed inputs."""
    texts = [
        prompt.to_string(prompt.input_model.model_validate(_pinned(prompt.input_model)))
        for prompt in _prompts(instructed(METRICS[name], instructions, *_inert()))
    ]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def english_prompts(metrics: Iterable[str]) -> str:
    """The prompts of these metrics as a file to translate, in YAML."""
    content = {
        name: {
            type(prompt).__name__: {
                "instruction": prompt.instruction,
                "examples": [
                    {"input": given.model_dump(), "output": wanted.model_dump()}
                    for given, wanted in prompt.examples
                ],
            }
            for prompt in _prompts(METRICS[name].of_ragas(*_inert()))
        }
        for name in metrics
    }
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=100)


class _Prompt(BaseModel):
    instruction: str
    examples: list[dict[str, Any]]


def _translate(prompt: Any, entry: object, file: str, key: str) -> None:
    try:
        given = _Prompt.model_validate(entry)
        examples = [
            (
                prompt.input_model.model_validate(example["input"]),
                prompt.output_model.model_validate(example["output"]),
            )
            for example in given.examples
        ]
    except ValidationError as error:
        mistake = first_mistake(error)
        raise _mistake(file, f"{key}: {mistake.key}", mistake.problem) from error
    except KeyError as error:
        raise _mistake(file, f"{key}: examples", f"one has no {error}") from error
    if _shape(examples) != _shape(prompt.examples):
        raise _mistake(file, f"{key}: examples", "have other statements or verdicts than English")
    prompt.instruction, prompt.examples = given.instruction, examples
    if hasattr(prompt, "_all_examples"):  # its own table of examples, by what it is asked for
        prompt._all_examples = {("low", "low"): examples}


def _shape(value: Any) -> Any:
    """Everything but the words: a translation changes those and nothing else."""
    if isinstance(value, BaseModel):
        return _shape(value.model_dump())
    if isinstance(value, dict):
        return {name: _shape(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shape(part) for part in value]
    return "text" if isinstance(value, str) else value


def _prompts(metric: Any) -> list[Any]:
    """The prompts of a metric of ragas, in the order in which it declares them."""
    from ragas.prompt.metrics.base_prompt import BasePrompt

    return [value for value in vars(metric).values() if isinstance(value, BasePrompt)]


def _pinned(model: type[BaseModel]) -> dict[str, Any]:
    return {name: _PINNED[name] for name in model.model_fields if name in _PINNED}


def _inert() -> tuple[Any, Any]:
    """A model and an embedding that satisfy ragas and are never asked."""
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM

    class Inert(InstructorBaseRagasLLM, BaseRagasEmbedding):
        def generate(self, prompt: str, response_model: type[Any]) -> Any:
            raise NotImplementedError

        async def agenerate(self, prompt: str, response_model: type[Any]) -> Any:
            raise NotImplementedError

        def embed_text(self, text: str, **options: Any) -> list[float]:
            raise NotImplementedError

        async def aembed_text(self, text: str, **options: Any) -> list[float]:
            raise NotImplementedError

    inert = Inert()
    return inert, inert


def _mistake(file: object, key: str, problem: str) -> CorpusError:
    return CorpusError(
        f"{file}: {key} {problem}. Translate what `python -m evals.ragas_scores prompts` prints."
    )
