"""Random numbers in programs against those of kernels."""

from __future__ import annotations

import pytest
import torch

from flowstone.native.programs.programs import Builder
from flowstone.ops.randomness import philox
from small_programs import FAILED, run

NEARLY = philox.State(0xFFFF_1234_5678_9ABC, (7 << 64) | 0xFFFF_FFFF_FFFF_FFF0)
"""A state whose lower half is about to wrap."""


@pytest.mark.parametrize("count", [1, 5, 700])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", ["uniform", "normal", "truncated"])
def test_numbers(how: str, dtype: torch.dtype, count: int) -> None:
    kind = str(dtype).removeprefix("torch.")

    def write(builder: Builder, given: int) -> list[int]:
        stream = builder.value("int64", (3,))
        builder.add("Set", [given], None, into=stream)
        drawn = [builder.add("Draw", [stream], (kind, (count,)), how=how, blocks=40) for _ in range(2)]
        return [*drawn, stream]

    first, second, stream = run([philox.stream_of(NEARLY)], write)
    draw = {"uniform": philox.uniform, "normal": philox.normal, "truncated": philox.truncated_normal}[how]
    for found, state in ((first, NEARLY), (second, NEARLY.skipped(40))):
        wanted = draw(state, [count], dtype, torch.device("cpu"))
        torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-7)
    assert philox.counter_of(stream) == NEARLY.skipped(80).counter


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_integers(dtype: torch.dtype) -> None:
    kind = str(dtype).removeprefix("torch.")

    def write(builder: Builder, given: int, low: int, high: int) -> list[int]:
        stream = builder.value("int64", (3,))
        builder.add("Set", [given], None, into=stream)
        return [builder.add("Draw", [stream, low, high], (kind, (90,)), how="integers", blocks=1)]

    stream, low = philox.stream_of(NEARLY), torch.tensor(-4, dtype=dtype)
    found = run([stream, low, torch.tensor(30, dtype=dtype)], write)[0]
    wanted = philox.integers_between(NEARLY, [90], -4, 30, dtype, torch.device("cpu"))
    assert torch.equal(found, wanted)
    assert run([stream, low, low], write) == FAILED


@pytest.mark.parametrize("result", ["int32", "int64"])
def test_choice(result: str) -> None:
    weights, numbers = torch.rand(3, 6, dtype=torch.float64), torch.rand(3, 50, dtype=torch.float64)
    weights[1, :] = 0
    weights[2, 2:5] = 0
    numbers[0, 0] = 0.0

    def write(builder: Builder, a: int, b: int) -> list[int]:
        return [builder.add("Choice", [a, b], (result, (3, 50)), rows=3, classes=6)]

    sums = weights.cumsum(1)
    wanted = torch.searchsorted(sums, numbers * sums[:, -1:], right=True).clamp(max=5)
    found = run([weights, numbers], write)[0]
    assert str(found.dtype) == f"torch.{result}" and torch.equal(found.long(), wanted)
