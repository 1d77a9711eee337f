"""What the native tier offers to kernels of the rooms below it: slots, which `native` fills.

`random_words()` is what computes many blocks of random words, `row_moves()` what moves the rows of shuffling
queues. `random_values(how, dtype)` draws arrays of numbers, `rejection_values(how)` gamma and Poisson values,
`class_choice(logits)` chooses classes, `sparse_product(values, indices)` multiplies sparse matrices of these
types, `segment_sums(how, rows, indices, ids)` sums up picked rows, `segment_rows(how, rows, ids)` reduces
all, `unsorted_rows` in any order, `step_passes(dtype)` and `requantizer(old, new)` quantise,
`integer_product(x, y)` multiplies quantised numbers, `quotients(dtype)` divides integers, `beta_fraction()`
and `gamma_series()` compute parts of the incomplete beta and gamma functions, `zeta(is_short)` is Hurwitz's.
`band_solver(dtype, pivots)` solves systems of few diagonals, `small_matrices(dtype)` those of few rows,
`matrix_batches(dtype)` decomposes many matrices (`framework/machine/matrix_kernels.py`), `hot_places` makes
one-hot arrays, `spaced_numbers(dtype)` equal distances, `placing(indices)` puts rows at places,
`row_additions(dtype, indices)` adds them there, `bin_counts(dtype)` and `group_counts(values, weights)`
count, `size_histogram(dtype, limits)` does between limits, `tuple_rows(indices)` picks rows by tuples,
`largest(dtype)` finds the largest of rows. More are in `array_code`, `image_code`, `network_code` and
`string_code`. They are None where there is no machine code, the first two, `hot_places`, `placing`,
`quotients`, `row_additions`, `spaced_numbers`, `tuple_rows` and `largest` also where there is none yet.
Without them kernels do the same by Python, NumPy and ATen, with the same results (products, other sums,
solutions, normal numbers and gamma values within rounding).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, ParamSpec, Protocol, TypeVar

import torch

from flowstone.framework.machine.matrix_kernels import BandSolver, MatrixBatches, SmallMatrices

__all__ = [
    "BetaFraction",
    "BinCounts",
    "ClassChoice",
    "GammaSeries",
    "GroupCounts",
    "HotPlaces",
    "IntegerProduct",
    "Largest",
    "Move",
    "Placing",
    "Quotients",
    "RandomCode",
    "RandomValues",
    "RejectionValues",
    "Requantizer",
    "RowAdditions",
    "RowMoves",
    "SegmentRows",
    "SegmentSums",
    "SizeHistogram",
    "Slot",
    "SpacedNumbers",
    "SparseProduct",
    "StepPasses",
    "TupleRows",
    "UnsortedRows",
    "ZetaFunction",
    "band_solver",
    "beta_fraction",
    "bin_counts",
    "class_choice",
    "gamma_series",
    "group_counts",
    "hot_places",
    "integer_product",
    "largest",
    "matrix_batches",
    "placing",
    "quotients",
    "random_values",
    "random_words",
    "rejection_values",
    "requantizer",
    "row_additions",
    "row_moves",
    "segment_rows",
    "segment_sums",
    "size_histogram",
    "small_matrices",
    "spaced_numbers",
    "sparse_product",
    "step_passes",
    "tuple_rows",
    "unsorted_rows",
    "zeta",
]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")
Move = Callable[..., None]
"""A function of addresses and whole numbers, which it does not check."""


class RandomCode(NamedTuple):
    """Blocks of random words; the arguments are addresses and integers.

    `words`: (address of how many blocks to skip, how many of these there are, the counter's lower and upper
    64 bits, the key's two words, address of the results); what is at the addresses is int64.
    """

    words: Callable[[int, int, int, int, int, int, int], None]


class RandomValues(Protocol):
    """Random numbers on the host: "uniform", "normal", "truncated", "integers", a "permutation" in int64."""

    def __call__(
        self, key: int, counter: int, out: torch.Tensor, least: int = 0, width: int = 1, shift: int = 0
    ) -> None:
        """Fills a contiguous array with the numbers that follow a key of 64 bits and a counter of 128 bits.
        Integers: so many, from the least on. Uniform float32: `shift` of the fraction's 23 bits are 0."""

    def of(self, count: int, least: int = 0, width: int = 1, shift: int = 0) -> Callable[..., None]:
        """What fills so many elements, by a key, a counter and their address: few of them in less time."""


class RejectionValues(Protocol):
    """Values of "gamma" or "poisson" distributions, drawn by rejection, on the host."""

    def __call__(self, key: int, counter: int, parameters: torch.Tensor, samples: int) -> torch.Tensor:
        """[samples, n], of as many parameters, float64; each value by a stream of its own, one distribution's
        after the other's, that follows a key of 64 bits and a counter of 128 bits."""


class RowMoves(Protocol):
    """Rows of memory by *slots*, an array of numbers. All arrays are int64, but for draws (float64)."""

    @property
    def mix(self) -> Move:
        """(slots, first, filled, draws): exchanges the slot at each place i from `first` to `filled` with the
        one at int(draw * (i + 1)), where the draws are below 1."""

    @property
    def note(self) -> Move:
        """(addresses, owners, slots, count, start, pitch, owner): what the slots' addresses and owners are,
        for rows that lie `pitch` bytes apart from `start` on."""

    @property
    def release(self) -> Move:
        """(owners, left, slots, count, ended): the owner of each slot, which becomes -1, has one row less.
        `ended` becomes how many owners have nothing left now, and behind that their numbers."""

    @property
    def collect(self) -> Move:
        """(addresses, slots, count, size, out): copies the rows of `size` bytes at the slots' addresses."""

    @property
    def pick(self) -> Move:
        """(rows, slots, count, size, out): copies the rows at the slots of an array of rows."""

    @property
    def place(self) -> Move:
        """(rows, slots, count, size, values): copies values to the slots of an array of rows."""


class Placing(Protocol):
    """Rows at the places that contiguous indices of a type say, on the host."""

    def put(self, table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor) -> bool:
        """Copies rows to a table, both contiguous; of those for one place the last stays. False, with nothing
        changed, if an index is out of bounds."""

    def invert(self, indices: torch.Tensor) -> torch.Tensor | None:
        """The inverse of a permutation; None if the indices, a vector, are none."""


class RowAdditions(Protocol):
    """Rows added to those of a table that contiguous indices name, on the host."""

    def __call__(self, table: torch.Tensor, indices: torch.Tensor, rows: torch.Tensor, how: str) -> bool:
        """Has contiguous rows "add" to a contiguous table in their order, "subtract", "multiply" or, of
        floats, "divide" it. False, with nothing changed, if an index is out of bounds."""


class SegmentSums(Protocol):
    """Sums, means, or sums over the square root of their number, of picked rows in segments, on the host.

    Element i picks row ``indices[i]`` for segment ``ids[i]``; these are vectors of one length, not empty.
    None is given where a number is out of bounds, or the segments' numbers fall.
    """

    def reduce(
        self, data: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, count: int
    ) -> torch.Tensor | None:
        """[count, …] of the rows of `data`."""

    def spread(
        self, dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, rows: int
    ) -> torch.Tensor | None:
        """The gradient for so many rows of data, of that for the segments."""

    def spread_picked(
        self, dy: torch.Tensor, indices: torch.Tensor, ids: torch.Tensor, rows: int
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """The same of the picked rows alone, and their indices, sorted."""


class SegmentRows(Protocol):
    """A "sum", "mean", "min", "max" or "prod" of all rows in segments, on the host."""

    def __call__(self, data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor | None:
        """[count, …], of rows and as many `ids`, at least one; None if one is out of bounds, or they fall."""


class TupleRows(Protocol):
    """Rows that tuples of indices pick, on the host."""

    def __call__(
        self, params: torch.Tensor, indices: torch.Tensor, dims: Sequence[int]
    ) -> torch.Tensor | None:
        """The rows of `params` by `indices` [..., depth], in this shape; None if one is out of bounds."""

    def places(self, indices: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor | None:
        """The row-major numbers, int64, of `indices` [..., depth] in an array of these sizes, as a vector;
        None if one is out of bounds."""


class Largest(Protocol):
    """The largest of rows, equal ones in order of their places, NaN first, on the host."""

    def __call__(self, x: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor] | None:
        """[…, count], of x […, columns]: their values, and their places (int32). None for other counts than
        a few."""


class UnsortedRows(Protocol):
    """A "sum", "prod", "min" or "max" of rows by numbers in any order, on the host."""

    def __call__(self, data: torch.Tensor, ids: torch.Tensor, count: int) -> torch.Tensor | None:
        """[count, …], of rows and as many `ids`; negative ones drop their rows. None if one is not below
        `count`."""


class StepPasses(Protocol):
    """Passes of quantisation on the host; `numbers` are those of `native/arrays/step_code.py`."""

    def round(self, x: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
        """float32 numbers rounded to steps."""

    def round_ranges(
        self, x: torch.Tensor, ends: Sequence[torch.Tensor], levels: tuple[int, int]
    ) -> torch.Tensor | None:
        """float32 numbers [..., channels], of which there are some, rounded to the steps from the first to
        the last of the `levels`, which the channels' ranges are divided into, or one range; each of the
        `ends` is float32 [channels] or []. None if a range is empty around 0."""

    def scaled(self, x: torch.Tensor, numbers: Sequence[float], is_even: bool) -> torch.Tensor:
        """float32 numbers in a range, scaled, rounded, and multiplied by a step."""

    def masked(self, dy: torch.Tensor, x: torch.Tensor, first: float, last: float) -> torch.Tensor:
        """`dy` where `x` is in the range, else 0."""

    def passed_ranges(
        self, dy: torch.Tensor, x: torch.Tensor, ends: Sequence[torch.Tensor], levels: tuple[int, int]
    ) -> list[torch.Tensor] | None:
        """`dy` where `x` is in its range, else 0, and the sums of `dy` below and above, in the shape of the
        ends, of what `round_ranges` takes."""

    def quantize(self, x: torch.Tensor, numbers: Sequence[float], dtype: torch.dtype) -> torch.Tensor:
        """float32 numbers as integers of the type."""

    def dequantize(self, x: torch.Tensor, numbers: Sequence[float], exactly: bool) -> torch.Tensor:
        """Integers as float32 numbers."""

    def dequantize_multiples(self, x: torch.Tensor, zero: int, step: float) -> torch.Tensor | None:
        """Integers less `zero` times a step, rounded once; None if these numbers do not allow it."""


class Requantizer(Protocol):
    """Integers on the host, over a range; `numbers` are those of `native/arrays/step_code.py`."""

    def __call__(self, x: torch.Tensor, numbers: Sequence[float]) -> torch.Tensor:
        """Those of another type and range that stand for the same."""


class IntegerProduct(Protocol):
    """Products of integers of two types, of at most 16 bits, on the host."""

    def __call__(self, x: torch.Tensor, y: torch.Tensor, first: int, second: int) -> torch.Tensor:
        """``(x - first) (y - second)`` of tensors of one shape, int32, with its wrap-around."""

    def sum(self, x: torch.Tensor, y: torch.Tensor, first: int, second: int, start: int) -> torch.Tensor:
        """``first x + second y + start``; the same."""


class Quotients(Protocol):
    """Quotients, remainders and powers of integers of a type on the host."""

    def __call__(self, name: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor | None:
        """Of tensors that broadcast: their "truncated_quotient", "truncated_remainder", "floored_quotient" or
        "floored_remainder", or x to the "power" of y, with wrap-around; None if a divisor is 0, or an
        exponent below."""


class SparseProduct(Protocol):
    """The product of a sparse matrix and a dense one, on the host."""

    def __call__(
        self, indices: torch.Tensor, values: torch.Tensor, dense: torch.Tensor, height: int, adjoint: bool
    ) -> torch.Tensor | None:
        """[height, columns], of the elements' `indices` [count, 2], `values`, and `dense` [inner, columns].
        None if an element is out of bounds. `adjoint`: the indices are (column, row)."""


class BetaFraction(Protocol):
    """The continued fraction of the incomplete beta function, of float64 tensors of one shape on the host."""

    def __call__(
        self, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor, precise: float, most: int
    ) -> torch.Tensor:
        """Each element until a step changes it by no more than `precise`, in less than `most` steps."""


class GammaSeries(Protocol):
    """The series of x^n / ((a + 1) … (a + n)), of float64 tensors of one shape on the host."""

    def __call__(
        self, a: torch.Tensor, x: torch.Tensor, precise: float, most: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of the terms and its derivative by `a`, which go on for each element until a step changes
        the latter by no more than `precise` of the sum, in less than `most` steps."""


class ZetaFunction(Protocol):
    """The Hurwitz zeta function, of float64 tensors of one shape on the host."""

    def __call__(self, x: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        """The sum of (q + n) ** -x over n >= 0, where q > 0; infinity where x is 1, NaN where it is less."""


class HotPlaces(Protocol):
    """One-hot arrays on the host."""

    def __call__(
        self, indices: torch.Tensor, depth: int, at: int, on: torch.Tensor, off: torch.Tensor
    ) -> torch.Tensor:
        """`on` at the indices along a new axis of size `depth`, before the axis `at`, else `off`."""


class SpacedNumbers(Protocol):
    """Numbers at equal distances on the host."""

    def __call__(self, start: float, stop: float, count: int) -> torch.Tensor:
        """`count` numbers, more than one and less than 2^31, from start to stop."""


class ClassChoice(Protocol):
    """Random choices of classes by their logits (`ops/randomness/class_weights.py`), on the host."""

    def __call__(self, logits: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor | None:
        """The classes, int64, of [rows, classes] that numbers of [0, 1), float64 [rows, samples], choose.
        None if a row's largest logit is not finite, or one is NaN."""


class BinCounts(Protocol):
    """How many numbers lie in each of several bins of one width, on the host."""

    def __call__(self, values: torch.Tensor, low: float, step: float, bins: int) -> torch.Tensor | None:
        """int64 [bins], of bins of the width `step` from `low` on, of which the first and the last have what
        lies outside; None if a number is NaN."""


class SizeHistogram(Protocol):
    """How many numbers lie between limits that grow by a factor, on both sides of zero, on the host."""

    def __call__(self, values: torch.Tensor) -> tuple[torch.Tensor, list[float]] | None:
        """(int64 [2 limits + 1], the numbers from each limit on below the next; the least, the largest, the
        sum, the sum of squares); None if one is not finite."""


class GroupCounts(Protocol):
    """How often whole numbers occur in groups, on the host."""

    def __call__(
        self,
        rows: torch.Tensor | None,
        values: torch.Tensor,
        weights: torch.Tensor,
        sizes: tuple[int, int, int],
        is_binary: bool,
    ) -> torch.Tensor | None:
        """[groups, bins], of the type of the weights, which are added up if there are any: of the values
        below `bins`. `sizes`: groups, width, bins. `rows` int64 [count, 1 or 2] are (group and) place, which
        is below the width; without them so many elements follow each other in a group. None if a row is out
        of bounds."""


class Slot(Generic[_Given, _Made]):
    """What kernels ask for, and `native` offers: None until it does, and whenever it has nothing."""

    def __init__(self) -> None:
        self._ask: Callable[_Given, _Made | None] | None = None

    def offer(self, ask: Callable[_Given, _Made | None]) -> None:
        """Has calls ask this function."""
        self._ask = ask

    def __call__(self, *arguments: _Given.args, **named: _Given.kwargs) -> _Made | None:
        return None if self._ask is None else self._ask(*arguments, **named)


band_solver: Slot[[torch.dtype | None, bool], BandSolver] = Slot()
beta_fraction: Slot[[], BetaFraction] = Slot()
bin_counts: Slot[[torch.dtype | None], BinCounts] = Slot()
class_choice: Slot[[torch.dtype | None], ClassChoice] = Slot()
gamma_series: Slot[[], GammaSeries] = Slot()
group_counts: Slot[[torch.dtype | None, torch.dtype | None], GroupCounts] = Slot()
hot_places: Slot[[torch.dtype | None, torch.dtype | None], HotPlaces] = Slot()
integer_product: Slot[[torch.dtype | None, torch.dtype | None], IntegerProduct] = Slot()
largest: Slot[[torch.dtype | None], Largest] = Slot()
matrix_batches: Slot[[torch.dtype | None], MatrixBatches] = Slot()
placing: Slot[[torch.dtype | None], Placing] = Slot()
quotients: Slot[[torch.dtype | None], Quotients] = Slot()
random_values: Slot[[str, torch.dtype], RandomValues] = Slot()
random_words: Slot[[], RandomCode] = Slot()
rejection_values: Slot[[str], RejectionValues] = Slot()
requantizer: Slot[[torch.dtype | None, torch.dtype | None], Requantizer] = Slot()
row_additions: Slot[[torch.dtype, torch.dtype], RowAdditions] = Slot()
row_moves: Slot[[], RowMoves] = Slot()
segment_rows: Slot[[str, torch.dtype | None, torch.dtype | None], SegmentRows] = Slot()
segment_sums: Slot[[str, torch.dtype | None, torch.dtype | None, torch.dtype | None], SegmentSums] = Slot()
size_histogram: Slot[[torch.dtype | None, tuple[float, ...]], SizeHistogram] = Slot()
small_matrices: Slot[[torch.dtype | None], SmallMatrices] = Slot()
spaced_numbers: Slot[[torch.dtype | None], SpacedNumbers] = Slot()
sparse_product: Slot[[torch.dtype, torch.dtype], SparseProduct] = Slot()
step_passes: Slot[[torch.dtype | None], StepPasses] = Slot()
tuple_rows: Slot[[torch.dtype | None], TupleRows] = Slot()
unsorted_rows: Slot[[str, torch.dtype | None, torch.dtype | None], UnsortedRows] = Slot()
zeta: Slot[[bool], ZetaFunction] = Slot()
