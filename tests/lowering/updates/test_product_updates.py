"""A product that goes into a variable: in blocks of rows where no cache holds it, and by which kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.machine import machine
from flowstone.framework.machine.machine_profiles import NEVER

RNG = np.random.default_rng(11)


def values(*dims: int) -> Any:
    return RNG.standard_normal(dims).astype("f")


@pytest.mark.needs_onednn
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_a_block_of_rows_at_a_time(set_profile, transposed) -> None:
    """As a product that no cache holds: here of 70 rows, 32 and 32 and 6."""
    set_profile(all_caches=1, core_cache=1)
    start = values(70, 40)
    w = tf.get_variable("w", initializer=start)
    a = tf.placeholder(tf.float32, (20, 70) if transposed[0] else (70, 20))
    b = tf.placeholder(tf.float32, (40, 20) if transposed[1] else (20, 40))
    product = tf.matmul(a, b, *transposed)
    step = tf.train.GradientDescentOptimizer(0.25).apply_gradients([(product, w)])
    feed = {a: values(*a.shape.as_list()), b: values(*b.shape.as_list())}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert "_ApplyProduct" in session.explain(step, feed)
        session.run(step, feed)
        np.testing.assert_allclose(session.run(w), start - 0.25 * session.run(product, feed), atol=1e-5)


@pytest.mark.needs_onednn
@pytest.mark.parametrize(
    ("sizes", "rows"),
    [
        ((9216, 64, 4096), 256),
        ((9216, 16, 4096), 0),  # BLAS accumulates as fast
        ((1300, 1000, 2600), 0),  # the cache holds the product
    ],
)
def test_only_what_no_cache_holds_is_made_in_blocks(set_profile, sizes, rows) -> None:
    assert machine.current().rows_of_a_block(*sizes) == rows
    set_profile(product_by_onednn=NEVER)
    assert machine.current().rows_of_a_block(*sizes) == 0


@pytest.mark.needs_onednn
@pytest.mark.parametrize(
    ("sizes", "narrow"),
    [
        ((784, 100, 10), True),
        ((20_000, 1000, 10), True),  # however large
        ((784, 16, 10), False),  # BLAS is quick about few terms
        ((784, 512, 2), False),  # … and few columns
        ((784, 100, 64), False),
    ],
)
def test_which_narrow_gradients_onednn_makes(set_profile, sizes, narrow) -> None:
    assert machine.current().adds_narrow_products(*sizes) == narrow
    set_profile(product_by_onednn=NEVER)
    assert not machine.current().adds_narrow_products(*sizes)
