"""Sums over the alignments of labels with the time steps of logits, as connectionist temporal classification
has them (Graves et al., 2006).

A path gives each time step a class or the blank; it means the labels that remain when runs of one class are
merged and blanks are left out. The loss is minus the logarithm of the probability of all paths that mean the
given labels. Without merging, each step of a path that is not blank is a label of its own.

`merged` is ATen's algorithm; `unmerged` runs forwards and backwards at once, a loop over time steps of whole
batches, in logarithms.
"""

from __future__ import annotations

import math

import torch

Sums = tuple[torch.Tensor, torch.Tensor]


def merged(
    logs: torch.Tensor, targets: torch.Tensor, counts: list[int], lengths: list[int], blank: int
) -> Sums:
    """(losses [batch], their gradients [time, batch, classes] with respect to the logits).

    Args:
        logs: the logarithms of probabilities, [time, batch, classes].
        targets: int64, the labels of all rows, one after the other.
        counts: the number of labels of each row.
        lengths: the number of time steps of each row, 1 or more.
        blank: the class that stands for no label.
    """
    losses, alphas = torch._ctc_loss(logs, targets, lengths, counts, blank, False)
    ones = torch.ones_like(losses)
    return losses, torch.ops.aten._ctc_loss_backward.default(
        ones, logs, targets, lengths, counts, losses, alphas, blank, False
    )


def unmerged(
    logs: torch.Tensor, targets: torch.Tensor, counts: list[int], lengths: list[int], blank: int
) -> Sums:
    """The same where repeated classes of a path are repeated labels."""
    device = logs.device
    steps, rows = logs.shape[:2]
    states = _states(targets, counts, blank)
    width = states.shape[1]
    last = torch.tensor(counts, device=device)[:, None] * 2
    times = torch.tensor(lengths, device=device)
    place = torch.arange(width, device=device)[None]
    back_place = (last - place).clamp_(min=0)
    moment = torch.arange(steps, device=device)[:, None]
    back_moment = (times - 1 - moment).clamp_(min=0)[:, :, None].expand(-1, -1, width)
    scores = logs.gather(2, states.expand(steps, -1, -1))
    turned = scores.gather(2, back_place.expand(steps, -1, -1)).gather(0, back_moment)
    forward, backward = _running_sums(torch.cat([scores, turned], 1), width).split(rows, 1)
    ends = forward.gather(0, (times - 1)[None, :, None].expand(1, -1, width))[0]
    ends = ends.masked_fill((place < last - 1) | (place > last), -math.inf)
    losses = -ends.logsumexp(1)
    rest = backward.gather(2, back_place.expand(steps, -1, -1)).gather(0, back_moment)
    shares = (forward + rest - scores + losses[None, :, None]).exp()
    inside = (place <= last) & (moment < times)[:, :, None]
    shares = torch.where(inside & shares.isfinite(), shares, 0)
    gradient = logs.exp().scatter_add_(2, states.expand(steps, -1, -1), -shares)
    return losses, gradient


def _states(targets: torch.Tensor, counts: list[int], blank: int) -> torch.Tensor:
    """The classes of each row's states: its labels with blanks between and around, [batch, states]."""
    longest = max(counts)
    states = targets.new_full((len(counts), 2 * longest + 1), blank)
    for row, labels in enumerate(targets.split(counts)):
        states[row, 1 : 2 * len(labels) : 2] = labels
    return states


def _running_sums(scores: torch.Tensor, width: int) -> torch.Tensor:
    """The logarithms of the probabilities of all beginnings of paths that end in each state at each time.

    A blank may stay; a label moves to the blank behind it or to the next label.
    """
    is_label = torch.arange(width, device=scores.device) % 2 == 1
    current = scores[0].masked_fill(torch.arange(width, device=scores.device) > 1, -math.inf)
    result = [current]
    for score in scores[1:].unbind(0):
        one = torch.nn.functional.pad(current[:, :-1], (1, 0), value=-math.inf)
        two = torch.nn.functional.pad(current[:, :-2], (2, 0), value=-math.inf)[:, :width]
        other = torch.where(is_label, two, current)
        current = torch.logaddexp(one, other) + score
        result.append(current)
    return torch.stack(result)
