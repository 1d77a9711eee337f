"""Reductions in clusters against NumPy in float64: random programs on rows, exactness, NaN and infinities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Result, Step
from flowstone.native.numerics.reductions import reduces

ELEMENT_STEPS: dict[str, tuple[int, Callable[..., Any]]] = {
    "AddV2": (2, np.add),
    "Mul": (2, np.multiply),
    "Sub": (2, np.subtract),
    "Tanh": (1, np.tanh),
    "Abs": (1, np.abs),
}
OVER: dict[str, Callable[..., Any]] = {"Sum": np.sum, "Max": np.max, "Min": np.min}


class Program:
    """A random cluster and, by the side, what NumPy computes of random inputs."""

    def __init__(self, seed: int, rows: tuple[int, ...], columns: int, dtype: str) -> None:
        self.random = np.random.RandomState(seed)
        self.dims, self.split, self.dtype = (*rows, columns), len(rows), dtype
        self.row = (*rows, *[1])
        self.arrays: list[Array] = []
        self.values: list[Any] = []
        for dims in (self.dims, self.row, (columns,), (), self.dims):
            value = np.asarray(self.random.randn(*dims), dtype)
            self.arrays.append(Array(dtype, dims))
            self.values.append(value)
        self.inputs = [torch.from_numpy(np.asarray(x)) for x in self.values]
        self.values = [x.astype(np.float64) for x in self.values]
        self.steps: list[Step] = []
        self.ends: list[int] = []

    def grow(self, count: int) -> None:
        """Adds steps."""
        for _ in range(count):
            name = str(self.random.choice([*ELEMENT_STEPS, *OVER]))
            usable = [i for i in range(len(self.values)) if i not in self.ends]
            if name in ELEMENT_STEPS:
                operands = [int(i) for i in self.random.choice(usable, ELEMENT_STEPS[name][0])]
                self.steps.append(Step(name, tuple(operands), self.dtype))
                self.values.append(ELEMENT_STEPS[name][1](*[self.values[i] for i in operands]))
                continue
            full = [i for i in usable if self.values[i].shape == self.dims]
            i = int(self.random.choice(full))
            over = str(self.random.choice(["row", "row", "columns", "all"]))
            self.reduce(name, i, over)

    def reduce(self, name: str, i: int, over: str) -> None:
        """Adds a reduction."""
        axes = tuple(range(self.split, len(self.dims)) if over == "row" else range(self.split))
        size = math.prod([self.dims[axis] for axis in axes]) if over != "all" else math.prod(self.dims)
        attributes: tuple[tuple[str, Any], ...] = (("over", over),)
        value = OVER[name](self.values[i], None if over == "all" else axes, keepdims=over == "row")
        if name == "Sum":
            attributes, value = (("divisor", size), *attributes), value / size
        if over != "row":
            self.ends.append(len(self.values))
        self.steps.append(Step(name, (i,), self.dtype, attributes))
        self.values.append(value)

    def cluster(self) -> tuple[Cluster, list[Any]]:
        """The cluster, with all ends and some other values as results, and what is expected."""
        first = len(self.arrays)
        steps = range(first, len(self.values))
        outputs = [i for i in steps if i in self.ends or self.random.rand() < 0.3] or [len(self.values) - 1]
        wanted, results = [], []
        for i in outputs:
            value = self.values[i]
            if i not in self.ends and value.shape not in (self.dims, self.row):
                value = np.broadcast_to(value, self.dims)
            wanted.append(value)
            results.append(Result(self.dtype, value.shape))
        cluster = Cluster(
            self.dims, tuple(self.arrays), tuple(self.steps), tuple(outputs), self.split, tuple(results)
        )
        return cluster, wanted


def check(cluster: Cluster, inputs: list[torch.Tensor], wanted: list[Any], tolerance: float) -> None:
    for over in (None, *kernels.overwritable(cluster)):
        kernel = kernels.kernel_of(cluster, lambda *x: pytest.fail("the inputs are as expected"), over)
        given = [x.clone() for x in inputs]
        with torch.inference_mode():
            found = kernel(*given)
        assert over is None or found[0] is given[over]
        for x, y in zip(found, wanted):
            assert tuple(x.shape) == y.shape
            scale = max(1.0, float(np.abs(y).max()))
            np.testing.assert_allclose(
                x.numpy(), y, rtol=0, atol=tolerance * scale, err_msg=f"{cluster}\n{over}"
            )


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_on_rows(seed: int) -> None:
    random = np.random.RandomState(seed)
    columns = int(random.choice([2, 3, 10, 16, 17, 31, 32, 64, 65, 130, 333]))
    rows: tuple[int, ...] = tuple(int(n) for n in random.choice([1, 2, 3, 5, 9], random.randint(1, 3)))
    program = Program(seed, rows, columns, "float32" if seed % 3 else "float64")
    program.grow(int(random.randint(2, 14)))
    cluster, wanted = program.cluster()
    check(cluster, program.inputs, wanted, 2e-5 if program.dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dims", [(1000, 301), (3, 100_003), (1, 250_000), (70_000, 3)])
def test_a_team_reduces_as_one_thread_does(dims: tuple[int, int]) -> None:
    program = Program(1, dims[:1], dims[1], "float32")
    for over in ("all",) if dims[0] < 8 else ("columns", "all", "row"):
        program.reduce("Sum", 0, over)
        program.reduce("Max", 4, over)
    cluster, wanted = program.cluster()
    assert "@join" in kernels.source_of(cluster)
    check(cluster, program.inputs, wanted, 1e-6)


def one(name: str, over: str, x: torch.Tensor, split: int = 1, dtype: str = "") -> torch.Tensor:
    """One reduction by machine code."""
    source = str(x.dtype).removeprefix("torch.")
    dims = tuple(x.shape)
    result = {"row": dims[:split], "columns": dims[split:], "all": ()}[over]
    steps = (Step(name, (0,), source, (("over", over),)),)
    cluster = Cluster(
        dims, (Array(source, dims),), steps, (1,), split if over != "all" else None, (Result(source, result),)
    )
    (found,) = kernels.kernel_of(cluster, lambda *x: pytest.fail("the input is as expected"))(x)
    return found


ATEN: dict[str, Callable[..., torch.Tensor]] = {
    "Sum": lambda x, axis: torch.sum(x, axis, dtype=x.dtype),
    "Prod": lambda x, axis: torch.prod(x, axis, dtype=x.dtype),
    "Max": torch.amax,
    "Min": torch.amin,
    "Any": torch.any,
    "All": torch.all,
}
TYPES = ["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", list(ATEN))
def test_every_type(name: str, dtype: str) -> None:
    if not reduces(name, dtype):
        return
    random = np.random.RandomState(0)
    for dims in ((3, 5), (4, 16), (2, 70)):
        x = torch.from_numpy(np.asarray(random.randint(-100, 100, dims) % 256, dtype))
        if name == "Prod":
            x = torch.from_numpy(np.asarray(random.choice([1, 2, -1], dims), dtype))
        for over, axis in (("row", 1), ("columns", 0)):
            np.testing.assert_array_equal(one(name, over, x), ATEN[name](x, axis))
        np.testing.assert_array_equal(one(name, "all", x), ATEN[name](x.flatten(), 0))


@pytest.mark.parametrize("name", ["Sum", "Prod", "Max", "Min"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "bad", [[math.nan], [math.inf], [-math.inf], [math.inf, -math.inf], [math.nan, math.inf]]
)
def test_nan_and_infinities_are_as_in_aten(name: str, dtype: str, bad: list[float]) -> None:
    if not reduces(name, dtype):
        return
    for columns in (5, 37):
        for place in (0, columns - len(bad)):
            x = torch.ones(4, columns, dtype=getattr(torch, dtype))
            x[1, place : place + len(bad)] = torch.tensor(bad, dtype=x.dtype)
            for over, axis in (("row", 1), ("columns", 0)):
                np.testing.assert_array_equal(one(name, over, x), ATEN[name](x, axis))
            np.testing.assert_array_equal(one(name, "all", x), ATEN[name](x.flatten(), 0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("over", ["row", "columns", "all"])
def test_sums_are_at_least_as_exact_as_those_of_aten(dtype: str, over: str) -> None:
    random = np.random.RandomState(3)
    x = np.asarray(random.randn(700, 1100) * 10.0 ** random.uniform(-3, 3, (700, 1100)), dtype)
    axis = {"row": (1,), "columns": (0,), "all": (0, 1)}[over]
    exact = np.sum(x.astype(np.longdouble), axis)
    ours = one("Sum", over, torch.from_numpy(x)).numpy().astype(np.longdouble)
    aten = torch.sum(torch.from_numpy(x), axis).numpy().astype(np.longdouble)
    assert (
        np.abs(ours - exact).max() <= np.abs(aten - exact).max() + np.finfo(dtype).eps * np.abs(exact).max()
    )


def test_products_of_float16_over_columns_are_rounded_as_by_aten() -> None:
    x = torch.randn(200, 70).half()
    np.testing.assert_array_equal(one("Prod", "columns", x), torch.prod(x, 0))
