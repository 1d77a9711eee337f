"""Functions of complex64 numbers by machine code beside those of complex128, and ATen's results of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.framework.declarations.operation import registry
from flowstone.native.codegen import host
from flowstone.native.numerics.complex_function_code import PLACES
from flowstone.native.numerics.complex_functions import ComplexFunction, complex_function

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")


def _zero_where(which: int, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: torch.where(xs[which] == 0, 0, function(*xs))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(torch, name.lower()) for name in PLACES if hasattr(torch, name.lower())},
    "DivNoNan": _zero_where(1, torch.div),
    "RsqrtGrad": lambda y, dy: y.conj() * y.conj() * y.conj() * dy * -0.5,
    "SqrtGrad": lambda y, dy: 0.5 * dy / y.conj(),
    "Xdivy": _zero_where(0, torch.div),
    "Xlog1py": _zero_where(0, lambda x, y: x * torch.log1p(y)),
    "Xlogy": _zero_where(0, lambda x, y: x * torch.log(y)),
}
EXTREMES = (0.0, -0.0, 1.0, -1.0, 1e-8, 1e-30, 1e30, np.inf, -np.inf, np.nan, 2000.0, 90.0, -90.0, 45.0, 0.5)
COUNT = 5003  # so that vectors, and what is left of them, are there


def numbers(count: int, seed: int) -> torch.Tensor:
    chance = np.random.default_rng(seed)
    parts = chance.standard_normal((2, count)) * 2
    return torch.from_numpy((parts[0] + 1j * parts[1]).astype(np.complex64))


def inputs(name: str) -> list[torch.Tensor]:
    return [numbers(COUNT, seed) for seed in range(len(PLACES[name]) - 2)]


def test_every_function_has_its_reference() -> None:
    assert set(FUNCTIONS) == set(PLACES)


@pytest.mark.parametrize("name", PLACES)
def test_digits(name: str) -> None:
    given = inputs(name)
    found = ComplexFunction(name, FUNCTIONS[name])(*given).to(torch.complex128)
    wanted = FUNCTIONS[name](*[x.to(torch.complex128) for x in given])
    error = ((found - wanted).abs() / wanted.abs()).numpy()
    assert error.max() < 3e-6  # a sigmoid's near its poles
    assert np.median(error) < 1.5e-7
    for part in ("real", "imag"):
        close = [getattr(x, part).numpy() for x in (found, wanted)]
        assert np.median(np.abs(close[0] / close[1] - 1)) < 1.5e-7


@pytest.mark.parametrize("name", PLACES)
def test_no_element_depends_on_its_place(name: str) -> None:
    given, function = inputs(name), ComplexFunction(name, FUNCTIONS[name])
    whole = function(*given)
    rest = function(*[x[7:].clone() for x in given])
    assert torch.equal(torch.view_as_real(whole[7:]), torch.view_as_real(rest))


@pytest.mark.parametrize("name", [name for name in PLACES if "y" not in PLACES[name]])
def test_extremes_are_ATens(name: str) -> None:
    x = torch.tensor([complex(a, b) for a in EXTREMES for b in EXTREMES], dtype=torch.complex64)
    found, wanted = ComplexFunction(name, FUNCTIONS[name])(x).numpy(), FUNCTIONS[name](x).numpy()
    for part in (np.real, np.imag):
        np.testing.assert_array_equal(np.isnan(part(found)), np.isnan(part(wanted)))
    is_finite = np.isfinite(wanted)
    np.testing.assert_array_equal(np.isfinite(found), is_finite)
    error = np.abs(found[is_finite] - wanted[is_finite])
    assert (error <= 4e-6 * np.abs(wanted[is_finite]) + 1e-37).all()
    others = ~is_finite & ~np.isnan(wanted)
    np.testing.assert_array_equal(found[others], wanted[others])


@pytest.mark.parametrize(("name", "zeros"), [("DivNoNan", 1), ("Xdivy", 0), ("Xlogy", 0), ("Xlog1py", 0)])
@pytest.mark.parametrize("other", [0.0, 1.0, np.inf, np.nan])
def test_zero_is_zero_whatever_the_other_is(name: str, zeros: int, other: float) -> None:
    given = [torch.full((40,), other, dtype=torch.complex64) for _ in range(2)]
    given[zeros] = torch.zeros(40, dtype=torch.complex64)
    assert torch.equal(ComplexFunction(name, FUNCTIONS[name])(*given), torch.zeros(40).to(torch.complex64))


def test_division_by_zero_is_ATens() -> None:
    x = torch.tensor([0, 1, 1j, complex(np.inf, 1)] * 9, dtype=torch.complex64)
    found = ComplexFunction("Div", torch.div)(x, torch.zeros_like(x))
    np.testing.assert_array_equal(found.numpy(), torch.div(x, torch.zeros_like(x)).numpy())


def test_only_what_is_left_out_is_asked_for() -> None:
    asked = []

    def otherwise(x: torch.Tensor) -> torch.Tensor:
        asked.append(x)
        return torch.exp(x)

    x = numbers(COUNT, 0)
    x[[5, COUNT - 1]] = torch.tensor([complex(500, 1), complex(np.nan, 0)], dtype=torch.complex64)
    found = ComplexFunction("Exp", otherwise)(x)
    assert len(asked) == 1
    np.testing.assert_array_equal(asked[0].numpy(), x[[5, COUNT - 1]].numpy())
    assert int((~torch.isfinite(found)).sum()) == 2


@pytest.mark.parametrize(
    ("first", "second"), [((70, 90), (90,)), ((70, 1), (1, 90)), ((70, 90), ()), ((1,), (6300,))]
)
def test_shapes_broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    x, y = numbers(int(np.prod(first)), 1).reshape(first), numbers(int(np.prod(second)), 2).reshape(second)
    found = ComplexFunction("Div", torch.div)(x, y)
    assert found.is_contiguous()
    np.testing.assert_allclose(found.numpy(), torch.div(x, y).numpy(), rtol=1e-5)


def test_conjugates_and_transposed_arrays() -> None:
    x = numbers(6300, 3).reshape(70, 90)
    for given in (x.conj(), x.T, x.mH):
        found = ComplexFunction("Sqrt", torch.sqrt)(given)
        np.testing.assert_allclose(found.numpy(), torch.sqrt(given).resolve_conj().numpy(), rtol=1e-6)


def test_nothing_is_given_nothing() -> None:
    assert ComplexFunction("Exp", torch.exp)(torch.zeros(0, 3, dtype=torch.complex64)).shape == (0, 3)


@pytest.mark.parametrize("op", ["Sqrt", "Exp", "Sigmoid", "RealDiv", "Pow", "DivNoNan", "Xlogy", "SqrtGrad"])
@pytest.mark.parametrize("has_shape", [True, False])
def test_steps_are_the_same_with_and_without(
    op: str, has_shape: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = len(registry[op].inputs)
    given = [numbers(COUNT, seed).numpy() for seed in range(count)]
    results = []
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(tf.complex64, [COUNT] if has_shape else None) for _ in given]
            results.append(session.run(registry[op](*fed), dict(zip(fed, given))))
            few = session.run(registry[op](*fed), dict(zip(fed, given))) if has_shape else None
            assert few is None or few.shape == (COUNT,)
    np.testing.assert_allclose(*results, rtol=1e-4)
    assert not np.array_equal(*results)  # or the code was not called


def test_shapes_that_do_not_fit_are_ATens_to_refuse() -> None:
    x, y = tf.placeholder(tf.complex64), tf.placeholder(tf.complex64)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError):
        session.run(x / y, {x: np.ones((3000, 3)), y: np.ones((3000, 2))})


def test_others_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert complex_function("Abs", torch.abs) is None
    monkeypatch.setattr(flags, "NATIVE_EXACT", True)
    assert complex_function("Exp", torch.exp) is None
