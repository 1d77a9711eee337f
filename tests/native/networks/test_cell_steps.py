"""Steps of LSTM cells by machine code, beside ATen's kernels: the same within rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import flowstone as tf
from code_texts import shown_functions
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks import cell_steps

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
NAMES = ["x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"]


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("peephole", [False, True])
def test_the_text_is_valid(monkeypatch: pytest.MonkeyPatch, team: bool, peephole: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = cell_steps.cell_step_code(peephole, False, True, 8)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == {"step"}


def compared(monkeypatch: pytest.MonkeyPatch, build: Any, inputs: list[Any]) -> int:
    """How often the machine code was called; the outputs are the same with and without it."""
    found, called, over, once = [], [], cell_steps.CellStep.over, cell_steps.CellStep.__call__

    def counting(*given: Any) -> Any:
        advance = over(*given)
        return lambda step: called.append(step) or advance(step)

    monkeypatch.setattr(cell_steps.CellStep, "over", counting)
    monkeypatch.setattr(cell_steps.CellStep, "__call__", lambda *given: called.append(0) or once(*given))
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            fed = [tf.placeholder(tf.float32, each.shape) for each in inputs]
            found.append(session.run(list(build(*fed)), dict(zip(fed, inputs))))
    for plain, fast in zip(*found):
        assert plain.shape == fast.shape and plain.dtype == fast.dtype
        np.testing.assert_allclose(fast, plain, rtol=2e-6, atol=1e-6)
    return len(called)


@pytest.mark.parametrize("peephole", [False, True])
@pytest.mark.parametrize("clip", [-1.0, 0.7])
@pytest.mark.parametrize(("batch", "cells"), [(1, 1), (3, 7), (5, 19), (40, 300)])
def test_a_step(monkeypatch: pytest.MonkeyPatch, peephole: bool, clip: float, batch: int, cells: int) -> None:
    random = np.random.default_rng(cells)
    x, before, h = (random.normal(0, 1, (batch, cells)) for _ in range(3))
    if cells > 7:
        before[0, :3] = np.inf, -np.inf, np.nan
    w = random.normal(0, 0.3, (2 * cells, 4 * cells))
    inputs = [x, before, h, w, *[random.normal(0, 1, n * cells) for n in (1, 1, 1, 4)]]
    calls = compared(
        monkeypatch,
        lambda *given: tf.raw_ops.LSTMBlockCell(
            **dict(zip(NAMES, given)), use_peephole=peephole, cell_clip=clip, forget_bias=0.5
        ),
        inputs,
    )
    assert calls == 1


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_a_sequence(monkeypatch: pytest.MonkeyPatch, version: str, length: int) -> None:
    random = np.random.default_rng(length)
    time, batch, size, cells = 5, 3, 4, 11
    x, first, h = (
        random.normal(0, 1, each) for each in ((time, batch, size), (batch, cells), (batch, cells))
    )
    w = random.normal(0, 0.3, (size + cells, 4 * cells))
    inputs = [x, first, h, w, *[random.normal(0, 1, n * cells) for n in (1, 1, 1, 4)]]
    calls = compared(
        monkeypatch,
        lambda *given: getattr(tf.raw_ops, f"BlockLSTM{version}")(
            seq_len_max=tf.constant(length, tf.int64), **dict(zip(NAMES, given)), use_peephole=True
        ),
        inputs,
    )
    assert calls == length


def test_other_types_have_none() -> None:
    assert cell_steps.cell_step(torch.float16, False, False, 1.0, 0.0) is None
