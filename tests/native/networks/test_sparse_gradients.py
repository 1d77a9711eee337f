"""Gradients of convolutions that are zero almost everywhere: against ATen in float64, infinities, threads."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from code_texts import shown_functions
from flowstone.framework.machine import machine
from flowstone.native.codegen import host
from flowstone.native.networks.sparse_gradients import (
    MOST,
    PLACES,
    WORDS,
    SparseGradient,
    sparse_gradient_code,
)

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
TYPES = {"float32": (torch.float32, 1e-5), "float64": (torch.float64, 1e-13)}


def drawn(rng: np.random.Generator) -> dict[str, int]:
    """Any geometry that ATen has, too: as many zeros before the images as behind them, or fewer."""
    batch, channels, outputs = (
        int(n) for n in (rng.integers(1, 6), rng.integers(1, 70), rng.integers(1, 40))
    )
    (down, across), strides = ([int(n) for n in rng.integers(1, end, 2)] for end in (5, 4))
    dilation, before = int(rng.integers(1, 3)), [int(rng.integers(0, each)) for each in (down, across)]
    spans = (down - 1) * dilation + 1, across
    lengths = [each + int(n) for each, n in zip(spans, rng.integers(0, 30, 2))]
    counts = [(n + 2 * b - span) // s + 1 for n, b, span, s in zip(lengths, before, spans, strides)]
    return dict(zip(WORDS[1:], (
        batch, *lengths, channels, *counts, outputs, down, across, *strides, dilation, *before
    )))  # fmt: skip


def operands(words: dict[str, int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images, a filter as the code reads it, and a gradient with a twentieth of its elements."""

    def sizes(*names: str) -> list[int]:
        return [words[name] for name in names]

    images = torch.randn(sizes("batch", "height", "width", "channels"), dtype=dtype)
    filters = torch.randn(sizes("outputs", "taps_down", "taps_across", "channels"), dtype=dtype)
    dy = torch.randn(sizes("batch", "rows", "columns", "outputs"), dtype=dtype)
    return images, filters, torch.where(torch.rand(dy.shape) < 0.05, dy, 0)


def expected(
    words: dict[str, int], images: torch.Tensor, filters: torch.Tensor, dy: torch.Tensor
) -> dict[str, torch.Tensor]:
    images, filters, dy = (x.double().permute(0, 3, 1, 2) for x in (images, filters, dy))
    strides, dilations = (words["stride_down"], words["stride_across"]), (words["dilation_down"], 1)
    padding = words["above"], words["beside"]
    found = torch.ops.aten.convolution_backward.default(
        dy, images, filters, None, strides, padding, dilations, False, (0, 0), 1, (True, True, False)
    )
    return dict(zip(("images", "filter"), (x.permute(0, 2, 3, 1) for x in found)))


@pytest.mark.parametrize("dtype", TYPES)
def test_random_shapes_agree_with_float64_and_with_any_threads(dtype: str) -> None:
    rng, (kind, tolerance) = np.random.default_rng(3), TYPES[dtype]
    torch.manual_seed(3)
    computed = 0
    for _ in range(60):
        words = drawn(rng)
        images, filters, dy = operands(words, kind)
        exact = expected(words, images, filters, dy)
        for by, given in (("images", filters), ("filter", images)):
            results = []
            for least in (0, 1 << 60):
                profile = machine.current().profile._replace(native_team=least)
                with machine.using(profile):
                    results.append(SparseGradient(by, dtype, words)(given, dy))
            whole, alone = results
            if alone is None:
                assert (dy != 0).sum() > MOST * dy.numel()
                continue
            computed += 1
            scale = max(float(exact[by].abs().max()), 1.0)
            assert float((alone.double() - exact[by]).abs().max()) <= tolerance * scale, words
            assert whole is None or torch.equal(whole, alone)  # a thread may see many where all see few
    assert computed > 90


WORDS_OF_TEXTS = dict(
    zip(WORDS[1:], (4, 1, 40, 17, 1, 38, 19, 1, 3, 1, 1, 1, 0, 0)),
)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, -1])
def test_what_is_not_finite_is_left_to_others(value: float, place: int) -> None:
    images, filters, dy = operands(WORDS_OF_TEXTS, torch.float32)
    for by, given in (("images", filters), ("filter", images)):
        gradient = SparseGradient(by, "float32", WORDS_OF_TEXTS)
        assert gradient(given, dy) is not None
        given.view(-1)[place] = value
        assert gradient(given, dy) is None


def test_gradients_that_are_not_finite_go_where_they_belong() -> None:
    images, filters, dy = operands(WORDS_OF_TEXTS, torch.float32)
    dy.zero_()[1, 0, 5, 2] = np.inf
    found = SparseGradient("images", "float32", WORDS_OF_TEXTS)(filters, dy)
    assert found is not None and torch.equal(found.isinf().nonzero()[:, 2].unique(), torch.arange(5, 8))
    found = SparseGradient("filter", "float32", WORDS_OF_TEXTS)(images, dy)
    assert found is not None and found[2].isinf().all() and found.isinf().sum() == found[2].numel()


@pytest.mark.parametrize("share", [0.0, 0.09, 0.11, 1.0])
def test_gradients_with_few_zeros_are_left_to_others(share: float) -> None:
    images, filters, dy = operands(WORDS_OF_TEXTS, torch.float32)
    chosen = torch.zeros(dy.numel() // 19).index_fill_(0, torch.arange(int(share * dy.numel() / 19)), 1.0)
    dy = (chosen[torch.randperm(len(chosen))].view(4, 1, 38, 1) + dy * 0).contiguous()
    with machine.using(machine.current().profile._replace(native_team=1 << 60)):
        for by, given in (("images", filters), ("filter", images)):
            found = SparseGradient(by, "float32", WORDS_OF_TEXTS)(given, dy)
            assert (found is None) == (share > MOST)
            if share == 0:
                assert found is not None and not found.any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize("team", [False, True])
def test_the_text_is_valid_and_has_its_functions(monkeypatch, dtype: str, lanes: int, team: bool) -> None:
    monkeypatch.setattr(host, "has", lambda name: team)
    text = sparse_gradient_code(dtype, lanes)
    assert ("GOMP_parallel" in text) == team
    assert shown_functions(text) == set(PLACES)
