"""The beam search against the same search, written beam by beam, and against all sequences."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from flowstone.ops.networks.ctc_beams import BeamSearch

Beams = dict[tuple[int, ...], tuple[float, float]]


def beam_by_beam(logs: np.ndarray, width: int) -> list[tuple[tuple[int, ...], float]]:
    """The best sequences with their log-probabilities, the most probable first.

    A beam that has been displaced when its parent comes to its label is not extended, as in TensorFlow.
    """
    beams: Beams = {(): (0.0, -np.inf)}
    for row in logs:
        kept: Beams = {}
        for beam, (_, label) in beams.items():
            if beam[:-1] in beams and beam:
                before = beams[beam[:-1]]
                label = np.logaddexp(label, before[0] if beam[-2:-1] == beam[-1:] else np.logaddexp(*before))
            kept[beam] = (np.logaddexp(*beams[beam]) + row[-1], label + row[beam[-1]] if beam else -np.inf)
        forgotten = set()
        for beam, score in beams.items():
            for k in range(len(row) - 1) if beam not in forgotten else ():
                child = (*beam, k)
                if child in beams:
                    forgotten |= {child} - set(kept)
                    continue
                before = score[0] if beam[-1:] == (k,) else np.logaddexp(*score)
                kept[child] = (-np.inf, before + row[k])
                if len(kept) > width:
                    del kept[min(kept, key=lambda each: np.logaddexp(*kept[each]))]
        beams = dict(sorted(kept.items(), key=lambda each: -np.logaddexp(*each[1])))
    return [(key, float(np.logaddexp(*score))) for key, score in beams.items()]


@pytest.mark.parametrize(("classes", "width"), [(3, 4), (5, 7), (12, 30), (30, 3), (2, 1)])
def test_the_search_is_that_beam_by_beam(classes: int, width: int) -> None:
    logits = np.random.RandomState(classes).randn(9, 3, classes) * 1.5
    logs = torch.log_softmax(torch.from_numpy(logits), 2)
    lengths = torch.tensor([9, 4, 6])
    search = BeamSearch(3, classes, width, logs)
    for step, row in enumerate(logs):
        search.advance(row, step < lengths)
    count = min(width, 3)
    labels, scores = search.best(count)
    for i, length in enumerate(lengths.tolist()):
        expected = beam_by_beam(logs[:length, i].numpy(), width)[:count]
        for path, (sequence, score) in enumerate(expected):
            assert tuple(k for k in labels[i, path].tolist() if k >= 0) == sequence
            assert scores[i, path].item() == pytest.approx(score, rel=1e-9)


def test_fewer_sequences_than_beams_are_told() -> None:
    search = BeamSearch(1, 2, 5, torch.zeros(1))
    search.advance(torch.tensor([[-1.0, -0.5]]), torch.tensor([True]))
    labels, scores = search.best(4)
    assert labels[0, :2, 0].tolist() == [-1, 0]
    assert scores[0].tolist() == [-0.5, -1.0, -np.inf, -np.inf]
