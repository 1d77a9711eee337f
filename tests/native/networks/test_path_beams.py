"""Prefix beam search by machine code, beside that of ATen's kernels: the same sequences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework import flags
from flowstone.native.codegen import host
from flowstone.native.networks.path_beams import PathBeams, path_beams
from flowstone.ops.networks.ctc_beams import BeamSearch

pytestmark = pytest.mark.skipif(bool(host.reason()), reason=host.reason() or "")
NAN, INF = float("nan"), float("inf")


def plain(logs: torch.Tensor, lengths: torch.Tensor, width: int, paths: int):
    """(the labels of all rows' paths, the scores) by ATen's kernels."""
    search = BeamSearch(logs.shape[1], logs.shape[2], width, logs)
    for step, moment in enumerate(logs):
        search.advance(moment, step < lengths)
    labels, scores = search.best(paths)
    return [[[k for k in path if k >= 0] for path in row] for row in labels.tolist()], scores


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("steps", "rows", "classes", "width", "paths"),
    [
        (9, 3, 3, 4, 3), (9, 3, 2, 1, 1), (12, 4, 4, 10, 3), (40, 5, 30, 3, 2), (30, 40, 50, 100, 5),
        (3, 2, 70, 33, 1),
    ],
)  # fmt: skip
def test_sequences(dtype, steps, rows, classes, width, paths) -> None:
    numbers = np.random.default_rng(classes).normal(size=(steps, rows, classes)) * 1.5
    logs = torch.from_numpy(numbers).to(dtype).log_softmax(2)
    lengths = torch.from_numpy(np.random.default_rng(width).integers(1, steps + 1, rows))
    found = path_beams(dtype)(logs, lengths, width, paths, False)
    labels, counts, scores = found
    expected, expected_scores = plain(logs, lengths, width, paths)
    for i in range(rows):
        for path in range(paths):
            assert labels[i, path, : counts[i, path]].tolist() == expected[i][path]
    unit = torch.finfo(dtype).eps
    np.testing.assert_allclose(scores, expected_scores, rtol=16 * unit, atol=16 * unit)


def test_equal_neighbours_become_one() -> None:
    logs = torch.log_softmax(torch.tensor([[5.0, 0, 0], [0, 0, 5], [5, 0, 0], [0, 5, 0]])[:, None], 2)
    for merges, expected in ((False, [0, 0, 1]), (True, [0, 1])):
        labels, counts, _ = path_beams(torch.float32)(logs, torch.tensor([4]), 5, 1, merges)
        assert labels[0, 0, : counts[0, 0]].tolist() == expected


def test_fewer_sequences_than_beams_are_told() -> None:
    logs = torch.tensor([[[-1.0, -0.5]], [[-INF, 0.0]]])
    labels, counts, scores = path_beams(torch.float32)(logs, torch.tensor([1]), 5, 4, False)
    assert labels[0, 1, 0] == 0 and counts.tolist() == [[0, 1, 0, 0]]
    assert scores.tolist() == [[-0.5, -1.0, -INF, -INF]]
    _, counts, scores = path_beams(torch.float32)(logs, torch.tensor([2]), 5, 3, False)
    assert counts.tolist() == [[0, 1, 0]] and scores.tolist() == [[-0.5, -1.0, -INF]]


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("bad", [0.0, NAN])
def test_the_op_gives_the_same_with_and_without(monkeypatch, merge, bad) -> None:
    logits = np.random.default_rng(1).normal(size=(8, 3, 5)).astype(np.float32)
    logits[4, 1, 2] = bad
    found, called, call = [], [], PathBeams.__call__
    monkeypatch.setattr(
        PathBeams, "__call__", lambda *given: (called.append(call(*given) is not None), call(*given))[1]
    )
    for native in (0, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Graph().as_default(), tf.Session() as session:
            values = tf.raw_ops.CTCBeamSearchDecoder(
                inputs=tf.placeholder_with_default(logits, [8, 3, 5]), sequence_length=[8, 5, 0],
                beam_width=6, top_paths=1, merge_repeated=merge,
            )  # fmt: skip
            found.append(session.run([part[0] for part in values[:3]] + [values[3]]))
    assert called == [not np.isnan(bad)]
    for old, new in zip(found[0][:3], found[1][:3]):
        assert old.dtype == new.dtype
        np.testing.assert_array_equal(new, old)
    np.testing.assert_allclose(found[1][3], found[0][3], rtol=1e-6)
