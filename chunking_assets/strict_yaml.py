"""YAML that people write, read strictly: what is wrong, where, and what to do about it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: the key (or line), the problem, and the cure."""

    key: str
    problem: str
    cure: str


class UnreadableYaml(Exception):
    """The file holds no YAML, or says a name twice."""

    def __init__(self, mistake: Mistake) -> None:
        super().__init__(mistake)
        self.mistake = mistake


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a key said twice instead of silently keeping the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"duplicate name {key.value!r}", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """The content of a YAML file.

    Raises:
        OSError: the file cannot be read.
        UnreadableYaml: it is not YAML, or a mapping says a key twice; names the line.
    """
    try:
        return yaml.load(file.read_bytes(), _UniqueKeys)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "(file)"
        problem = getattr(error, "problem", None) or str(error)
        raise UnreadableYaml(Mistake(where, problem, "Correct the YAML there.")) from error


SEE = "docs/configuration.md says what may stand there."


def first_mistake(error: ValidationError) -> Mistake:
    """The mistake to mend first: a misspelt key is also a missing one, and only it is named."""
    mistakes = error.errors()
    found = next((m for m in mistakes if m["type"] == "extra_forbidden"), mistakes[0])
    key = ".".join(map(str, found["loc"]))
    if found["type"] == "extra_forbidden":
        return Mistake(key, "unknown key", "Remove it or correct its spelling.")
    if found["type"] == "missing":
        return Mistake(key, "is missing", "Add it.")
    given = "" if isinstance(found["input"], dict) else f" (given: {found['input']!r})"
    # `no` is a boolean to YAML, and 12 a number.
    cure = "Put the value in quotes." if found["type"] == "string_type" else "Correct the value."
    if found["type"] == "value_error":  # of our own: it says what may stand there
        return Mistake(key, found["msg"].removeprefix("Value error, "), SEE)
    return Mistake(key, found["msg"] + given, cure)
