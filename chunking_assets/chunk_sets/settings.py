"""Every setting a recorded chunker version stands for.

A declaration leaves defaults out, so that a later release may add a parameter; whoever asks what
made a chunk wants to see them. A release that changes a default raises the implementation, and
then nothing can be said of what was left out before.
"""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel

from chunking_assets.chunk_sets.registry import chunker_class
from chunking_assets.errors import CorpusError


def all_settings(declared: Mapping[str, Any]) -> dict[str, Any]:
    """A declaration with the defaults it leaves out, in nested ones too; as it is, if its kind is
    not installed or another implementation by now.

    >>> found = all_settings({"kind": "fixed", "implementation": 1, "overlap": 20})
    >>> found["overlap"], found["max_tokens"], found["prefix"]
    (20, 400, 'none')
    """
    try:
        kind = chunker_class(str(declared.get("kind")))
    except CorpusError:
        return dict(declared)
    if declared.get("implementation") != kind.implementation:
        return dict(declared)
    return _with_defaults(kind, declared)


def _with_defaults(model: type[BaseModel], declared: Mapping[str, Any]) -> dict[str, Any]:
    full = dict(declared)
    for name, field in model.model_fields.items():
        given = declared.get(name)
        if name not in declared and not field.is_required():
            full[name] = field.get_default(call_default_factory=True)
        elif isinstance(given, Mapping) and "kind" in given:
            full[name] = all_settings(given)
        elif isinstance(given, Mapping):
            parts = (part for part in get_args(field.annotation) if _is_model(part))
            full[name] = next((_with_defaults(part, given) for part in parts), given)
    return full


def _is_model(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, BaseModel)
