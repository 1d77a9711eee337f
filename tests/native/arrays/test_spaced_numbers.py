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
    assert spaced_numbers.stepped_numbers(torch.int32) is None


# ---- by a step

_INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize(("kind", "lanes"), [("i8", 64), ("i32", 4), ("i64", 8), ("float", 4), ("double", 8)])
def test_the_text_of_steps_is_valid(kind, lanes) -> None:
    assert shown_functions(spaced_numbers.stepped_numbers_code(kind, lanes)) == {"step"}


@pytest.mark.parametrize("dtype", _INTEGERS)
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 129, 250_007])
@pytest.mark.parametrize(("start", "step"), [(0, 1), (-7, 3), (5, -2), (2**40, 2**33 + 1)])
def test_integers_by_a_step_wrap_around(dtype, count, start, step) -> None:
    code = spaced_numbers.stepped_numbers(getattr(torch, dtype))
    assert code is not None
    found = code(start, step, count).numpy()
    with np.errstate(over="ignore"):
        wanted = (np.arange(count) * step + start).astype(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 250_007])
@pytest.mark.parametrize(("start", "step"), [(0.0, 1.0), (0.1, 0.3), (-1e9, 0.7), (5.0, -1 / 3)])
def test_floats_by_a_step_have_the_bits_of_aten(dtype, count, start, step) -> None:
    code = spaced_numbers.stepped_numbers(dtype)
    assert code is not None
    wanted = (torch.arange(count, dtype=torch.float64) * step + start).to(dtype)
    assert torch.equal(code(start, step, count), wanted)


@pytest.mark.parametrize(
    ("dtype", "calls"), [("int32", 1), ("int64", 1), ("uint16", 1), ("float32", 1), ("float16", 0)]
)
def test_the_range_op_counts_by_it(monkeypatch, set_profile, dtype, calls) -> None:
    set_profile(native_framed=1000)
    called, call = [], spaced_numbers.SteppedNumbers.__call__
    monkeypatch.setattr(spaced_numbers.SteppedNumbers, "__call__", lambda *a: called.append(0) or call(*a))
    start = tf.placeholder(dtype, [])
    ranges = [tf.range(start, tf.cast(limit, dtype), tf.cast(2, dtype)) for limit in (2003, 3)]
    with tf.Session() as session:
        many, few = session.run(ranges, {start: 2})
    assert len(called) == calls
    np.testing.assert_array_equal(many, np.arange(2, 2003, 2).astype(dtype))
    np.testing.assert_array_equal(few, np.array([2], dtype))
