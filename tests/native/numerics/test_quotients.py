"""Quotients and remainders by machine code beside Python's, with wrap-around; errors of zero divisors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry
from flowstone.native.codegen import host
from flowstone.native.numerics import quotient_code, quotients

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = ("int8", "uint8", "int16", "int32", "int64")
NAMES = tuple(name for name in quotient_code.PLACES if name != "power")


def wanted(name: str, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """By Python's numbers, which have no bounds."""
    a, b = np.broadcast_arrays(x.astype(object), y.astype(object))
    quotient = a // b
    if name.startswith("truncated"):
        quotient = quotient + ((a - quotient * b != 0) & ((a < 0) != (b < 0)))
    result = quotient if name.endswith("quotient") else a - quotient * b
    kind = np.iinfo(x.dtype)
    return ((result - int(kind.min)) % (1 << kind.bits) + int(kind.min)).astype(x.dtype)


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """Large and small ones, and the bounds; none is 0."""
    kind, chance = np.iinfo(dtype), np.random.default_rng(seed)
    x = chance.integers(kind.min, kind.max, shape, dtype=dtype, endpoint=True)
    small = chance.integers(-3 if kind.min else 0, 4, shape).astype(dtype)
    x = np.where(chance.random(shape) < 0.4, small, x)
    x = np.where(chance.random(shape) < 0.1, dtype_bound(dtype, chance.random() < 0.5), x).astype(dtype)
    x.flat[0] = kind.min or 1
    return np.where(x == 0, np.array(1, dtype), x)


def dtype_bound(dtype: str, is_most: bool) -> Any:
    return np.iinfo(dtype).max if is_most else np.iinfo(dtype).min


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((5, 37), (5, 37)),
        ((37,), (37,)),
        ((5, 37), (37,)),
        ((5, 1), (1, 37)),
        ((5, 37), ()),
        ((), (5, 37)),
        ((3,), (1,)),
    ],
)
def test_quotients(name: str, dtype: str, first: Any, second: Any) -> None:
    code = quotients.Quotients(dtype)
    x, y = numbers(dtype, first, 1), numbers(dtype, second, 2)
    for divisor in (y, np.full_like(y, -1 if np.iinfo(dtype).min else 1)):
        found = code(name, torch.from_numpy(np.array(x)), torch.from_numpy(np.array(divisor)))
        assert found is not None
        np.testing.assert_array_equal(found.numpy(), wanted(name, x, divisor))


def test_every_quotient_of_eight_bits() -> None:
    x, y = np.meshgrid(np.arange(-128, 128), np.delete(np.arange(-128, 128), 128))
    for name in NAMES:
        given = [torch.from_numpy(n.astype("int8")) for n in (x, y)]
        found = quotients.Quotients("int8")(name, *given)
        assert found is not None
        np.testing.assert_array_equal(found.numpy(), wanted(name, x.astype("int8"), y.astype("int8")))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("place", [0, 15, 16, 36])
def test_a_divisor_of_zero_gives_nothing(dtype: str, place: int) -> None:
    y = numbers(dtype, (37,), 0)
    y[place] = 0
    for divisor in (y, y[place]):
        assert (
            quotients.Quotients(dtype)(
                NAMES[0], torch.ones(37).to(getattr(torch, dtype)), torch.tensor(divisor)
            )
            is None
        )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("second", [(5, 37), (), (1, 37)])
def test_powers_wrap_around(dtype: str, second: Any) -> None:
    kind = np.iinfo(dtype)
    x, y = numbers(dtype, (5, 37), 1), np.random.default_rng(2).integers(0, 100, second).astype(dtype)
    found = quotients.Quotients(dtype)("power", torch.from_numpy(x), torch.from_numpy(np.array(y)))
    exact = np.power(x.astype(object), y.astype(object))
    expected = (exact - int(kind.min)) % (1 << kind.bits) + int(kind.min)
    np.testing.assert_array_equal(found.numpy(), expected.astype(dtype))
    y = np.array(y)
    y.flat[-1] = 255 if dtype == "uint8" else -2
    found = quotients.Quotients(dtype)("power", torch.from_numpy(x), torch.from_numpy(y))
    assert (found is None) == (dtype != "uint8")


def test_steps_refuse_negative_exponents_of_many_integers() -> None:
    x, y = tf.placeholder(tf.int32, [90, 60]), tf.placeholder(tf.int32, [90, 60])
    with tf.Session() as session:
        ones = np.ones((90, 60), np.int32)
        np.testing.assert_array_equal(session.run(x**y, {x: 3 * ones, y: 4 * ones}), 81 * ones)
        with pytest.raises(tf.errors.InvalidArgumentError, match="negative integer powers"):
            session.run(x**y, {x: ones, y: -ones})


@pytest.mark.parametrize("op", ["Div", "TruncateDiv", "FloorDiv", "FloorMod", "TruncateMod", "Mod"])
def test_steps_are_the_same_with_and_without(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = numbers("int32", (90, 60), 1), numbers("int32", (60,), 2)
    results = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = tf.placeholder(tf.int32, [60])
            z = registry[op](tf.constant(x), fed)
            results.append(session.run(z, {fed: y}))
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"[Dd]ivi"):
                session.run(z, {fed: np.zeros(60)})
    np.testing.assert_array_equal(*results)


def test_other_types_have_none() -> None:
    assert quotients.quotients(torch.uint16) is None


def test_shapes_that_do_not_fit_are_ATens_to_refuse() -> None:
    x, y = tf.placeholder(tf.int64), tf.placeholder(tf.int64)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(x // y, {x: np.ones((200, 3), np.int64), y: np.ones((200, 2), np.int64)})


def test_a_step_imports_no_symbolic_algebra() -> None:
    """`torch.broadcast_shapes` does, which takes a first step a tenth of a second."""
    code = (
        "import sys, numpy as np, flowstone as tf\n"
        "x, y = tf.placeholder(tf.int64, [None, 2]), tf.placeholder(tf.int64, [2])\n"
        "bands, sides = np.ones((2, 3, 9), 'f'), np.ones((9, 2), 'f')\n"
        "solved = tf.linalg.banded_triangular_solve(bands, sides)\n"
        "with tf.Session() as session:\n"
        "    session.run([x // y, solved], {x: np.ones((9000, 2), int), y: [3, 4]})\n"
        "print('sympy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False"]
