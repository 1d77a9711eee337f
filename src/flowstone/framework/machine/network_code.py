"""What the native tier offers to kernels of networks, in slots as those of `machine_code.py`.

`cell_gradient(dtype, peephole, forget_second)` is that of LSTM cells; `path_labels(logits)` and
`path_beams(logits)` decode labels of time steps, `window_pool(dtype)` pools windows of images. They are None
where there is no machine code, the last also where there is none yet; kernels then do the same by ATen, with
the same results within rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from flowstone.framework.machine.machine_code import Slot

__all__ = [
    "CellGradient",
    "PathBeams",
    "PathLabels",
    "WindowPool",
    "cell_gradient",
    "path_beams",
    "path_labels",
    "window_pool",
]


class CellGradient(Protocol):
    """Gradients of a step of LSTM cells (`ops/networks/lstm_blocks.py`), on the host."""

    def __call__(
        self,
        before: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        gates: Sequence[torch.Tensor],
        d_state: torch.Tensor,
        dh: torch.Tensor,
        columns: torch.Tensor,
    ) -> torch.Tensor:
        """That for the state before the step; that for the weighted sums is written to `columns`, contiguous
        [batch, 4 cells]."""


class PathLabels(Protocol):
    """The most probable labels of time steps (`ops/networks/ctc_decoding.py`), on the host."""

    def __call__(
        self, logits: torch.Tensor, lengths: torch.Tensor, blank: int, merges: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """Of logits [steps, rows, classes] and each row's steps: labels that are no blank [rows, steps], how
        many of these each row has, minus the sums of the largest logits [rows, 1]. `merges`: of equal labels
        that follow each other the first is kept. None if a logit is NaN."""


class PathBeams(Protocol):
    """The most probable sequences of labels of time steps (`ops/networks/ctc_beams.py`), on the host."""

    def __call__(
        self, logs: torch.Tensor, lengths: torch.Tensor, width: int, paths: int, merges: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """Of logarithms of probabilities [steps, rows, classes] and each row's steps, by `width` beams:
        labels [rows, paths, steps], how many each path has, [rows, paths], and the logarithms of the
        probabilities, -infinity where there is no path. `merges`: of equal labels that follow each other the
        first is kept. None if a logarithm is NaN."""


class WindowPool(Protocol):
    """Pooling of images and volumes with channels last, on the host."""

    def __call__(
        self, name: str, images: torch.Tensor, counts: Sequence[int], windows: Sequence[Sequence[int]]
    ) -> torch.Tensor:
        """The "largest" numbers of windows, or their "mean" without padding, of integers truncated: of
        contiguous images [batch, …, channels] of up to three spatial axes. `counts`: of windows; `windows`:
        sizes, strides and the padding before, one an axis each. Sums of integers are below 2^24."""


cell_gradient: Slot[[torch.dtype | None, bool, bool], CellGradient] = Slot()
path_beams: Slot[[torch.dtype | None], PathBeams] = Slot()
path_labels: Slot[[torch.dtype | None], PathLabels] = Slot()
window_pool: Slot[[torch.dtype | None], WindowPool] = Slot()
