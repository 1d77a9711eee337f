"""Gradients of LSTM cells by machine code, beside ATen's kernels: the same within rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks import cell_gradients

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
INF, NAN = float("inf"), float("nan")


NAMES = ["x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b", "i", "cs", "f", "o", "ci", "co", "cs_grad",
         "h_grad"]  # fmt: skip


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("peephole", [False, True])
def test_the_text_is_valid(monkeypatch, team, peephole) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = cell_gradients.cell_gradient_code(peephole, False, 8)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(cell_gradients.PLACES)


def steps(monkeypatch, build, inputs):
    """The outputs without machine code and with it, and how often that was called."""
    found, called = [], []
    for name in ("__call__", "over"):
        call = getattr(cell_gradients.CellGradient, name)
        monkeypatch.setattr(
            cell_gradients.CellGradient, name, lambda *given, call=call: called.append(0) or call(*given)
        )
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(each.dtype, each.shape) for each in inputs]
            found.append(session.run(list(build(*fed)), dict(zip(fed, inputs))))
    return found, len(called)


def compare(found) -> None:
    """Equal, but for what ATen rounds once where the code rounds twice."""
    unit = np.finfo("float32").eps
    for plain, fast in zip(*found):
        assert plain.shape == fast.shape and plain.dtype == fast.dtype
        np.testing.assert_allclose(fast, plain, rtol=16 * unit, atol=16 * unit)


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize(("batch", "cells"), [(1, 1), (3, 7), (5, 19), (40, 300)])
def test_a_step(monkeypatch, peephole, batch, cells) -> None:
    random = np.random.default_rng(cells)
    x, before, h, d_state, dh = (random.normal(0, 1, (batch, cells)) for _ in range(5))
    if cells > 7:
        dh[0, :3] = INF, -INF, NAN
    w = random.normal(0, 1, (2 * cells, 4 * cells))
    vectors = [random.normal(0, 1, n * cells) for n in (1, 1, 1, 4)]
    gates = [random.uniform(0, 1, (batch, cells)) for _ in range(6)]
    inputs = [x, before, h, w, *vectors, *gates, d_state, dh]
    found, calls = steps(
        monkeypatch,
        lambda *given: tf.raw_ops.LSTMBlockCellGrad(
            **dict(zip(NAMES, given)),
            use_peephole=peephole,
        ),
        [each.astype("float32") for each in inputs],
    )
    assert calls == 1
    compare(found)


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_sequence(monkeypatch, version, peephole, length) -> None:
    random = np.random.default_rng(length)
    time, batch, size, cells = 5, 3, 4, 11
    x, first, h = (
        random.normal(0, 1, dims) for dims in ((time, batch, size), (batch, cells), (batch, cells))
    )
    w = random.normal(0, 0.3, (size + cells, 4 * cells))
    vectors = [random.normal(0, 1, n * cells) for n in (1, 1, 1, 4)]
    series = [random.uniform(0, 1, (time, batch, cells)) for _ in range(9)]
    names = [
        "x",
        "cs_prev",
        "h_prev",
        "w",
        "wci",
        "wcf",
        "wco",
        "b",
        "i",
        "cs",
        "f",
        "o",
        "ci",
        "co",
        "h",
        "cs_grad",
        "h_grad",
    ]
    found, calls = steps(
        monkeypatch,
        lambda *given: getattr(tf.raw_ops, f"BlockLSTMGrad{version}")(
            seq_len_max=tf.constant(length, tf.int64), **dict(zip(names, given)), use_peephole=peephole
        ),
        [each.astype("float32") for each in (x, first, h, w, *vectors, *series)],
    )
    assert calls == 1
    compare(found)


def test_other_types_have_none() -> None:
    assert cell_gradients.cell_gradient(torch.float16, False, False) is None
