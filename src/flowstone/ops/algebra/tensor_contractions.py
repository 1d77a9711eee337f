"""Contractions of tensors: over chosen axes, by an Einstein sum, and norms.

Each is built of transposes, reshapes and one matrix product, so that it is differentiated and optimised as
these are. Einstein sums for which that does not do are an Einsum, see `einstein_sums`.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from flowstone.framework.declarations.building import graph_of
from flowstone.framework.declarations.operation import F
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.algebra.einstein_sums import output_shape
from flowstone.ops.algebra.matrices import matmul, matmul_op
from flowstone.ops.arrays.shapes import rank, reshape
from flowstone.ops.arrays.shapes import shape as shape_of
from flowstone.ops.numbers.reductions import reduce_max, reduce_prod, reduce_sum

__all__ = ["einsum", "norm", "tensordot"]

_INT = np.int32


# ---- tensordot


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sums of products of `a` and `b` over pairs of axes.

    `axes`: a number n (the last n of `a` with the first n of `b`), two lists of axes, or an int32 tensor of
    two rows. The output has the other axes of `a`, then those of `b`. ValueError where the axes do not match.
    """
    graph = graph_of([a, b])
    with graph.as_default(), graph.name_scope(name or "Tensordot") as scope:
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, a.dtype.base_dtype, "b")
        a_axes, b_axes = _contracted_axes(a, axes)
        rows, a_free, a_dims = _as_matrix(a, a_axes, contracted_first=False)
        columns, b_free, b_dims = _as_matrix(b, b_axes, contracted_first=True)
        product = matmul_op(rows, columns)
        if isinstance(a_free, list) and isinstance(b_free, list):
            free = np.array(a_free + b_free, _INT)
            return F.Reshape(product, convert_to_tensor(free, name="shape"), name=scope)
        parts = [_as_sizes(a_free), _as_sizes(b_free)]
        result = F.Reshape(product, F.ConcatV2(parts, _INT(0), name="concat"), name=scope)
        if a_dims is not None and b_dims is not None:
            result.set_shape(a_dims + b_dims)
        return result


def _as_sizes(sizes: Any) -> Any:
    return convert_to_tensor(np.array(sizes, _INT)) if isinstance(sizes, list) else sizes


def _contracted_axes(a: Tensor, axes: Any) -> tuple[Any, Any]:
    """The axes of both operands: lists, or tensors where only the step knows them."""
    if isinstance(axes, (int, np.integer)):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: axes={axes}.")
        if a.ndim is None:
            count = F.Rank(a)
            last = F.Range(F.Sub(count, _INT(axes), name="sub"), count, _INT(1), name="range")
            return last, list(range(axes))
        if axes > a.ndim:
            raise ValueError(f"`axes` must not be larger than the number of dimensions of tensor {a}: {axes}")
        return list(range(a.ndim - axes, a.ndim)), list(range(axes))
    if isinstance(axes, Tensor):
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        return axes[0], axes[1]
    if axes is None:
        raise ValueError("None values not supported.")
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received: axes={axes}.")
    first, second = [
        [int(axis)] if isinstance(axis, (int, np.integer)) else [int(i) for i in np.asarray(axis).reshape(-1)]
        for axis in axes
    ]
    if len(first) != len(second):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(first)} != {len(second)}.")
    return first, second


