"""Tables that a PDF page rules with lines: where their cells are.

Lines that touch belong together. What they enclose is a table if they make at least two rows and
two columns, and most cells have text: a chart's grid and a diagram's boxes are mostly empty. Where
a line between two cells is missing, they are one cell.
"""

import ctypes
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

TOUCH = 3.0
"""Points between two lines that are drawn as one, or meet."""
LEAST_LENGTH = 6.0
"""Points; what is shorter is a tick, a dash or a letter."""
MOST_LINES = 600
"""A page with more is a drawing."""

_Line = tuple[float, float, float]
"""Where it stands, and from where to where it runs."""


@dataclass(eq=False)
class Grid:
    """`xs` are the edges of its columns from the left, `ys` of its rows from above, in points of
    the page; `right_open` and `below_open` are cells, by row and column, without a line there."""

    xs: list[float]
    ys: list[float]
    right_open: set[tuple[int, int]] = field(default_factory=set)
    below_open: set[tuple[int, int]] = field(default_factory=set)

    @property
    def n_rows(self) -> int:
        return len(self.ys) - 1

    @property
    def n_columns(self) -> int:
        return len(self.xs) - 1

    def place(self, x: float, y: float) -> tuple[int, int] | None:
        """Row and column of the cell around a point; None outside."""
        column = bisect_right(self.xs, x) - 1
        row = bisect_right([-edge for edge in self.ys], -y) - 1
        if not (0 <= column < self.n_columns and 0 <= row < self.n_rows):
            return None
        return self.cell(row, column)

    def cell(self, row: int, column: int) -> tuple[int, int]:
        """The row and column on the upper left of the cells that are one with this one."""
        while (row - 1, column) in self.below_open:
            row -= 1
        while (row, column - 1) in self.right_open:
            column -= 1
        return row, column

    def n_cells(self) -> int:
        places = ((r, c) for r in range(self.n_rows) for c in range(self.n_columns))
        return len({self.cell(*place) for place in places})

    def is_aligned_with(self, other: "Grid") -> bool:
        """Whether the other has the same columns."""
        return self.n_columns == other.n_columns and all(
            abs(a - b) <= 2 * TOUCH for a, b in zip(self.xs, other.xs, strict=True)
        )

    def is_continued_by(self, other: "Grid") -> bool:
        """Whether the other begins where this one ends: rows that lines drawn twice set apart."""
        return self.is_aligned_with(other) and abs(self.ys[-1] - other.ys[0]) <= 2 * TOUCH

    def with_below(self, other: "Grid") -> "Grid":
        return Grid(
            self.xs,
            [*self.ys, *other.ys[1:]],
            self.right_open | {(row + self.n_rows, column) for row, column in other.right_open},
            self.below_open | {(row + self.n_rows, column) for row, column in other.below_open},
        )

    def cuts(self, left: float, right: float, y: float) -> bool:
        """Whether a line of it goes through what reaches from `left` to `right`."""
        row = bisect_right([-edge for edge in self.ys], -y) - 1
        return any(
            left + TOUCH < x < right - TOUCH and (row, column) not in self.right_open
            for column, x in enumerate(self.xs[1:-1])
        )


def grids(page: Any) -> list[Grid]:
    """The grids of lines on a page of pypdfium2 that stands upright."""
    across, down = [], []
    for x0, y0, x1, y1 in _segments(page):
        if abs(y1 - y0) <= TOUCH / 2 and abs(x1 - x0) >= LEAST_LENGTH:
            across.append(((y0 + y1) / 2, min(x0, x1), max(x0, x1)))
        elif abs(x1 - x0) <= TOUCH / 2 and abs(y1 - y0) >= LEAST_LENGTH:
            down.append(((x0 + x1) / 2, min(y0, y1), max(y0, y1)))
        if len(across) + len(down) > MOST_LINES:
            return []
    found: list[Grid] = []
    parts = (_grid(lines, posts) for lines, posts in _together(across, down))
    for grid in sorted(parts, key=lambda grid: (grid.xs[0], -grid.ys[0])):
        if found and found[-1].is_continued_by(grid):
            found[-1] = found[-1].with_below(grid)
        else:
            found.append(grid)
    return [grid for grid in found if grid.n_rows > 1 and grid.n_columns > 1]


