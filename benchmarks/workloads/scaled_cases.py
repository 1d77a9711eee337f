"""What the sweep of ops measures: a case of each op's own table, with larger shapes.

`subjects(bytes)` gives one case an op: the first of its table without strings that is no error, in float32
if there is one; `subjects(bytes, dtype)` the first of that element type alone. Its shapes grow until the
largest input has about so many bytes: all sizes by the same factor where that fits, or else the first ones
(images, batches), or else all but these. Updates of rows get many rows. Ops whose shapes do not grow
together, or whose values decide, have inputs of their own in `own_cases`.
Equal in every process.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "ops"))

from indexed_cases import INDEXED
from own_cases import DRAWN, OWN, Draw, Held

import op_cases
from op_cases import Case, Listed, Spec

BY_BATCH = {"convolution", "neural_net", "images"}  # families whose windows stay as they are
Scale = Callable[[tuple[int, ...]], tuple[int, ...]]
WITH_STATE = {"stateful", "updates"}
WITHOUT = {"candidate_sampling", "debugging"}  # random values by lists of labels, and copies for a debugger
REFUSED = {  # in graphs as new as these
    "AdjustContrast", "BatchNormWithGlobalNormalization", "BatchNormWithGlobalNormalizationGrad",
    "Conv3DBackpropFilter", "Conv3DBackpropInput", "RandomCrop",
}  # fmt: skip
MADE = OWN | INDEXED
WIDTH = 64  # of the rows of updated variables
Inputs = tuple[list[Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Subject:
    """A line of the sweep; each of `ways` makes inputs (arrays, `Held`, lists of them) and attributes."""

    name: str
    op: str
    ways: list[Callable[[], Inputs]]


def subjects(size: int, dtype: str = "") -> Iterator[Subject]:
    """One a declared op of the tables, in their order, and then the other lines of `own_cases`; of an
    element type, those of the tables."""
    done: set[str] = {*REFUSED, "PlaceholderWithDefault"}
    for family in op_cases.families():
        if family in WITHOUT:
            continue
        for one in sorted(op_cases.load(family), key=lambda case: case.dtype != "float32"):
            if one.op in done or one.error or not one.values or not _is_plain(one):
                continue
            specs = list(_flat(one.specs))
            is_wanted = one.dtype == dtype if dtype else one.op not in MADE
            if not is_wanted or not any(s.kind != "literal" and math.prod(s.shape) > 1 for s in specs):
                continue
            done.add(one.op)
            yield Subject(one.op, one.op, _ways(family, specs, one, size))
    for op, lines in MADE.items() if not dtype else ():
        for suffix, make in lines if isinstance(lines, list) else [("", lines)]:
            way = functools.partial(_own, make, op, size)
            yield Subject(f"{op} {suffix}".strip(), op, [way])


def _own(make: Callable[[Draw], Inputs], op: str, size: int) -> Inputs:
    return make(Draw(op, size))


def _ways(family: str, specs: list[Spec], one: Case, size: int) -> list[Callable[[], Inputs]]:
    if family in WITH_STATE and any(s.role != "tensor" for s in specs):
        return [functools.partial(_by_rows, specs, one, size)]
    ways = (_by_batch, _by_all) if family in BY_BATCH else (_by_all, _by_batch, _by_rest)
    return [functools.partial(_inputs_by, way, specs, one, size) for way in ways]


def _inputs_by(way: Callable[..., Scale], specs: list[Spec], one: Case, size: int) -> Inputs:
    return _inputs(one, way(specs, one, size)), one.attributes


def _by_rows(specs: list[Spec], one: Case, size: int) -> Inputs:
    """Variables of many rows; where an input tells which rows or elements change, it tells half of them."""
    rows = max(2, size // (4 * WIDTH))
    draw = Draw(one.op, size)
    held = next(s for s in specs if s.role != "tensor").shape

    def array(spec: Spec) -> Any:
        dtype = spec.dtype_in(one.dtype)
        drawn = dataclasses.replace(spec, shape=(min(rows * WIDTH, DRAWN),))
        if spec.role != "tensor" or spec.shape == held != ():
            shape: tuple[int, ...] = (rows, WIDTH) if len(held) > 1 else (rows * WIDTH,) if held else ()
        elif "int" in dtype and spec.shape and spec.kind == "literal":
            chosen = draw.permutation(rows)[: rows // 2].astype(dtype)
            return chosen if len(spec.shape) == 1 else np.stack([chosen, chosen % WIDTH], 1)
        elif spec.shape:
            shape = (rows // 2, WIDTH)[: len(spec.shape)]
        else:
            return spec.draw(one.dtype, one.op)
        kind = dataclasses.replace(drawn, kind="positive") if spec.kind == "literal" else drawn
        value = spec.draw(one.dtype, one.op) if not shape else np.resize(kind.draw(one.dtype, one.op), shape)
        return value if spec.role == "tensor" else Held(value, dtype, spec.role)

    return [array(spec) for spec in specs], one.attributes


def _flat(specs: Any) -> Iterator[Spec]:
    for spec in specs:
        if isinstance(spec, Listed):
            yield from spec
        else:
            yield spec


def _is_plain(one: Case) -> bool:
    specs = list(_flat(one.specs))
    return all(s.dtype_in(one.dtype) != "string" for s in specs)


def _largest(specs: list[Spec], one: Case) -> int:
    """The bytes of the largest input."""
    drawn = [s for s in specs if s.kind != "literal"]
    return max(math.prod(s.shape) * op_cases.NUMPY_DTYPES[s.dtype_in(one.dtype)].itemsize for s in drawn)


def _by_all(specs: list[Spec], one: Case, size: int) -> Scale:
    """All sizes above 1 by the same factor."""
    return _grown(specs, one, size, lambda n, i: n > 1)


def _by_rest(specs: list[Spec], one: Case, size: int) -> Scale:
    """All sizes but the first by the same factor."""
    return _grown(specs, one, size, lambda n, i: i > 0)


def _grown(specs: list[Spec], one: Case, size: int, grows: Callable[[int, int], bool]) -> Scale:
    def scale(factor: int) -> Scale:
        return lambda shape: tuple(n * factor if grows(n, i) else n for i, n in enumerate(shape))

    factor = 1
    while factor < size and _largest([_scaled(s, scale(factor + 1)) for s in specs], one) <= size:
        factor += max(1, factor // 16)
    return scale(factor)


def _by_batch(specs: list[Spec], one: Case, size: int) -> Scale:
    """The first size of the first input, and those that equal it in the first place."""
    first = next(s.shape[0] for s in specs if s.kind != "literal" and s.shape)
    factor = max(1, size // max(1, _largest([s for s in specs if s.shape[:1] == (first,)], one)))
    return lambda shape: (shape[0] * factor, *shape[1:]) if shape[:1] == (first,) else shape


def _scaled(spec: Spec, scale: Scale) -> Spec:
    return spec if spec.kind == "literal" else dataclasses.replace(spec, shape=scale(spec.shape))


def _inputs(one: Case, scale: Scale) -> list[Any]:
    def array(spec: Spec) -> Any:
        shape = _scaled(spec, scale).shape
        count = math.prod(shape)
        few = spec if spec.kind == "literal" else dataclasses.replace(spec, shape=(min(count, DRAWN),))
        drawn = few.draw(one.dtype, f"{one.op}/{zlib.crc32(repr(spec).encode())}")
        return drawn if spec.kind == "literal" else np.resize(drawn, shape)

    return [[array(s) for s in spec] if isinstance(spec, Listed) else array(spec) for spec in one.specs]
