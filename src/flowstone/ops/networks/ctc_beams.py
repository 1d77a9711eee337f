"""Prefix beam search over the class probabilities of time steps (Graves, 2012; Hannun et al., 2014).

A beam is a sequence of labels with the logarithms of two probabilities: of all paths so far that mean it and
end with a blank, and of those that end with its last label. In each time step a beam stays as it is, by a
blank or by its last label again, and is extended by every other label; the `width` most probable of all are
kept. As in TensorFlow a beam may be forgotten, see `_kept_extensions`.

All rows and beams are searched at once, a loop over time steps only. Extensions of a beam are as probable as
the beam times the label. So in the order of the beams' and the labels' probabilities an extension has at
least as many better ones as the product of both ranks says, and only few can be among the best `width`.
"""

from __future__ import annotations

import math

import torch

_ROOT = 0x243F6A8885A308D3  # the number of the empty sequence
_FACTOR = -7046029254386353131  # odd: 2^64 over the golden ratio, as a signed number
_NONE = -math.inf


class BeamSearch:
    """The beams of all rows: after `advance` over all time steps, `best` tells the most probable sequences.

    State, each [rows, beams]: `blank` and `label` (the logarithms of probabilities), `last` (the last label,
    -1 of the empty sequence), `number` and `parent` (of a sequence and of the same without its last label,
    which make sequences comparable). `history` has a (beam of the step before, new label or -1) a time step.
    """

    def __init__(self, rows: int, classes: int, width: int, like: torch.Tensor) -> None:
        self.labels, self.width = classes - 1, width
        self.blank = like.new_zeros(rows, 1)
        self.label = like.new_full((rows, 1), _NONE)
        self.last = torch.full((rows, 1), -1, dtype=torch.int64, device=like.device)
        self.number = torch.full_like(self.last, _ROOT)
        self.parent = torch.ones_like(self.last)
        self.history: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._pairs: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def advance(self, logs: torch.Tensor, active: torch.Tensor) -> None:
        """One time step, given the logarithms of probabilities [rows, classes]; others than `active` stay."""
        beams = self.blank.shape[1]
        total = torch.logaddexp(self.blank, self.label)
        stay_blank = total + logs[:, -1:]
        stay_label = torch.logaddexp(self.label, self._from_parents(total)) + self._of_last(logs)
        beam, label, score = self._extensions(total, logs)
        is_beam = (self._number_of(beam, label)[:, :, None] == self.number[:, None, :]).any(2)
        score = score.masked_fill(is_beam, _NONE)

        stay = torch.logaddexp(stay_blank, stay_label)
        every = torch.cat([stay, score], 1)
        top, chosen = every.topk(min(self.width, every.shape[1]), 1)
        is_new = chosen >= beams
        extension = (chosen - beams).clamp_(min=0)
        source = torch.where(is_new, beam.gather(1, extension), chosen.clamp(max=beams - 1))
        added = torch.where(is_new, label.gather(1, extension), -1)
        for row in self._doubtful(total, is_new, source):
            kept = self._kept_extensions(total[row], stay[row], logs[row], row)
            top[row], best = torch.cat([stay[row], kept.flatten()]).topk(top.shape[1])
            is_new[row], best = best >= beams, best - beams
            source[row] = torch.where(is_new[row], best // self.labels, best + beams)
            added[row] = torch.where(is_new[row], best % self.labels, -1)
        dead = top == _NONE  # fewer sequences are possible than beams; these are none
        number = self.number.gather(1, source)
        state = (
            stay_blank.gather(1, source).masked_fill(is_new, _NONE),
            torch.where(is_new, top, stay_label.gather(1, source)),
            torch.where(is_new, added, self.last.gather(1, source)),
            torch.where(is_new, self._number_of(source, added), number).masked_fill(dead, 0),
            torch.where(is_new, number, self.parent.gather(1, source)).masked_fill(dead, 1),
        )
        self._become(state, source, added, active)

    def _become(
        self,
        state: tuple[torch.Tensor, ...],
        source: torch.Tensor,
        added: torch.Tensor,
        active: torch.Tensor,
    ) -> None:
        before = (self.blank, self.label, self.last, self.number, self.parent)
        if not bool(active.all()):
            spare = source.shape[1] - self.blank.shape[1]
            fills: tuple[float | int, ...] = (_NONE, _NONE, -1, 0, 1)
            kept = active[:, None]
            state = tuple(
                torch.where(kept, new, torch.nn.functional.pad(old, (0, spare), value=fill))
                for new, old, fill in zip(state, before, fills)
            )
            same = torch.arange(source.shape[1], device=source.device).clamp_(max=self.blank.shape[1] - 1)
            source, added = torch.where(kept, source, same), torch.where(kept, added, -1)
        self.blank, self.label, self.last, self.number, self.parent = state
        self.history.append((source, added))

    def _from_parents(self, total: torch.Tensor) -> torch.Tensor:
        """The logarithms of the probabilities from which beams, without their last label, reach others."""
        is_parent = self.number[:, :, None] == self.parent[:, None, :]
        repeats = self.last[:, :, None] == self.last[:, None, :]
        reached = torch.where(repeats, self.blank[:, :, None], total[:, :, None])
        return reached.masked_fill(~is_parent, _NONE).amax(1)

    def _doubtful(self, total: torch.Tensor, is_new: torch.Tensor, source: torch.Tensor) -> list[int]:
        """The rows in which an extension of a beam is among the best that may be forgotten: one that does not
        stay and whose parent is a better beam."""
        none = torch.zeros_like(total, dtype=torch.bool)
        stays, extended = (none.scatter_reduce(1, source, each, "amax") for each in (~is_new, is_new))
        is_parent = self.number[:, :, None] == self.parent[:, None, :]
        has_parent = (is_parent & (total[:, :, None] > total[:, None, :])).any(1)
        return (~stays & extended & has_parent).any(1).nonzero().flatten().tolist()

    def _kept_extensions(
        self, total: torch.Tensor, stay: torch.Tensor, logs: torch.Tensor, row: int
    ) -> torch.Tensor:
        """The scores [beams, labels] of a row's extensions, -inf where there is none.

        TensorFlow lets beams have their turns from the best one down. One that is not among the best any
        more when its parent, in its turn, comes to its last label is forgotten: it is not extended.
        """
        beams, last = len(total), self.last[row]
        is_parent = self.number[row][:, None] == self.parent[row]
        has_parent, parent = is_parent.any(0), is_parent.int().argmax(0)
        score = total[:, None] + logs[:-1]
        repeated = (last >= 0).nonzero().flatten()
        score[repeated, last[repeated]] = self.blank[row, repeated] + logs[last[repeated]]
        score[parent[has_parent], last[has_parent]] = _NONE  # which are beams
        turn = torch.empty_like(parent)
        turn[total.argsort(descending=True)] = torch.arange(beams, device=total.device)
        source, label = (score > stay[has_parent].min()).nonzero(as_tuple=True)
        before = turn[source] * self.labels + label < (turn[parent] * self.labels + last)[:, None]
        better = before & (score[source, label] > stay[:, None])
        above = (stay > stay[:, None]).sum(1)
        forgotten = torch.zeros_like(has_parent)
        for _ in range(beams):  # each round is right for those with one more turn
            count = above + (better & ~forgotten[source]).sum(1)
            found = has_parent & ~forgotten[parent] & (turn[parent] < turn) & (count >= self.width)
            if torch.equal(found, forgotten):
                break
            forgotten = found
        return score.masked_fill_(forgotten[:, None], _NONE)

    def _of_last(self, logs: torch.Tensor) -> torch.Tensor:
        return logs.gather(1, self.last.clamp(min=0)).masked_fill(self.last < 0, _NONE)

    def _number_of(self, beam: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """The numbers of sequences extended by a label: equal sequences have equal ones."""
        mixed = (self.number.gather(1, beam) + label + 1) * _FACTOR
        return mixed ^ (mixed >> 29)

    def _extensions(
        self, total: torch.Tensor, logs: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(beams, labels, scores) of the extensions that may be among the best, [rows, extensions]."""
        beams, by_beam = total.sort(1, descending=True)
        labels, by_label = logs[:, :-1].sort(1, descending=True)
        first, second = self._ranks(total.shape[1], logs.device)
        beam, label = by_beam[:, first], by_label[:, second]
        score = beams[:, first] + labels[:, second]
        score = score.masked_fill(label == self.last.gather(1, beam), _NONE)
        # A label that repeats the last one extends only what ends with a blank.
        every = torch.arange(total.shape[1], device=logs.device).expand_as(total)
        repeated = self.blank + self._of_last(logs)
        return (
            torch.cat([beam, every], 1),
            torch.cat([label, self.last.clamp(min=0)], 1),
            torch.cat([score, repeated], 1),
        )

    def _ranks(self, beams: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """The pairs of ranks, of a beam and a label, with fewer than `width` better pairs of other labels
        than the beams' last."""
        if beams not in self._pairs:
            ranks = [
                (beam, label)
                for beam in range(beams)
                for label in range(min(self.labels, -(-self.width // (beam + 1)) + 1))
            ]
            pairs = torch.tensor(ranks, dtype=torch.int64, device=device).reshape(-1, 2)
            self._pairs[beams] = pairs[:, 0], pairs[:, 1]
        return self._pairs[beams]

    def best(self, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(labels or -1 in each time step, logarithms of probabilities) of the `count` best sequences, [rows,
        count, time] and [rows, count]; -inf where there are fewer.
        """
        total = torch.logaddexp(self.blank, self.label)
        missing = max(count - total.shape[1], 0)
        scores, beam = torch.nn.functional.pad(total, (0, missing), value=_NONE).topk(count, 1)
        beam = beam.clamp_(max=total.shape[1] - 1)
        steps = []
        for source, added in reversed(self.history):
            steps.append(added.gather(1, beam))
            beam = source.gather(1, beam)
        steps.reverse()
        return torch.stack(steps, 2), scores