def _segments(page: Any) -> Iterator[tuple[float, float, float, float]]:
    """Straight lines of the page's paths; what is inside of forms has places of its own."""
    from pypdfium2 import raw

    x, y, matrix = ctypes.c_float(), ctypes.c_float(), raw.FS_MATRIX()
    for thing in page.get_objects(filter=[raw.FPDF_PAGEOBJ_PATH], max_depth=1):
        n_points = raw.FPDFPath_CountSegments(thing.raw)
        if not 2 <= n_points <= 2 * MOST_LINES:
            continue
        raw.FPDFPageObj_GetMatrix(thing.raw, ctypes.byref(matrix))
        before: tuple[float, float] | None = None
        opening: tuple[float, float] | None = None
        for number in range(n_points):
            segment = raw.FPDFPath_GetPathSegment(thing.raw, number)
            raw.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
            point = (
                matrix.a * x.value + matrix.c * y.value + matrix.e,
                matrix.b * x.value + matrix.d * y.value + matrix.f,
            )
            kind = raw.FPDFPathSegment_GetType(segment)
            if kind == raw.FPDF_SEGMENT_LINETO and before is not None:
                yield (*before, *point)
            if kind == raw.FPDF_SEGMENT_MOVETO:
                opening = point
            if raw.FPDFPathSegment_GetClose(segment) and opening is not None:
                yield (*point, *opening)
            before = point


def _together(
    across: Sequence[_Line], down: Sequence[_Line]
) -> Iterator[tuple[list[_Line], list[_Line]]]:
    """Lines that cross or touch each other, directly or by others."""
    crossing: dict[int, list[int]] = {}
    for number, (y, left, right) in enumerate(across):
        for other, (x, low, high) in enumerate(down, len(across)):
            if left - TOUCH <= x <= right + TOUCH and low - TOUCH <= y <= high + TOUCH:
                crossing.setdefault(number, []).append(other)
                crossing.setdefault(other, []).append(number)
    lines, seen = [*across, *down], set[int]()
    for start in crossing:
        if start in seen:
            continue
        rest, group = [start], []
        seen.add(start)
        while rest:
            number = rest.pop()
            group.append(number)
            new = [other for other in crossing[number] if other not in seen]
            seen.update(new)
            rest += new
        yield (
            [lines[number] for number in group if number < len(across)],
            [lines[number] for number in group if number >= len(across)],
        )


def _grid(across: Sequence[_Line], down: Sequence[_Line]) -> Grid:
    """A table may be open at its sides: then its lines end where its cells do."""
    xs = _edges([x for x, _, _ in down], [end for _, *ends in across for end in ends])
    ys = _edges([y for y, _, _ in across], [end for _, *ends in down for end in ends])[::-1]
    grid = Grid(xs, ys)
    for row, (above, below) in enumerate(pairwise(ys)):
        middle_y = (above + below) / 2
        for column, (left, right) in enumerate(pairwise(xs)):
            middle_x = (left + right) / 2
            if column + 2 < len(xs) and not _is_ruled(down, right, middle_y):
                grid.right_open.add((row, column))
            if row + 2 < len(ys) and not _is_ruled(across, below, middle_x):
                grid.below_open.add((row, column))
    return grid


def _edges(places: Sequence[float], ends: Sequence[float]) -> list[float]:
    """Places in order, those that touch as one; and the outermost ends, if they lie further out."""
    edges: list[float] = []
    for place in sorted(places):
        if not edges or place - edges[-1] > TOUCH:
            edges.append(place)
    outer = [min(ends)] if min(ends) < edges[0] - 2 * TOUCH else []
    return [*outer, *edges, *([max(ends)] if max(ends) > edges[-1] + 2 * TOUCH else [])]


def _is_ruled(lines: Sequence[_Line], place: float, at: float) -> bool:
    return any(abs(line - place) <= TOUCH and start <= at <= end for line, start, end in lines)