def _as_matrix(x: Tensor, axes: Any, contracted_first: bool) -> tuple[Tensor, Any, list[int | None] | None]:
    """`x` as a matrix with the contracted axes on one side, the sizes of the free axes (a list or a tensor),
    and what is known of them.
    """
    if x.ndim is None or isinstance(axes, Tensor):
        return (*_unknown_as_matrix(x, axes, contracted_first), None)
    if any(not -x.ndim <= axis < x.ndim for axis in axes):
        raise IndexError(f"axes {axes} of a tensor of {x.ndim} dimensions")
    axes = [axis % x.ndim for axis in axes]
    free = [i for i in range(x.ndim) if i not in axes]
    dims = x.shape.as_list()
    free_dims = [dims[i] for i in free]
    if None not in dims:
        order = axes + free if contracted_first else free + axes
        x = F.Transpose(x, np.array(order, _INT), name="transpose")
        counts = [_size(free_dims), _size([dims[i] for i in axes])]
        return (
            F.Reshape(x, np.array(counts[::-1] if contracted_first else counts, _INT)),
            free_dims,
            free_dims,
        )
    contracted = convert_to_tensor(np.array(axes, _INT), name="axes")
    others = convert_to_tensor(np.array(free, _INT), name="free")
    return (*_arranged(x, F.Shape(x), contracted, others, contracted_first), free_dims)


def _size(dims: list[int | None]) -> int:
    """The number of elements, of known sizes."""
    return math.prod(size for size in dims if size is not None)


def _arranged(
    x: Tensor, sizes: Tensor, contracted: Tensor, free: Tensor, contracted_first: bool
) -> tuple[Tensor, Tensor]:
    """`x` as a matrix, and the sizes of the free axes."""
    free_sizes, contracted_sizes = F.GatherV2(sizes, free, _INT(0)), F.GatherV2(sizes, contracted, _INT(0))
    axes, counts = [free, contracted], [reduce_prod(free_sizes), reduce_prod(contracted_sizes)]
    if contracted_first:
        axes, counts = axes[::-1], counts[::-1]
    order, shape = F.ConcatV2(axes, _INT(0), name="concat"), F.Pack(counts, name="stack")
    return F.Reshape(F.Transpose(x, order, name="transpose"), shape), free_sizes


def _unknown_as_matrix(x: Tensor, axes: Any, contracted_first: bool) -> tuple[Tensor, Tensor]:
    sizes, count = shape_of(x), rank(x)
    axes = axes if isinstance(axes, Tensor) else convert_to_tensor(np.array(axes, _INT), name="axes")
    is_from_front = F.GreaterEqual(axes, _INT(0))
    contracted = F.Select(is_from_front, axes, F.AddV2(axes, count, name="add"))
    free = F.ListDiff(F.Range(_INT(0), count, _INT(1), name="range"), contracted)[0]
    return _arranged(x, sizes, contracted, free, contracted_first)


# ---- einsum

