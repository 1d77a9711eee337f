"""The kernels of layers of LSTM cells against the cells one by one, and their gradients against autograd."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.framework import flags
from flowstone.framework.declarations.kernel import CPU
from flowstone.framework.machine.machine_profiles import NEVER
from flowstone.lowering.recurrences import lstm_kernels
from flowstone.lowering.recurrences.lstm_kernels import rows_of, saved_bytes
from flowstone.native.codegen import host

pytestmark = pytest.mark.needs_onednn
STEPS, ROWS, SIZE, UNITS = 5, 3, 4, 6
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True, params=["by oneDNN", "by products"])
def by_products(request: Any, monkeypatch: Any, set_profile: Any) -> bool:
    """Has layers computed in each of the two ways."""
    if by_products := request.param == "by products":
        if host.reason():
            pytest.skip(host.reason())
        monkeypatch.setattr(flags, "NATIVE", 2)
    set_profile(layers_by_products=0 if by_products else NEVER)
    return by_products


def values(*dims: int) -> torch.Tensor:
    return torch.tensor(RNG.standard_normal(dims), dtype=torch.float32)


def arguments() -> list[torch.Tensor]:
    """x of all steps, first output and state, weights and bias."""
    return [
        values(STEPS, ROWS, SIZE),
        values(ROWS, UNITS),
        values(ROWS, UNITS),
        values(SIZE + UNITS, 4 * UNITS),
        values(4 * UNITS),
    ]


def node(shapes: list[tuple[int, ...]], **attributes: Any) -> Any:
    return SimpleNamespace(
        attributes=attributes,
        static_shape=lambda i: shapes[i],
        inputs=[None] * len(shapes),
        dims=shapes.__getitem__,
    )


def called(declaration: Any, node: Any, *inputs: Any) -> Any:
    """What the kernel returns for flat inputs."""
    call = declaration.kernels[CPU](node, None)
    return call(*inputs)


def reference(x: Any, h: Any, c: Any, weights: Any, bias: Any, gates: list[int], forget: float) -> Any:
    """The cell as the module defines it, step by step; outputs, last output and state."""
    outputs = []
    for row in x:
        parts = torch.split(torch.cat([row, h], 1) @ weights + bias, UNITS, 1)
        i, f, candidate, o = (parts[k] for k in gates)
        c = torch.sigmoid(f + forget) * c + torch.sigmoid(i) * torch.tanh(candidate)
        h = torch.sigmoid(o) * torch.tanh(c)
        outputs.append(h)
    return torch.stack(outputs), h, c


def close(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("gates", [[0, 1, 2, 3], [0, 2, 1, 3], [3, 0, 2, 1]])
@pytest.mark.parametrize("forget", [0.0, 1.0])
def test_a_sequence_is_the_cells_one_after_the_other(gates: list[int], forget: float) -> None:
    given = arguments()
    described = node([tuple(x.shape) for x in given], gates=gates, forget_bias=forget, training=False)
    *got, saved = called(lstm_kernels.sequence_op, described, *given)
    close(got, reference(*given, gates, forget))
    assert saved is None  # without gradients nothing is kept


@pytest.mark.parametrize("gates", [[0, 1, 2, 3], [2, 0, 3, 1]])
def test_the_gradient_of_a_sequence_is_autograds(gates: list[int]) -> None:
    given = arguments()
    shapes = [tuple(x.shape) for x in given]
    described = node(shapes, gates=gates, forget_bias=1.0, training=True)
    y, last_h, last_c, saved = called(lstm_kernels.sequence_op, described, *given)
    by_y, by_h, by_c = (values(*x.shape) for x in (y, last_h, last_c))
    leaves = [x.clone().requires_grad_() for x in given]
    outputs = reference(*leaves, gates, 1.0)
    expected = torch.autograd.grad(outputs, leaves, [by_y, by_h, by_c])
    back = node([*shapes[:1], tuple(y.shape)], gates=gates, forget_bias=1.0, units=UNITS, size=SIZE, M=2)
    dy = [by_y - 1.0, torch.ones_like(by_y)]  # two gradients of the same outputs are added
    x, h, c, *_ = given
    got = called(
        lstm_kernels.sequence_gradient_op, back, x, y, last_h, last_c, h, c, saved, by_h, by_c, given[3], *dy
    )
    close(got, expected)


def test_unstacked_steps_are_the_stacked_ones() -> None:
    x, *others = arguments()
    shapes = [tuple(row.shape) for row in x] + [tuple(each.shape) for each in others]
    described = node(shapes, gates=[0, 1, 2, 3], forget_bias=1.0, training=False, N=STEPS)
    *outputs, last_c, _ = called(lstm_kernels.layer_op, described, *x, *others)
    expected, _, state = reference(x, *others, [0, 1, 2, 3], 1.0)
    close([torch.stack(outputs), last_c], [expected, state])


def test_what_a_layer_saves_is_counted(by_products: bool) -> None:
    shapes = [(ROWS, SIZE)] * STEPS + [(ROWS, UNITS)] * 2 + [(SIZE + UNITS, 4 * UNITS), (4 * UNITS,)]
    training = node(shapes, N=STEPS, training=True)
    assert rows_of(training) == STEPS * ROWS
    weights = (SIZE + UNITS) * 4 * UNITS
    expected = STEPS * ROWS * (SIZE + (5 if by_products else 15) * UNITS) + (0 if by_products else weights)
    assert saved_bytes(training) == 4 * expected
    assert saved_bytes(node(shapes, N=STEPS, training=False)) == 0
