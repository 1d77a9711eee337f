"""Larger inputs of the ops whose table has shapes or values that do not grow together, for the sweep.

`OWN` has a function an op, or a list of names and functions where an op is worth several lines. It is given a
`Draw`, which knows how many float32 elements the largest input is to have, and returns the inputs (arrays or
`Held` ones) and the attributes.
"""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

DRAWN = 1 << 18  # elements that are drawn; larger arrays repeat them
Inputs = tuple[list[Any], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Held:
    """An input that is a variable even if small, of a type that NumPy has no name for, or a reference."""

    value: np.ndarray
    dtype: str = ""  # as the value's
    role: str = "tensor"  # or "variable", "resource"


class Draw:
    """Seeded arrays; `n` is how many float32 elements the largest input may have."""

    def __init__(self, op: str, size: int) -> None:
        self.size, self.n = size, size // 4
        self.random = np.random.RandomState(zlib.crc32(op.encode()))

    def _shaped(self, few: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.resize(few.astype(dtype), shape)

    def normal(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        return self._shaped(self.random.standard_normal(min(DRAWN, math.prod(shape))), shape, dtype)

    def uniform(self, low: float, high: float, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        return self._shaped(self.random.uniform(low, high, min(DRAWN, math.prod(shape))), shape, dtype)

    def ints(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
        count = math.prod(shape)
        drawn = self.random.randint(low, high, min(count, 8 * DRAWN), dtype=np.int64)
        return self._shaped(drawn, shape, dtype)

    def permutation(self, count: int) -> np.ndarray:
        return self.random.permutation(count).astype(np.int32)

    def positions(self, rows: int, columns: int) -> np.ndarray:
        """The sorted positions of a quarter of the elements."""
        flat = np.arange(0, rows * columns, 4) + self.ints(0, 4, -(-rows * columns // 4))
        flat = flat[flat < rows * columns]
        return np.stack(np.divmod(flat, columns), 1).astype(np.int64)

    def diagonally_dominant(self, *shape: int, dtype: Any = np.float32) -> np.ndarray:
        """Square matrices that are well conditioned."""
        return (self.normal(*shape) * 0.3 + 2 * math.sqrt(shape[-1]) * np.eye(shape[-1])).astype(dtype)

    def definite(self, *shape: int) -> np.ndarray:
        """Symmetric matrices that are positive definite."""
        matrices = self.normal(*shape)
        symmetric = (matrices + np.swapaxes(matrices, -1, -2)) / 4
        return (symmetric + 2 * math.sqrt(shape[-1]) * np.eye(shape[-1])).astype(np.float32)


def _scalar(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def _large(d: Draw) -> tuple[int, int, int]:
    side = min(512, math.isqrt(d.n))
    return max(1, d.n // side**2), side, side


def _many(d: Draw) -> tuple[int, int, int]:
    return d.n // 64, 8, 8


def _matrices(make: str, *more: Any, **attributes: Any) -> list[tuple[str, Callable[[Draw], Inputs]]]:
    """An op on large matrices and on many small ones; `more` inputs are functions of the shape."""

    def inputs(shape_of: Callable[[Draw], tuple[int, ...]]) -> Callable[[Draw], Inputs]:
        def made(d: Draw) -> Inputs:
            shape = shape_of(d)
            return [getattr(d, make)(*shape), *(each(d, shape) for each in more)], attributes

        return made

    return [("of large matrices", inputs(_large)), ("of many matrices", inputs(_many))]


def _right(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return d.normal(*shape[:-1], max(1, shape[-1] // 4))


def _lower(d: Draw, shape: tuple[int, ...]) -> np.ndarray:
    return np.tril(d.diagonally_dominant(*shape))


def _pooled(images: np.ndarray, axes: int) -> np.ndarray:
    """The largest of blocks of two along the axes between the first and the last."""
    for axis in range(1, axes + 1):
        images = np.maximum(
            np.take(images, range(0, images.shape[axis], 2), axis),
            np.take(images, range(1, images.shape[axis], 2), axis),
        )
    return images


def _of_maxima(shape: tuple[int, ...], second: bool, v2: bool = False) -> Callable[[Draw], Inputs]:
    """Max pooling's gradient, or the gradient of that: images of this shape, windows of two side by side."""
    window = [1, *[2] * (len(shape) - 1), 1]

    def made(d: Draw) -> Inputs:
        images = d.normal(max(1, d.n // math.prod(shape)), *shape)
        maxima = _pooled(images, len(shape) - 1)
        inputs = [images, maxima, d.normal(*(images if second else maxima).shape)]
        if v2:
            sizes = np.array(window, np.int32)
            return [*inputs, sizes, sizes], {"padding": "VALID"}
        return inputs, {"ksize": window, "strides": window, "padding": "VALID"}

    return made


def _of_means(shape: tuple[int, ...]) -> Callable[[Draw], Inputs]:
    window = [1, *[2] * (len(shape) - 1), 1]

    def made(d: Draw) -> Inputs:
        images = max(1, d.n // math.prod(shape))
        flow = d.normal(images, *(size // 2 for size in shape[:-1]), shape[-1])
        attributes = {"ksize": window, "strides": window, "padding": "VALID"}
        return [_shape(images, *shape), flow], attributes

    return made


def _of_places(d: Draw) -> Inputs:
    images = max(1, d.n // (32 * 32 * 8))
    values = d.normal(images, 32, 32, 8)
    places = np.arange(images * 32 * 32 * 8).reshape(values.shape)[:, ::2, ::2] % (32 * 32 * 8)
    window = [1, 2, 2, 1]
    attributes = {"ksize": window, "strides": window, "padding": "VALID"}
    return [values, d.normal(images, 16, 16, 8), np.ascontiguousarray(places)], attributes


def _quantised_concat(d: Draw) -> Inputs:
    parts = [Held(d.ints(0, 256, d.size // 128, 64, dtype=np.uint8), "quint8") for _ in range(2)]
    low, high = [_scalar(-1), _scalar(-1)], [_scalar(2), _scalar(2)]
    return [np.array(1, np.int32), parts, low, high], {}


def _row_slices(d: Draw) -> list[Any]:
    """Every second column but of the first row, and what goes there."""
    rows = d.n // 64
    return [_shape(1, 0), _shape(rows, 64), _shape(1, 2), d.normal(rows - 1, 32)]


def _quantised(
    bits: str, *shapes: Callable[[Draw], tuple[int, ...]], **attributes: Any
) -> Callable[[Draw], Inputs]:
    """Integers of a quantised type, and then the ranges of all of them."""

    def made(d: Draw) -> Inputs:
        limit = {
            "quint8": (0, 256, np.uint8),
            "qint8": (-127, 127, np.int8),
            "qint32": (-(2**28), 2**28, np.int32),
        }
        low, high, dtype = limit[bits]
        arrays = [Held(d.ints(low, high, *shape(d), dtype=dtype), bits) for shape in shapes]
        ranges = [_scalar(value) for _ in shapes for value in (-1.25, 2.5)]
        return [*arrays, *ranges], attributes

    return made


def _bytes(d: Draw) -> tuple[int, ...]:
    return (d.size // 64, 64)


def _words(d: Draw) -> tuple[int, ...]:
    return (d.n // 64, 64)


def _sparse_and_dense(positive: bool) -> Callable[[Draw], Inputs]:
    def made(d: Draw) -> Inputs:
        rows = d.n // 64
        indices = d.positions(rows, 64)
        dense = d.uniform(0.5, 2, rows, 64) if positive else d.normal(rows, 64)
        return [indices, d.normal(len(indices)), np.array([rows, 64]), dense], {}

    return made


def _shape(*sizes: int) -> np.ndarray:
    return np.array(sizes, np.int32)


def _seeded(*more: float, **attributes: Any) -> Callable[[Draw], Inputs]:
    """A stateless random op: its shape, a seed that is a variable, and scalars of its type."""

    def made(d: Draw) -> Inputs:
        kind = np.int32 if all(isinstance(each, int) for each in more) else np.float32
        return [_shape(d.n), Held(np.array([3, 7])), *(np.array(each, kind) for each in more)], attributes

    return made


def _parallel_concat(d: Draw) -> Inputs:
    return [[d.normal(1, d.n // 2), d.normal(1, d.n // 2)]], {"shape": [2, d.n // 2]}


def _stitch(d: Draw) -> Inputs:
    rows = d.n // 64
    order = d.permutation(2 * (rows // 2))
    return [[order[: rows // 2], order[rows // 2 :]], [d.normal(rows // 2, 64), d.normal(rows // 2, 64)]], {}


def _boxes(d: Draw, count: int) -> np.ndarray:
    corners = np.sort(d.uniform(0, 1, count, 2, 2), 1)
    return np.ascontiguousarray(corners.reshape(count, 4))


def _drawn(v2: bool) -> Callable[[Draw], Inputs]:
    def made(d: Draw) -> Inputs:
        images = max(1, d.n // (64 * 64 * 3))
        inputs = [d.uniform(0, 1, images, 64, 64, 3), _boxes(d, images * 9).reshape(images, 9, 4)]
        return inputs + ([d.uniform(0, 1, 3, 4)] if v2 else []), {}

    return made


def _suppression(d: Draw) -> Inputs:
    images = max(1, d.n // 4000)
    boxes = _boxes(d, images * 1000).reshape(images, 1000, 1, 4)
    limits = [np.array(10, np.int32), np.array(20, np.int32), _scalar(0.5), _scalar(0.2)]
    return [boxes, d.uniform(0, 1, images, 1000, 3), *limits], {}


def _crop_gradient(d: Draw) -> Inputs:
    boxes = d.n // (8 * 8 * 4)
    images = max(1, boxes // 16)
    ids = d.ints(0, images, boxes)
    return [d.normal(boxes, 8, 8, 4), _boxes(d, boxes), ids, _shape(images, 32, 32, 4)], {
        "T": "float32",
        "method": "bilinear",
    }


def _image_gradient(d: Draw) -> Inputs:
    images = max(1, d.n // 4096)
    flow, attributes = d.normal(images, 16, 16, 16), {"strides": [1, 1, 1, 1], "padding": "SAME"}
    return [_shape(images, 16, 16, 8), d.normal(3, 3, 8, 16), flow], attributes


def _fractional(largest: bool) -> Callable[[Draw], Inputs]:
    def made(d: Draw) -> Inputs:
        images = d.n // (16 * 16 * 8)
        borders = np.arange(0, 17, 2)
        flow = d.normal(images, 8, 8, 8)
        if not largest:
            return [np.array([images, 16, 16, 8]), flow, Held(borders), Held(borders)], {"overlapping": False}
        inputs = d.normal(images, 16, 16, 8)
        return [inputs, _pooled(inputs, 2), flow, Held(borders), Held(borders)], {"overlapping": False}

    return made


def _top(d: Draw, *k: np.ndarray) -> list[Any]:
    return [d.normal(d.n // 100, 100), d.ints(0, 100, d.n // 100), *k]


def _sets(d: Draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = d.n // 64
    indices = np.stack([np.repeat(np.arange(rows), 16), np.tile(np.arange(16), rows)], 1)
    return indices, d.ints(0, 40, rows * 16, dtype=np.int64), np.array([rows, 16])


OWN: dict[str, Callable[[Draw], Inputs] | list[tuple[str, Callable[[Draw], Inputs]]]] = {
    "ApproximateEqual": lambda d: ([d.normal(d.n), d.normal(d.n)], {}),
    "BandedTriangularSolve": lambda d: ([d.uniform(1, 2, 3, d.n // 64), d.normal(d.n // 64, 64)], {}),
    "CTCBeamSearchDecoder": lambda d: (
        [d.normal(50, max(1, d.n // 1000), 20), np.full(max(1, d.n // 1000), 50, np.int32)],
        {"beam_width": 10, "top_paths": 1, "merge_repeated": False},
    ),
    "Cholesky": _matrices("definite"),
    "CholeskyGrad": _matrices("normal", _lower)[::1],
    "CombinedNonMaxSuppression": _suppression,
    "Conv2DBackpropInput": _image_gradient,
    "CropAndResizeGradImage": _crop_gradient,
    "DenseBincount": lambda d: ([d.ints(0, 100, d.n), np.array(100, np.int32), d.normal(d.n)], {}),
    "DenseCountSparseOutput": lambda d: (
        [d.ints(0, 50, d.n // 200, 100, dtype=np.int64), d.normal(d.n // 200, 100)],
        {"binary_output": False},
    ),
    "Dequantize": [
        (mode, _quantised("quint8", _bytes, mode=mode)) for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED")
    ],
    "DrawBoundingBoxes": _drawn(False),
    "DrawBoundingBoxesV2": _drawn(True),
    "DynamicStitch": _stitch,
    "ParallelDynamicStitch": _stitch,
    "Eig": [
        ("of many matrices", lambda d: ([d.diagonally_dominant(d.n // 256, 16, 16)], {"Tout": "complex64"}))
    ],
    "FakeQuantWithMinMaxArgs": lambda d: ([d.normal(d.n) * 4], {"min": -6.0, "max": 6.0}),
    "FakeQuantWithMinMaxArgsGradient": lambda d: (
        [d.normal(d.n), d.normal(d.n) * 4],
        {"min": -6.0, "max": 6.0},
    ),
    "FakeQuantWithMinMaxVars": lambda d: ([d.normal(d.n) * 4, _scalar(-6), _scalar(6)], {}),
    "FakeQuantWithMinMaxVarsGradient": lambda d: (
        [d.normal(d.n), d.normal(d.n) * 4, _scalar(-6), _scalar(6)],
        {},
    ),
    "FakeQuantWithMinMaxVarsPerChannelGradient": lambda d: (
        [d.normal(*_words(d)), d.normal(*_words(d)) * 4, d.uniform(-6, -1, 64), d.uniform(1, 6, 64)],
        {},
    ),
    "Fill": lambda d: ([_shape(d.n // 64, 64), Held(_scalar(1.5))], {}),
    "FractionalAvgPoolGrad": _fractional(False),
    "FractionalMaxPoolGrad": _fractional(True),
    "InTopK": lambda d: (_top(d), {"k": 5}),
    "InTopKV2": lambda d: (_top(d, np.array(5, np.int32)), {}),
    "InvertPermutation": lambda d: ([d.permutation(d.n)], {}),
    "LinSpace": lambda d: ([Held(_scalar(-1)), _scalar(2), np.array(d.n, np.int32)], {}),
    "ListDiff": lambda d: ([d.ints(0, d.n, d.n), d.ints(0, d.n, d.n // 2)], {}),
    "LogMatrixDeterminant": _matrices("diagonally_dominant"),
    "Lu": _matrices("normal"),
    "MatrixDeterminant": _matrices("diagonally_dominant")[1:],
    "MatrixInverse": _matrices("diagonally_dominant"),
    "MatrixLogarithm": [
        ("of many matrices", lambda d: ([d.diagonally_dominant(d.n // 512, 8, 8, dtype=np.complex64)], {}))
    ],
    "MatrixSetDiagV2": lambda d: (
        [d.normal(d.n // 4096, 64, 64), d.normal(d.n // 4096, 64), np.array(0, np.int32)],
        {},
    ),
    "MatrixSolve": _matrices("diagonally_dominant", _right),
    "MatrixSquareRoot": _matrices("definite")[1:],
    "MatrixTriangularSolve": [
        ("of large matrices", lambda d: ([_lower(d, _large(d)), _right(d, _large(d))], {})),
        ("of many matrices", lambda d: ([_lower(d, _many(d)), _right(d, _many(d))], {})),
    ],
    "AvgPool3DGrad": _of_means((8, 8, 8, 4)),
    "AvgPoolGrad": _of_means((32, 32, 8)),
    "MaxPool3DGrad": _of_maxima((8, 8, 8, 4), second=False),
    "MaxPool3DGradGrad": _of_maxima((8, 8, 8, 4), second=True),
    "MaxPoolGrad": _of_maxima((32, 32, 8), second=False),
    "MaxPoolGradGrad": _of_maxima((32, 32, 8), second=True),
    "MaxPoolGradGradV2": _of_maxima((32, 32, 8), second=True, v2=True),
    "MaxPoolGradV2": _of_maxima((32, 32, 8), second=False, v2=True),
    "MaxPoolGradWithArgmax": _of_places,
    "Multinomial": lambda d: ([d.normal(d.n // 100, 100), np.array(10, np.int32)], {}),
    "OneHot": lambda d: (
        [d.ints(-1, 32, d.n // 32), np.array(32, np.int32), _scalar(1), _scalar(0)],
        {"axis": -1},
    ),
    "ParallelConcat": _parallel_concat,
    "ParameterizedTruncatedNormal": lambda d: (
        [_shape(16, d.n // 16), *(Held(np.full(16, value, np.float32)) for value in (0, 1, -1.5, 2))],
        {},
    ),
    "Qr": _matrices("normal", full_matrices=False),
    "QuantizeDownAndShrinkRange": _quantised("qint32", _words, out_type="quint8"),
    "QuantizedAdd": _quantised("quint8", _bytes, _bytes),
    "QuantizedAvgPool": _quantised(
        "quint8",
        lambda d: (d.size // 16384, 32, 32, 16),
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="SAME",
    ),
    "QuantizedBiasAdd": _quantised("quint8", _bytes, lambda d: (64,), out_type="qint32"),
    "QuantizedConcat": _quantised_concat,
    "QuantizedConv2D": _quantised(
        "quint8",
        lambda d: (max(1, d.size // 16384), 32, 32, 16),
        lambda d: (3, 3, 16, 16),
        padding="SAME",
        strides=[1, 1, 1, 1],
    ),
    "QuantizedMatMul": _quantised("quint8", lambda d: (d.size // 256, 256), lambda d: (256, 64)),
    "QuantizedMaxPool": _quantised(
        "quint8",
        lambda d: (d.size // 16384, 32, 32, 16),
        ksize=[1, 2, 2, 1],
        strides=[1, 2, 2, 1],
        padding="SAME",
    ),
    "QuantizedMul": _quantised("quint8", _bytes, _bytes),
    "QuantizedReshape": lambda d: (
        [
            Held(d.ints(0, 256, *_bytes(d), dtype=np.uint8), "quint8"),
            np.array([64, -1], np.int32),
            _scalar(-1),
            _scalar(2),
        ],
        {},
    ),
    "QuantizedRelu": _quantised("quint8", _bytes),
    "QuantizedRelu6": _quantised("quint8", _bytes),
    "RandomGamma": lambda d: ([_shape(16), Held(d.uniform(0.3, 5, d.n // 16))], {}),
    "RandomGammaGrad": lambda d: ([d.uniform(0.3, 5, d.n), d.uniform(0.3, 5, d.n)], {}),
    "RandomPoissonV2": lambda d: ([_shape(16), Held(d.uniform(0.3, 20, d.n // 16))], {"dtype": "float32"}),
    "RandomShuffle": lambda d: ([d.normal(d.n // 64, 64)], {}),
    "RandomStandardNormal": lambda d: ([_shape(d.n)], {"dtype": "float32"}),
    "RandomUniform": lambda d: ([_shape(d.n)], {"dtype": "float32"}),
    "RandomUniformInt": lambda d: ([_shape(d.n), np.array(-5, np.int32), np.array(1000, np.int32)], {}),
    "Range": lambda d: ([Held(np.array(0, np.int32)), np.array(d.n, np.int32), np.array(1, np.int32)], {}),
    "RequantizationRange": _quantised("qint32", _words),
    "Requantize": lambda d: (
        [*_quantised("qint32", _words)(d)[0], _scalar(-0.5), _scalar(0.75)],
        {"out_type": "quint8"},
    ),
    "Reshape": lambda d: ([d.normal(2, d.n // 2), _shape(d.n // 2, 2)], {}),
    "ResourceStridedSliceAssign": lambda d: (
        [Held(d.normal(d.n // 64, 64), role="resource"), *_row_slices(d)],
        {},
    ),
    "ScatterNd": lambda d: (
        [d.ints(0, d.n // 64, d.n // 64, 1), d.normal(d.n // 64, 64), _shape(d.n // 64, 64)],
        {},
    ),
    "SelfAdjointEigV2": [("of many matrices", lambda d: ([d.definite(d.n // 1024, 32, 32)], {}))],
    "SetSize": lambda d: (list(_sets(d)), {}),
    "SparseBincount": lambda d: (
        [
            d.positions(d.n // 64, 64),
            d.ints(0, 100, d.n // 64 * 16),
            np.array([d.n // 64, 64]),
            np.array(100, np.int32),
            np.zeros(0, np.float32),
        ],
        {},
    ),
    "SparseDenseCwiseAdd": _sparse_and_dense(False),
    "SparseDenseCwiseDiv": _sparse_and_dense(True),
    "SparseDenseCwiseMul": _sparse_and_dense(False),
    "SparseReshape": lambda d: (
        [d.positions(d.n // 64, 64), np.array([d.n // 64, 64]), np.array([-1, 16])],
        {},
    ),
    "SparseSoftmaxCrossEntropyWithLogits": lambda d: (
        [d.normal(d.n // 100, 100), d.ints(0, 100, d.n // 100, dtype=np.int64)],
        {},
    ),
    "SparseTensorDenseAdd": _sparse_and_dense(False),
    "StatelessRandomGammaV2": lambda d: (
        [_shape(16, d.n // 16), Held(np.array([3, 7])), Held(d.uniform(0.3, 5, d.n // 16))],
        {},
    ),
    "StatelessRandomNormal": _seeded(dtype="float32"),
    "StatelessRandomPoisson": lambda d: (
        [_shape(16, d.n // 16), Held(np.array([3, 7])), Held(d.uniform(0.3, 20, d.n // 16))],
        {"dtype": "float32"},
    ),
    "StatelessRandomUniform": _seeded(dtype="float32"),
    "StatelessRandomUniformInt": _seeded(-5, 1000),
    "StatelessTruncatedNormal": _seeded(dtype="float32"),
    "StridedSliceGrad": lambda d: ([_shape(d.n // 64, 64), *_row_slices(d)], {}),
    "Svd": [("of many matrices", lambda d: ([d.normal(d.n // 1024, 32, 32)], {}))],
    "TensorStridedSliceUpdate": lambda d: ([d.normal(d.n // 64, 64), *_row_slices(d)], {}),
    "TridiagonalSolve": lambda d: (
        [d.normal(d.n // 192, 3, 64) + np.array([0, 6, 0], np.float32)[:, None], d.normal(d.n // 192, 64, 2)],
        {"partial_pivoting": True},
    ),
    "Unique": lambda d: ([d.ints(0, max(1, d.n // 10), d.n)], {}),
    "UniqueV2": lambda d: ([d.ints(0, 4, d.n // 4, 4), np.array([0])], {}),
    "UnravelIndex": lambda d: ([d.ints(0, 6000, d.n), _shape(10, 20, 30)], {}),
    "Where": lambda d: ([d.normal(d.size // 64, 64) > 0], {}),
}
