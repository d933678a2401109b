"""Kinds of the product's own, and beside them those that packages of anyone's add by entry point.

The name of an entry point is the kind, what it points at a class. It is imported when corpus.yaml
first names it, so that an installed package costs nothing and a broken one is named.
"""

from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from chunking_assets.errors import CorpusError

T = TypeVar("T")


class Kinds(Generic[T]):
    """The subclasses of `base` by kind: `own`, and those of the entry point group `group`.

    A class says `kind = "its kind"` and has the methods `required` itself.
    """

    def __init__(
        self, base: type[T], own: Mapping[str, type[T]], group: str, required: tuple[str, ...]
    ) -> None:
        self.base, self.own, self.group, self.required = base, own, group, required

    def names(self) -> list[str]:
        """Every kind corpus.yaml may name, the product's own first."""
        return [*self.own, *sorted(self.offered)]

    def find(self, kind: str) -> type[T]:
        """The class of a kind.

        Raises:
            CorpusError: there is none of that kind, or the package that offers it is broken.
        """
        if kind in self.own:
            return self.own[kind]
        offered = self.offered.get(kind)
        if offered is None:
            raise CorpusError(f"unknown kind {kind!r}. Choose one of: {', '.join(self.names())}.")
        try:
            found = offered.load()
        except Exception as error:  # whatever a package of anyone's raises at its import
            raise CorpusError(
                f"kind {kind!r} of {offered.value} cannot be loaded "
                f"({type(error).__name__}: {error}). Repair or remove that package."
            ) from error
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise _wrong(offered, f"is not a subclass of {self.base.__name__}")
        if getattr(found, "kind", None) != kind:
            raise _wrong(offered, f"does not say kind = {kind!r}")
        for method in self.required:
            if getattr(found, method) is getattr(self.base, method):
                raise _wrong(offered, f"has no method {method}")
        return found

    def package_of(self, kind: str) -> str | None:
        """The package that offers a kind, with its release; None if it is no entry point."""
        offered = self.offered.get(kind)
        return f"{offered.dist.name} {offered.dist.version}" if offered and offered.dist else None

    @cached_property
    def offered(self) -> dict[str, EntryPoint]:
        """
        Raises:
            CorpusError: two packages offer one kind, or one a kind of the product's own.
        """
        found: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            if point.name in self.own or found.get(point.name, point).value != point.value:
                raise CorpusError(
                    f"kind {point.name!r} is offered twice, once by {point.value}. "
                    "Remove one package."
                )
            found[point.name] = point
        return found


def _wrong(offered: EntryPoint, problem: str) -> CorpusError:
    return CorpusError(f"kind {offered.name!r}: {offered.value} {problem}. Correct that package.")