_TERM = r"[a-zA-Z]*(\.\.\.)?[a-zA-Z]*"
_EQUATION = re.compile(rf"^{_TERM}(,{_TERM})*(->{_TERM})?$")


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """The Einstein sum that `equation` describes, such as ``"ij,jk->ik"``: a letter for each axis, sums
    over letters that the output lacks; without ``->`` the output has the letters that occur once, in
    alphabetical order. ``...`` stands for any axes, which broadcast; a letter that occurs twice in one input
    takes its diagonal.

    `name` is the only keyword. ValueError for a malformed equation or ranks that do not match; TypeError for
    other keywords.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise TypeError("invalid keyword arguments for this function: " + ", ".join(sorted(kwargs)))
    labels, output = _terms(equation, len(inputs))
    graph = graph_of(list(inputs))
    with graph.as_default(), graph.name_scope(name or "einsum"):
        tensors = [convert_to_tensor(x, name=f"input_{i}") for i, x in enumerate(inputs)]
        if any(_is_general(tensor, own) for tensor, own in zip(tensors, labels)):
            return F.Einsum(tensors, equation=f"{','.join(labels)}->{output}")
        dims = output_shape(labels, output, [tensor.dims for tensor in tensors])
        value, own = tensors[0], labels[0]
        for i in range(1, len(tensors)):
            kept = set(output).union(*labels[i + 1 :])
            value, own = _contract(value, own, tensors[i], labels[i], kept)
        result = _arrange(value, own, output)
        result.set_shape(dims)
        return result


def _terms(equation: str, count: int) -> tuple[list[str], str]:
    """The terms of the inputs and of the output. ValueError for a malformed equation."""
    equation = equation.replace(" ", "")
    if not _EQUATION.match(equation):
        raise ValueError(f"Indices have incorrect format: {equation}")
    left, arrow, output = equation.partition("->")
    labels = left.split(",")
    if not arrow:
        once = [letter for letter in set(left) - set(",.") if left.count(letter) == 1]
        output = "..." * ("..." in left) + "".join(sorted(once))
    if len(labels) != count:
        raise ValueError(f"Expected {len(labels)} arguments for equation {equation}, got {count}")
    if unknown := set(output) - set(left):
        raise ValueError(f"Output indices {sorted(unknown)} do not occur in the inputs of {equation}")
    letters = output.replace("...", "")
    if len(set(letters)) < len(letters):
        raise ValueError(f"Output subscripts contain a label appearing more than once: {equation}")
    return labels, output


def _is_general(tensor: Tensor, labels: str) -> bool:
    """Whether an operand is none that transposes and reshapes make a matrix of."""
    return "..." in labels or len(set(labels)) < len(labels) or tensor.ndim is None


def _sum_away(x: Tensor, labels: str, kept: set[str]) -> tuple[Tensor, str]:
    """`x` summed over the labels that nobody else has."""
    axes = [i for i, label in enumerate(labels) if label not in kept]
    if not axes:
        return x, labels
    return F.Sum(x, np.array(axes, _INT)), "".join(label for label in labels if label in kept)


def _moved(x: Tensor, labels: str, order: str) -> Tensor:
    if labels == order:
        return x
    return F.Transpose(x, np.array([labels.index(label) for label in order], _INT), name="transpose")


def _contract(a: Tensor, a_labels: str, b: Tensor, b_labels: str, kept: set[str]) -> tuple[Tensor, str]:
    """The product of two tensors, summed over the labels that are in neither `kept`: one batched matrix
    product, or an element-wise one if they sum over no label.
    """
    a, a_labels = _sum_away(a, a_labels, kept | set(b_labels))
    b, b_labels = _sum_away(b, b_labels, kept | set(a_labels))
    common = [label for label in a_labels if label in b_labels]
    batch = "".join(label for label in common if label in kept)
    summed = "".join(label for label in common if label not in kept)
    a_free = "".join(label for label in a_labels if label not in common)
    b_free = "".join(label for label in b_labels if label not in common)
    a = _moved(a, a_labels, batch + a_free + summed)
    b = _moved(b, b_labels, batch + summed + b_free)
    if not summed:
        for _ in b_free:
            a = F.ExpandDims(a, _INT(-1))
        for _ in a_free:
            b = F.ExpandDims(b, _INT(len(batch)))
        return F.Mul(a, b), batch + a_free + b_free
    return _grouped_product(a, b, (len(batch), len(a_free), len(summed))), batch + a_free + b_free


def _grouped_product(a: Tensor, b: Tensor, groups: tuple[int, int, int]) -> Tensor:
    """The matrix product of tensors whose axes come in groups: batch, free and summed ones of `a`; batch,
    summed and free ones of `b`."""
    batch, a_free, summed = groups
    a_sizes = _sizes(a)
    outer, rows = a_sizes[:batch], a_sizes[batch : batch + a_free]
    row_count, inner = math.prod(rows), math.prod(a_sizes[batch + a_free :])
    a = _in_shape(a, [*outer, row_count, inner])
    b_sizes = _sizes(b)
    columns = b_sizes[batch + summed :]
    b = _in_shape(b, [*b_sizes[:batch], inner, math.prod(columns)])
    return _in_shape(matmul(a, b), [*outer, *rows, *columns])


def _sizes(x: Tensor) -> list[Any]:
    """The size of each axis: an int, or a scalar tensor where it is not known."""
    dims = x.dims
    assert dims is not None  # else the sum is an Einsum
    if None not in dims:
        return list(dims)
    shape = F.Shape(x)
    return [shape[i] if size is None else size for i, size in enumerate(dims)]


def _in_shape(x: Tensor, sizes: list[Any]) -> Tensor:
    """`x` with axes of these sizes, ints or tensors."""
    is_known = x.dims is not None and not any(isinstance(size, Tensor) for size in sizes)
    return x if is_known and list(x.dims or ()) == sizes else reshape(x, sizes)


def _arrange(x: Tensor, labels: str, output: str) -> Tensor:
    x, labels = _sum_away(x, labels, set(output))
    return _moved(x, labels, output)


# ---- norms


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keep_dims: bool = False,
    name: str | None = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The norm over `axis`: of vectors (an int, or None for all elements), or of matrices (two axes).

    `ord`: "euclidean" (or "fro" of matrices), a positive number, `numpy.inf`; of matrices 1, 2 too.
    ValueError for others.
    """
    keep_dims = keep_dims if keepdims is None else keepdims
    is_matrix = isinstance(axis, (tuple, list))
    axis = _norm_axes(axis, ord) if is_matrix else axis
    if not is_matrix and ord != "euclidean" and (isinstance(ord, str) or ord <= 0):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    graph = graph_of([tensor])
    with graph.as_default(), graph.name_scope(name or "norm"):
        x = convert_to_tensor(tensor)
        result = _norm_of(x, ord, axis, is_matrix)
        if keep_dims:
            return result
        every = list(range(x.ndim or 0)) if axis is None else axis
        return F.Squeeze(result, squeeze_dims=[every] if isinstance(every, int) else list(every))


