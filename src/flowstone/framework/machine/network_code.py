"""What the native tier offers to kernels of networks, in slots as those of `machine_code.py`.

`cell_step(dtype, peephole, forget_second, forget_bias, clip)` and `cell_gradient(dtype, peephole,
forget_second)` are those of LSTM cells; `direct_windows(kind, windows, biased, rectified)` are convolutions
("results") and their gradients by "images" or "filter"; `path_labels(logits)` and `path_beams(logits)` decode
labels of time steps, `window_pool(dtype)` pools windows of images, `dilation(dtype)` dilates them, and
`window_rows()` makes rows of them. They are None where there is no machine code, the last three also where
there is none yet; kernels then do the same by ATen, with the same results within rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch

from flowstone.framework.machine.machine_code import Slot

__all__ = [
    "CellGradient",
    "CellStep",
    "Dilation",
    "DirectWindows",
    "PathBeams",
    "PathLabels",
    "WindowPool",
    "WindowRows",
    "Windows",
    "cell_gradient",
    "cell_step",
    "dilation",
    "direct_windows",
    "path_beams",
    "path_labels",
    "window_pool",
    "window_rows",
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

    def over(
        self,
        first: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        gates: Sequence[torch.Tensor],
        flows: Sequence[torch.Tensor],
        columns: torch.Tensor,
        carried: Sequence[torch.Tensor],
    ) -> Callable[[int], None]:
        """The function of a step's number for whole sequences, of which the first state is before `first`.
        To the `flows` at states and outputs it adds the `carried` ones, contiguous [batch, cells], and leaves
        that for the state before the step in the first of these; `columns` are [time, batch, 4 cells]."""


class CellStep(Protocol):
    """Steps of LSTM cells after their products (`ops/networks/lstm_blocks.py`), on the host."""

    def __call__(
        self,
        sums: torch.Tensor,
        before: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> None:
        """Writes (i, cs, f, o, ci, co, h), contiguous, of the sums of one step and the state before it."""

    def over(
        self,
        sums: torch.Tensor,
        before: torch.Tensor,
        peepholes: Sequence[torch.Tensor],
        results: Sequence[torch.Tensor],
    ) -> Callable[[int], None]:
        """The function of a step's number that writes its (i, cs, f, o, ci, co, h), [batch, cells] each one
        after the other, of the step's sums and the state before, which is `before` for the first."""


class Windows(NamedTuple):
    """A convolution of images [batch, height, width, channels] by a filter [*taps, channels, outputs] to
    results [*counts, outputs]; (vertical, horizontal) steps from window to window and from tap to tap, and
    the zeros before the images."""

    images: tuple[int, int, int, int]
    taps: tuple[int, int]
    outputs: int
    counts: tuple[int, int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    before: tuple[int, int]


class DirectWindows(Protocol):
    """A convolution of small float32 images, or a gradient of it (`ops/networks/small_convolutions.py`), on
    the host."""

    def __call__(
        self, images: torch.Tensor, factors: torch.Tensor, bias: torch.Tensor | None = None, /
    ) -> torch.Tensor | None:
        """Of images and filter the results, of the gradient and the filter that by the images, or of images
        and gradient that by the filter. None if that is not finite where images are padded. A bias [outputs]
        is added, and what is then negative made zero, where the slot was asked so."""


class Dilation(Protocol):
    """Grey-scale dilation and its gradients (`ops/networks/morphology.py`), on the host."""

    def __call__(
        self,
        name: str,
        windows: Windows,
        images: torch.Tensor,
        kernel: torch.Tensor,
        flow: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Images "dilated" by a filter [*taps, depth], or the gradients of that "to_images" and "to_filter"
        by the `flow` at the results; all contiguous, and there are windows. An image has fewer than 2^31
        elements."""


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
        self,
        name: str,
        images: torch.Tensor,
        counts: Sequence[int],
        windows: Sequence[Sequence[int]],
        from_infinity: bool = False,
    ) -> torch.Tensor:
        """The "largest" numbers of windows, or their "mean" without padding, of integers truncated: of
        contiguous images [batch, …, channels] of up to three spatial axes. `counts`: of windows; `windows`:
        sizes, strides and the padding before, one an axis each. Sums of integers are below 2^24.
        `from_infinity`: whether what no number exceeds is minus infinity, not the lowest number."""


class WindowRows(Protocol):
    """The windows of images with channels last as rows, on the host."""

    def __call__(
        self,
        images: torch.Tensor,
        counts: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        before: Sequence[int],
    ) -> torch.Tensor:
        """[batch * windows, size of a window * channels] of contiguous images [batch, …, channels] of one or
        two spatial axes, in numbers of 4 or 8 bytes. Of each axis: how many windows there are, their size,
        how far they are apart, and the zeros before. Zeros are what windows see outside."""


cell_gradient: Slot[[torch.dtype | None, bool, bool], CellGradient] = Slot()
cell_step: Slot[[torch.dtype | None, bool, bool, float, float], CellStep] = Slot()
dilation: Slot[[torch.dtype | None], Dilation] = Slot()
direct_windows: Slot[[str, Windows, bool, bool], DirectWindows] = Slot()
path_beams: Slot[[torch.dtype | None], PathBeams] = Slot()
path_labels: Slot[[torch.dtype | None], PathLabels] = Slot()
window_pool: Slot[[torch.dtype | None], WindowPool] = Slot()
window_rows: Slot[[], WindowRows] = Slot()
