"""Clusters by machine code against their steps by NumPy: random steps, shapes, broadcasts and tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.native.clusters import kernels
from flowstone.native.clusters.clusters import Array, Cluster, Step

STEPS: dict[str, tuple[int, Callable[..., Any]]] = {
    "AddV2": (2, np.add),
    "Mul": (2, np.multiply),
    "Sub": (2, np.subtract),
    "Maximum": (2, np.maximum),
    "Neg": (1, np.negative),
    "Square": (1, np.square),
    "Abs": (1, np.abs),
    "Tanh": (1, np.tanh),
    "Sigmoid": (1, lambda x: 1 / (1 + np.exp(-x))),
}


def random_cluster(seed: int) -> Cluster:
    random = np.random.RandomState(seed)
    dims = tuple(int(n) for n in random.choice([1, 2, 3, 5, 16, 17, 33], random.randint(0, 4)))
    dtype = str(random.choice(["float32", "float64"]))
    arrays = []
    for _ in range(random.randint(1, 5)):
        keep = dims[random.randint(0, len(dims) + 1) :]
        arrays.append(Array(dtype, tuple(1 if random.rand() < 0.2 else n for n in keep)))
    arrays.append(Array(dtype, dims))
    steps = []
    for i in range(random.randint(1, 12)):
        name = str(random.choice(list(STEPS)))
        operands = [int(j) for j in random.randint(0, len(arrays) + i, STEPS[name][0])]
        steps.append(Step(name, tuple(operands), dtype))
    count = len(arrays)
    outputs = {count + len(steps) - 1, *[count + int(j) for j in random.randint(0, len(steps), 2)]}
    return Cluster(dims, tuple(arrays), tuple(steps), tuple(sorted(outputs)))


def expected(cluster: Cluster, inputs: list[Any]) -> list[Any]:
    values = list(inputs)
    for step in cluster.steps:
        computed = STEPS[step.op][1](*[values[i] for i in step.operands])
        values.append(np.broadcast_to(computed, cluster.dims))
    return [np.broadcast_to(values[i], cluster.dims) for i in cluster.outputs]


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_clusters(first: int) -> None:
    for seed in range(first, first + 10):
        cluster = random_cluster(seed)
        random = np.random.RandomState(seed)
        inputs = [np.asarray(random.randn(*array.dims), array.dtype) for array in cluster.inputs]
        wanted = expected(cluster, inputs)
        tolerance = 3e-6 if cluster.inputs[0].dtype == "float32" else 1e-13
        for over in (None, *kernels.overwritable(cluster)):
            kernel = kernels.kernel_of(cluster, lambda *x: pytest.fail("the inputs are as expected"), over)
            given = [torch.from_numpy(x.copy()) for x in inputs]
            with torch.inference_mode():
                found = kernel(*given)
            assert over is None or found[0] is given[over]
            for x, y in zip(found, wanted):
                np.testing.assert_allclose(x.numpy(), y, rtol=tolerance, atol=tolerance, err_msg=str(cluster))


def scaled(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return ((inputs[0] * inputs[1]) + inputs[0],)


SCALED = Cluster(
    (4, 20),
    (Array("float32", (4, 20)), Array("float32", (20,))),
    (Step("Mul", (0, 1), "float32"), Step("AddV2", (2, 0), "float32")),
    (3,),
)


@pytest.mark.parametrize(
    "x",
    [
        torch.randn(20, 4).t(),
        torch.randn(4, 40)[:, ::2],
        torch.randn(4, 20, dtype=torch.float64),
        torch.randn(3, 20),
    ],
    ids=["transposed", "strided", "another type", "another size"],
)
def test_what_the_code_is_not_for_goes_another_way(x: torch.Tensor) -> None:
    y = torch.randn(20, dtype=x.dtype)
    kernel = kernels.kernel_of(SCALED, scaled)
    np.testing.assert_array_equal(kernel(x, y)[0], scaled(x, y)[0])


def test_errors_of_the_other_way_are_raised() -> None:
    kernel = kernels.kernel_of(SCALED, scaled)
    with pytest.raises(TypeError):
        kernel("text", torch.ones(20))


def test_a_team_shares_large_clusters() -> None:
    for dims in ((1000, 301), (3, 100_003)):
        array = Array("float32", dims)
        steps = (Step("Mul", (0, 1), "float32"), Step("AddV2", (2, 0), "float32"))
        cluster = Cluster(dims, (array, Array("float32", dims[1:])), steps, (3,))
        assert "GOMP_parallel" in kernels.source_of(cluster)
        x, y = torch.randn(dims), torch.randn(dims[1:])
        np.testing.assert_array_equal(kernels.kernel_of(cluster, scaled)(x, y)[0], scaled(x, y)[0])


@pytest.mark.parametrize(("dtype", "each"), [("float32", 1), ("int32", 1), ("float64", 2), ("int64", 2)])
def test_numbers_of_64_bits_are_twice_the_work(dtype: str, each: int) -> None:
    array = Array(dtype, (10, 20))
    compared = Step("Less", (0, 2), "bool")
    steps = (Step("AddV2", (0, 1), dtype), compared)
    assert Cluster((10, 20), (array, array), steps, (3,)).work == 200 * 2 * each


def test_loops_are_merged() -> None:
    array = Array("float32", (4, 5, 6))
    assert Cluster((4, 5, 6), (array, Array("float32", ())), (), ()).loops() == ((120,), ((1,), (0,)))
    assert Cluster((4, 5, 6), (array, Array("float32", (6,))), (), ()).loops() == ((20, 6), ((6, 1), (0, 1)))
    assert Cluster((4, 1, 6), (Array("float32", (4, 1, 1)),), (), ()).loops() == ((4, 6), ((1, 0),))
    assert math.prod(Cluster((), (Array("float32", ()),), (), ()).loops().sizes) == 1


def test_as_text() -> None:
    assert repr(SCALED) == "Mul+AddV2"
    assert str(SCALED).splitlines()[1:] == [
        "%0 = input float32[4,20]",
        "%1 = input float32[20]",
        "%2 = Mul(%0, %1) : float32",
        "%3 = AddV2(%2, %0) : float32",
        "return %3",
    ]
