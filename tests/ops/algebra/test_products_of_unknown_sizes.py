"""Products whose sizes only the step knows: by the kernel that suits them, and the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import NEVER
from flowstone.ops.algebra import matrices


@pytest.fixture(params=[True, False])
def by_onednn(set_profile: Any, request: pytest.FixtureRequest) -> bool:
    """Whether oneDNN's kernels are taken for the faster ones."""
    if not request.param:
        set_profile(product_by_onednn=NEVER)
    return request.param


@pytest.mark.needs_onednn
@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize("transposed_b", [False, True])
def test_all_arrangements_of_all_sizes(by_onednn, transposed_a, transposed_b):
    a, b = tf.placeholder(tf.float32, [None, None]), tf.placeholder(tf.float32, [None, None])
    bias = tf.placeholder(tf.float32, [None])
    product = tf.matmul(a, b, transposed_a, transposed_b)
    results = [product, tf.nn.relu(tf.matmul(a, b, transposed_a, transposed_b) + bias), product + product]
    numbers = np.random.default_rng(1)
    with tf.Session() as s:
        run = s.make_callable(results, [a, b, bias])
        for rows, inner, columns in [
            (1, 1, 1), (2, 3, 4), (0, 3, 4), (3, 0, 4), (100, 40, 8), (70, 200, 90), (1, 900, 900),
            (40, 300, 300), (500, 600, 8), (1000, 520, 4), (64, 64, 600),
        ]:  # fmt: skip
            x = numbers.standard_normal((rows, inner), "f")
            y = numbers.standard_normal((inner, columns), "f")
            z = numbers.standard_normal(columns, "f")
            got = run(x.T.copy() if transposed_a else x, y.T.copy() if transposed_b else y, z)
            wanted = x @ y, np.maximum(x @ y + z, 0), 2 * (x @ y)
            for one, other in zip(got, wanted):
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
        with pytest.raises(tf.errors.InvalidArgumentError, match="node MatMul"):
            run(np.ones((80, 90)), np.ones((110, 130)), np.ones(130))


@pytest.mark.needs_onednn
def test_the_kernel_is_chosen_as_for_known_sizes():
    product = matrices._chosen_in_step(machine.current(), False)
    with torch.inference_mode(), torch.profiler.profile() as profile:
        product(torch.ones(100, 200), torch.ones(200, 300))
        product(torch.ones(10, 20), torch.ones(20, 30))
    calls = [event.name for event in profile.events()]
    assert calls.count("mkldnn::_linear_pointwise") == 1 and calls.count("aten::mm") == 1


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_columns_by_rows_of_unknown_batches(adjoint_a, adjoint_b):
    """Products that add up nothing are multiplied element by element, and broadcast as products do."""
    a = tf.placeholder(tf.float32, [None, None, 1, 3] if adjoint_a else [None, None, 3, 1])
    b = tf.placeholder(tf.float32, [None, 4, 1] if adjoint_b else [None, 1, 4])
    product = tf.matmul(a, b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    numbers = np.random.default_rng(1)
    with tf.Session() as s:
        for batch, other in [((2, 5), 5), ((2, 1), 5), ((3, 5), 1), ((0, 5), 5)]:
            x, y = numbers.standard_normal((*batch, 3, 1), "f"), numbers.standard_normal((other, 1, 4), "f")
            feeds = {a: x.swapaxes(-1, -2) if adjoint_a else x, b: y.swapaxes(-1, -2) if adjoint_b else y}
            np.testing.assert_array_equal(s.run(product, feeds), x @ y)
        with pytest.raises(tf.errors.InvalidArgumentError):
            shapes = {
                a: (2, 3, 1, 3) if adjoint_a else (2, 3, 3, 1),
                b: (2, 4, 1) if adjoint_b else (2, 1, 4),
            }
            s.run(product, {key: np.ones(shape) for key, shape in shapes.items()})
