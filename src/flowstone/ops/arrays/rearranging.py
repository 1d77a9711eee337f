"""The same elements in another order: transposed, reversed, permuted."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, GPU, X0, Call, Environment, Kernel
from flowstone.framework.declarations.operation import Equal, F, Gradients, Known, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.machine import machine_code
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, merge
from flowstone.ops.arrays.arrays import in_signed, invalid, is_text, moving, replaced
from flowstone.ops.numbers.elementwise import ARITHMETIC
from flowstone.ops.numbers.unsigned_integers import needs_help

__all__ = [
    "invert_permutation",
    "matrix_transpose",
    "place_of_axis",
    "reverse",
    "reverse_sequence",
    "reverse_v2",
    "transpose",
]

_PERM = "Tperm: type in [int32, int64] = int32"

# ---- Transpose


def _transposed_dims(node: Node) -> Dims:
    dims, perm = node.dims(0), node.constant(1)
    length = (node.dims(1) or (None,))[0]
    if perm is None:
        rank = len(dims) if dims is not None else length
        if dims is not None and length not in (None, len(dims)):
            raise ValueError(f"Dimension must be {len(dims)} but is {length}")
        return None if rank is None else (None,) * rank
    if dims is None:
        dims = (None,) * len(perm)
    if len(perm) != len(dims):
        raise ValueError(f"Dimension must be {len(dims)} but is {len(perm)}")
    for axis in perm.tolist():
        if not -len(dims) <= axis < len(dims):
            raise ValueError(f"perm dim {axis} is out of range of input rank {len(dims)}")
    return tuple([dims[axis] for axis in perm.tolist()])


def _checked_perm(x: Any, perm: Any) -> list[int]:
    axes = [axis + x.ndim if axis < 0 else axis for axis in perm.tolist()]
    if sorted(axes) != list(range(x.ndim)):
        raise invalid(f"{perm.tolist()} is not a permutation of the {x.ndim} dimensions")
    return axes


def _transpose_kernel(node: Node) -> Kernel:
    perm, dims = node.constant(1), node.dims(0)
    if is_text(node):
        return lambda x, perm: np.transpose(x, _checked_perm(x, perm))
    if perm is not None and dims is not None and len(set((perm % max(len(dims), 1)).tolist())) == len(dims):
        return Call(torch.permute, X0, tuple(perm.tolist()))
    return lambda x, perm: x.permute(_checked_perm(x, perm))


transpose_op = op(
    "Transpose", "x: T, perm: Tperm -> y: T", _PERM, T=None, aliases=[0], snapshot=True, host=["perm"]
)
transpose_op.infer(_transposed_dims)
transpose_op.kernel(CPU, GPU)(lambda node, env: _transpose_kernel(node))
transpose_op.gradient(
    lambda op, dy: (F.Transpose(dy, F.InvertPermutation(op.inputs[1]), name="transpose"), None)
)


@transpose_op.fold
def _(node: Node) -> Equal:
    perm = node.constant(1)
    return (
        node.inputs[0]
        if perm is not None and perm.tolist() == list(range(len(perm))) and node.dims(0) is not None
        else None
    )


conjugate_transpose_op = op(
    "ConjugateTranspose",
    "x: T, perm: Tperm -> y: T",
    _PERM,
    T=None,
    aliases=[0],
    snapshot=True,
    host=["perm"],
)
conjugate_transpose_op.infer(_transposed_dims)
conjugate_transpose_op.gradient(
    lambda op, dy: (F.ConjugateTranspose(dy, F.InvertPermutation(op.inputs[1])), None)
)


@conjugate_transpose_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    move = _transpose_kernel(node)
    assert callable(move)
    return (lambda x, perm: torch.conj_physical(move(x, perm))) if node.dtype(0).is_complex else move


invert_permutation_op = op(
    "InvertPermutation", "x: T -> y: T", "T: type in [int32, int64] = int32", host=["x", "y"]
)
invert_permutation_op.not_differentiable()


@invert_permutation_op.infer
def _(node: Node) -> Shapes:
    dims = node.dims(0)
    if dims is not None and len(dims) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    return (None,) if dims is None else dims


@invert_permutation_op.value(0)
def _(node: Node) -> Known | list[Known]:
    order = node.inputs[0]._static_value
    if not isinstance(order, np.ndarray) or sorted(order.ravel().tolist()) != list(range(order.size)):
        return None
    return np.argsort(order).astype(order.dtype)


_FEW = 50  # numbers, which Python looks at one by one as fast


def _inverse(x: Any) -> Any:
    """The inverse permutation; None if `x` is none."""
    native = machine_code.placing(x.dtype) if x.device.type == "cpu" else None
    if native is not None:
        return native.invert(x)
    low, high = torch.aminmax(x)
    if int(low) != 0 or int(high) != len(x) - 1:
        return None
    numbers = torch.arange(len(x), dtype=x.dtype, device=x.device)
    inverse = torch.full_like(x, -1).scatter_(0, x.long(), numbers)
    return inverse if int(inverse.amin()) == 0 else None  # with a place twice, another has none


@invert_permutation_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    dtype = node.dtype(0).torch

    def invert(x: Any) -> Any:
        if x.ndim == 1 and len(x) > _FEW and (inverse := _inverse(x)) is not None:
            return inverse
        places = x.tolist()
        result = [-1] * len(places)
        for i, place in enumerate(places):
            if not 0 <= place < len(places):
                raise invalid(f"{place} is not between 0 and {len(places)}")
            if result[place] != -1:
                raise invalid(f"{place} is duplicated in the input.")
            result[place] = i
        return torch.tensor(result, dtype=dtype)

    return invert


# ---- Reverse

_TYPES = (*ARITHMETIC, dtypes.bool, dtypes.string)

reverse_v1_op = op("Reverse", "tensor: T, dims: bool -> output: T", T=_TYPES, host=["dims"])


@reverse_v1_op.infer
def _(node: Node) -> Shapes:
    dims, flags = node.dims(0), node.dims(1)
    if flags is not None and len(flags) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(flags)}")
    if dims is None:
        return None if flags is None or flags[0] is None else (None,) * flags[0]
    if flags is not None and flags[0] not in (None, len(dims)):
        raise ValueError(f"Shape must be rank {flags[0]} but is rank {len(dims)}")
    return dims


@reverse_v1_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    flip = np.flip if is_text(node) else torch.flip

    def reverse(x: Any, flags: Any) -> Any:
        if len(flags) != x.ndim:
            raise invalid(
                f"'dims' must have the same number of values as 'input' has dimensions: "
                f"{len(flags)}, {x.ndim}"
            )
        return flip(x, tuple([axis for axis, flag in enumerate(flags.tolist()) if flag]))

    return in_signed(node.dtype(0), reverse, 0)


reverse_v1_op.gradient(lambda op, dy: (F.Reverse(dy, op.inputs[1]), None))

reverse_v2_op = op(
    "ReverseV2",
    "tensor: T, axis: Tidx -> output: T",
    "Tidx: type in [int32, int64] = int32",
    T=_TYPES,
    host=["axis"],
)


@reverse_v2_op.infer
def _(node: Node) -> Shapes:
    dims, axes = node.dims(0), node.constant(1)
    if axes is not None and dims is not None:
        _axes(axes.tolist(), len(dims), ValueError)
    return dims


def _axes(axes: list[int], rank: int, error: Any) -> tuple[int, ...]:
    found: list[int] = []
    if not rank and error is invalid:
        return ()  # as in TensorFlow, whose steps do not ask what to reverse of a scalar
    for axis in axes:
        if not -rank <= axis < rank:
            raise error(f"'axis'[{axes.index(axis)}] = {axis} is out of valid range [0, {rank - 1}]")
        if axis % rank in found:
            raise error(f"axis {axis % rank} specified more than once.")
        found.append(axis % rank)
    return tuple(found)


@reverse_v2_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    axes, dims = node.constant(1), node.dims(0)
    if is_text(node):
        return lambda x, axes: np.flip(x, _axes(axes.tolist(), x.ndim, invalid))
    if axes is not None and dims is not None and not needs_help(node.dtype(0)):
        return Call(torch.flip, X0, _axes(axes.tolist(), len(dims), invalid))
    return in_signed(node.dtype(0), lambda x, axes: torch.flip(x, _axes(axes.tolist(), x.ndim, invalid)), 0)


reverse_v2_op.gradient(lambda op, dy: (F.ReverseV2(dy, op.inputs[1]), None))

reverse_sequence_op = op(
    "ReverseSequence",
    "input: T, seq_lengths: Tlen -> output: T",
    "seq_dim: int ; batch_dim: int = 0 ; Tlen: type in [int32, int64] = int64",
    T=None,
)


@reverse_sequence_op.infer
def _(node: Node) -> Shapes:
    dims, lengths = node.dims(0), node.dims(1)
    sequence, batch = node.attributes["seq_dim"], node.attributes["batch_dim"]
    if lengths is not None and len(lengths) != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {len(lengths)}")
    if dims is None:
        return None
    for name, axis in (("batch_dim", batch), ("seq_dim", sequence)):
        if axis < 0:
            raise ValueError(f"{name} must be >=0, got {axis}")
    if batch >= len(dims):
        raise ValueError(f"batch_dim must be < input rank: {batch} vs. {len(dims)}")
    if sequence >= len(dims):
        raise ValueError(f"seq_dim must be < input rank: {sequence} vs. {len(dims)}")
    (count,) = merge((dims[batch],), lengths) or (None,)
    return replaced(dims, batch, count)


@reverse_sequence_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    sequence, batch = node.attributes["seq_dim"], node.attributes["batch_dim"]

    def reverse(x: Any, lengths: Any) -> Any:
        if min(batch, sequence) < 0:
            raise invalid(f"batch_dim and seq_dim must be >=0, got {batch} and {sequence}")
        size, count = x.shape[sequence], x.shape[batch]
        if lengths.shape != (count,):
            raise invalid(f"Length of seq_lengths != input.dims({batch}), ({len(lengths)} vs. {count})")
        if x.device.type == "cpu" and count and not 0 <= int(lengths.min()) <= int(lengths.max()) <= size:
            raise invalid(
                f"seq_lengths {lengths.tolist()} must be between 0 and input.dims({sequence}) = {size}"
            )
        places = torch.arange(size, device=x.device)
        ends = lengths.to(x.device).unsqueeze(1)
        index = torch.where(places < ends, ends - 1 - places, places)
        moved = x.movedim((batch, sequence), (0, 1))
        rows = torch.arange(count, device=x.device).unsqueeze(1)
        return moved[rows, index].movedim((0, 1), (batch, sequence))

    return moving(node, reverse)


@reverse_sequence_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    lengths = op.inputs[1]
    dx = F.ReverseSequence(
        dy, lengths, seq_dim=op.attributes["seq_dim"], batch_dim=op.attributes["batch_dim"]
    )
    return dx, None


# ---- public functions


def place_of_axis(axis: int, x: Tensor) -> Any:
    """The number of a dimension from 0 on, a Tensor where only the step knows it; None if it is the last.
    ValueError if there is none.
    """
    rank = x.ndim
    if axis == -1 or (rank is not None and axis == rank - 1):
        return None
    if rank is None:
        return F.Rank(x) + axis if axis < 0 else axis
    if not -rank <= axis < rank:
        raise ValueError(f"`axis` must be in the range [{-rank}, {rank}), but is {axis}")
    return axis % rank


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """`a` with its dimensions in the order `perm` (reversed if None); `conjugate`: and complex conjugated."""
    with get_default_graph().name_scope(name or "transpose") as scope:
        a = convert_to_tensor(a, name="a")
        declaration = conjugate_transpose_op if conjugate and a.dtype.is_complex else transpose_op
        if perm is None:
            rank = a.shape.ndims
            if rank is None:
                perm = F.Range(F.Sub(F.Rank(a), 1, name="sub"), -1, -1, name="Range")
            else:
                perm = np.arange(rank - 1, -1, -1, dtype=np.int32)
        return declaration(a, perm, name=scope)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """`a` with its last two dimensions exchanged. ValueError for a known rank below 2."""
    with get_default_graph().name_scope(name):
        a = convert_to_tensor(a, name="a")
        rank = a.shape.ndims
        if rank is None:
            count = F.Rank(a)
            leading = F.Range(0, F.Sub(count, 2, name="sub"), 1)
            last = [F.Sub(count, 1, name="sub"), F.Sub(count, 2, name="sub")]
            perm: Any = F.ConcatV2([leading, last], 0, name="concat")
        else:
            if rank < 2:
                raise ValueError(
                    f"Argument `a` should be a (batch) matrix with rank >= 2. Received `a` = {a!r}"
                )
            perm = [*range(rank - 2), rank - 1, rank - 2]
        return transpose(a, perm, conjugate=conjugate)


def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The vector y with ``y[x[i]] = i``. InvalidArgumentError in the step if `x` is no permutation."""
    return invert_permutation_op(x, name=name)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """`tensor` reversed along the dimensions in the vector `axis`."""
    return reverse_v2_op(tensor, axis, name=name)


reverse_v2 = reverse


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """For each i along `batch_axis` (0), the first ``seq_lengths[i]`` elements along `seq_axis` reversed."""
    sequence = seq_axis if seq_dim is None else seq_dim
    batch = batch_axis if batch_dim is None else batch_dim
    return reverse_sequence_op(input, seq_lengths, seq_dim=sequence, batch_dim=batch or 0, name=name)
