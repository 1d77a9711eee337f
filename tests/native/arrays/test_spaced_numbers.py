"""Numbers at equal distances by machine code, beside ATen's and NumPy's of float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.arrays import spaced_numbers
from flowstone.native.codegen import host

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
COUNTS = [2, 3, 7, 8, 9, 16, 17, 31, 1000, 16_385, 250_000, 250_007]  # the last two for a team
ENDS = [(-1.0, 2.0), (3.0, -9.0), (5.0, 5.001), (-1e10, 3.0), (4.0, 4.0)]


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is there when it is asked for."""
    monkeypatch.setattr(flags, "NATIVE", 2)


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize(
    ("dtype", "lanes"), [("float32", 4), ("float32", 16), ("float64", 2), ("float64", 8)]
)
def test_the_text_is_valid(monkeypatch, team, dtype, lanes) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = spaced_numbers.spaced_numbers_code(dtype, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"space"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("ends", ENDS)
def test_numbers_are_those_of_aten(ends, count, dtype) -> None:
    code = spaced_numbers.spaced_numbers(dtype)
    assert code is not None
    found, wanted = code(*ends, count), np.linspace(*ends, count)
    assert found.dtype is dtype and found.shape == (count,)
    rounding = 2 * torch.finfo(dtype).eps * max(map(abs, ends))
    np.testing.assert_allclose(found.double().numpy(), wanted, rtol=0, atol=rounding)
    np.testing.assert_allclose(found, torch.linspace(*ends, count, dtype=dtype), rtol=0, atol=rounding)
    assert [found[0].item(), found[-1].item()] == torch.tensor(ends, dtype=dtype).tolist()
    steps = found.diff()
    assert bool((steps >= 0).all() if ends[1] >= ends[0] else (steps <= 0).all())


@pytest.mark.parametrize("ends", [(np.nan, 1.0), (0.0, np.inf), (-np.inf, 0.0), (np.inf, np.inf)])
def test_ends_that_are_not_finite(ends) -> None:
    code = spaced_numbers.spaced_numbers(torch.float32)
    assert code is not None
    np.testing.assert_array_equal(code(*ends, 100), torch.linspace(*ends, 100))


@pytest.mark.parametrize(("count", "calls"), [(999, 0), (1000, 1)])
def test_the_op_has_many_numbers_from_it(monkeypatch, set_profile, count, calls) -> None:
    set_profile(native_framed=1000)
    called, call = [], spaced_numbers.SpacedNumbers.__call__
    monkeypatch.setattr(spaced_numbers.SpacedNumbers, "__call__", lambda *a: called.append(0) or call(*a))
    start = tf.placeholder(tf.float32, [])
    with tf.Session() as session:
        found = session.run(tf.lin_space(start, 8.0, count), {start: -3.0})
    assert len(called) == calls
    np.testing.assert_allclose(found, np.linspace(-3, 8, count), rtol=0, atol=2e-6)


def test_other_types_and_no_tier(monkeypatch) -> None:
    assert spaced_numbers.spaced_numbers(torch.bfloat16) is None
    monkeypatch.setattr(flags, "NATIVE", 0)
    assert spaced_numbers.spaced_numbers(torch.float32) is None