def _norm_axes(axis: Any, ord: Any) -> list[int]:
    axes = list(axis)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
    if ord not in ("euclidean", "fro", 1, 2, np.inf):
        raise ValueError(f"'ord' must be a supported matrix norm, got {ord}")
    return axes


def _norm_of(x: Tensor, ord: Any, axis: Any, is_matrix: bool) -> Tensor:
    if ord in ("fro", "euclidean") or (ord == 2 and not is_matrix):
        squares = F.Mul(x, F.Conj(x) if x.dtype.is_complex else x, name="mul")
        return F.Sqrt(
            reduce_sum(squares, axis, True)
        )  # of complex numbers it is complex, as only this one is in TensorFlow
    size = F.ComplexAbs(x, Tout=x.dtype.real_dtype) if x.dtype.is_complex else F.Abs(x)
    if is_matrix and ord == 2:
        return _spectral_norm(x, axis)
    if ord == 1:
        total = reduce_sum(size, axis[0] if is_matrix else axis, True)
        return reduce_max(total, axis[1], True) if is_matrix else total
    if ord == np.inf:
        if is_matrix:
            return reduce_max(reduce_sum(size, axis[1], True), axis[0], True)
        return reduce_max(size, axis, True)
    total = reduce_sum(F.Pow(size, ord), axis, True)
    return F.Pow(total, 1.0 / ord)


def _spectral_norm(x: Tensor, axis: list[int]) -> Tensor:
    """The greatest singular value of the matrices over two axes, kept as axes of size 1."""
    order = _order_with_last(x, axis)
    values = F.Svd(F.Transpose(x, order), compute_uv=False)[0]
    greatest = F.ExpandDims(reduce_max(values, -1, True), _INT(-1))
    return F.Transpose(greatest, F.InvertPermutation(order))


def _order_with_last(x: Tensor, axes: list[int]) -> Any:
    """The order of the axes of x that has these two last. ValueError for axes that x has not."""
    rank = x.ndim
    if rank is None:
        every = F.Rank(x)
        at_end = F.FloorMod(F.AddV2(np.array(axes, _INT), every), every)
        others = F.ListDiff(F.Range(_INT(0), every, _INT(1)), at_end)[0]
        return F.ConcatV2([others, at_end], _INT(0))
    if any(not -rank <= axis < rank for axis in axes):
        raise ValueError(f"Shape must be at least rank 2, with axes {axes}, but is rank {rank}")
    last = [axis % rank for axis in axes]
    return np.array([axis for axis in range(rank) if axis not in last] + last, _INT)
