"""Einsum: Einstein sums of any operands, with ``...``, with letters that repeat, of unknown rank.

An equation has a term for each input and one for the output: letters name axes, ``...`` any number of axes,
which broadcast. A letter that the output lacks is summed over; one that an input has twice takes its
diagonal. The gradient of an input is the Einstein sum of the output's gradient with the other inputs; ones
stand for the letters that only this input has, an identity matrix for each repetition of a letter.

>>> split_equation("...ij,jk->...ik")
(['...ij', 'jk'], '...ik')
>>> explicit("...ij", 4)
['.0', '.1', 'i', 'j']
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import F, Gradients, Shapes, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, broadcast
from flowstone.ops.numbers.elementwise import conjugate, sum_to
from flowstone.ops.numbers.unsigned_integers import modular

einsum_op = op("Einsum", "inputs: N*T -> output: T", "equation: string", T=None, multiplies="contraction")


def split_equation(equation: str) -> tuple[list[str], str]:
    """The terms of the inputs, and the output's."""
    left, _, output = equation.partition("->")
    return left.split(","), output


def explicit(term: str, rank: int) -> list[str]:
    """A label for each axis of an input of this rank; those of ``...`` are counted from its end.

    ValueError if the rank does not suit the term.
    """
    before, dots, after = term.partition("...")
    letters = len(before) + len(after)
    if rank < letters or (not dots and rank != letters):
        least = "at least " if dots else ""
        raise ValueError(f"Shape must be {least}rank {letters} but is rank {rank} for the term {term!r}")
    broadcasting = [f".{i}" for i in range(rank - letters)]
    return [*before, *broadcasting, *after]


def _sizes(terms: list[str], shapes: list[Dims]) -> tuple[dict[str, int | None], Dims]:
    """The size of each letter, and what all ``...`` broadcast to. ValueError where sizes differ."""
    sizes: dict[str, int | None] = {}
    dots: Dims = ()
    for term, dims in zip(terms, shapes):
        if dims is None:
            dots = None if "..." in term else dots
            sizes = {**dict.fromkeys(term.replace("...", "")), **sizes}
            continue
        labelled = list(zip(explicit(term, len(dims)), dims))
        for label, size in labelled:
            known = sizes.get(label)
            if label[0] != "." and None not in (size, known) and size != known:
                raise ValueError(f"Dimensions must be equal, but are {known} and {size}")
            if label[0] != ".":
                sizes[label] = known if size is None else size
        dots = broadcast(dots, tuple([size for label, size in labelled if label[0] == "."]))
    return sizes, dots


def output_shape(terms: list[str], output: str, shapes: list[Dims]) -> Dims:
    """The static shape of the sum. ValueError where sizes or ranks do not match."""
    sizes, dots = _sizes(terms, shapes)
    before, mark, after = output.partition("...")
    if not mark and dots:
        raise ValueError(f"Shape must be at most rank 0 but is rank {len(dots)} without ... in the output")
    if mark and dots is None:
        return None
    return (*[sizes[x] for x in before], *(dots or ()), *[sizes[x] for x in after])


@einsum_op.infer
def _(node: Node) -> Shapes:
    terms, output = split_equation(node.attributes["equation"])
    if len(terms) != len(node.inputs):
        raise ValueError(f"Expected {len(terms)} inputs but got {len(node.inputs)}")
    return output_shape(terms, output, [node.dims(i) for i in range(len(terms))])


@einsum_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    equation = node.attributes["equation"]
    terms, output = split_equation(equation)
    product = _product(node.dtype(0), equation)

    def compute(*inputs: torch.Tensor) -> torch.Tensor:
        try:
            _, dots = _sizes(terms, [tuple(x.shape) for x in inputs])
        except ValueError as error:
            raise errors.InvalidArgumentError(None, None, str(error)) from None
        if dots and "..." not in output:
            raise errors.InvalidArgumentError(None, None, f"the output of {equation} has no place for {dots}")
        result: torch.Tensor = product(*inputs)
        is_view = len(inputs) == 1 and _place(result) == _place(inputs[0])
        return result.clone(memory_format=torch.contiguous_format) if is_view else result

    return compute


def _place(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr()


def _product(dtype: DType, equation: str) -> Callable[..., torch.Tensor]:
    """ATen's sum; that of integers is of int64, which wraps around as theirs does when it is made narrow, or
    a product of matrices of their own type."""
    if not dtype.is_integer:
        return lambda *inputs: torch.einsum(equation, inputs)
    if dtype is dtypes.uint64:
        return modular(dtype, lambda *inputs: torch.einsum(equation, inputs))
    if dtype is dtypes.int32:
        product = _matrix_product(*split_equation(equation))
        if product is not None:
            return product
    return lambda *inputs: torch.einsum(equation, [x.to(torch.int64) for x in inputs]).to(dtype.torch)


def _matrix_product(terms: list[str], output: str) -> Callable[..., torch.Tensor] | None:
    """The sum over letters that both of two inputs have, as one product; None if it is none, or one of many
    matrices. ATen's loops over integers are several times faster for whole matrices, row by row, than for
    those that `torch.einsum` makes."""
    if len(terms) != 2 or "." in "".join(terms) or any(len(set(term)) < len(term) for term in terms):
        return None
    left, right = terms
    summed = [letter for letter in left if letter in right]
    rows, columns = ([x for x in one if x not in other] for one, other in ((left, right), (right, left)))
    if not summed or sorted(output) != sorted(rows + columns):
        return None
    to_left = [left.index(letter) for letter in rows + summed]
    to_right = [right.index(letter) for letter in summed + columns]
    to_output = [(rows + columns).index(letter) for letter in output]

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.permute(to_left), y.permute(to_right)
        outer, inner = x.shape[: len(rows)], y.shape[len(summed) :]
        length = math.prod(x.shape[len(rows) :])
        x, y = x.reshape(math.prod(outer), length), y.reshape(length, math.prod(inner))
        return torch.mm(x.contiguous(), y.contiguous()).view((*outer, *inner)).permute(to_output).contiguous()

    return product


@einsum_op.gradient
def _(op: Operation, dy: Tensor) -> Gradients:
    terms, output = split_equation(op.attributes["equation"])
    return [_input_gradient(op, dy, terms, output, i) for i in range(len(terms))]


def _input_gradient(op: Operation, dy: Tensor, terms: list[str], output: str, at: int) -> Tensor:
    x, term = op.inputs[at], terms[at]
    factors = [(output, dy)]
    factors += [(other, conjugate(op.inputs[i])) for i, other in enumerate(terms) if i != at]
    available = set("".join(one for one, _ in factors))
    fresh = iter(sorted(set(string.ascii_letters) - set("".join([output, *terms]))))
    letters, axes = [], _axes_of_letters(term)
    for letter, axis in zip(term.replace("...", ""), axes):
        if letter in letters:
            repeated, letter = letter, next(fresh)
            factors.append((repeated + letter, F.MatrixDiag(_ones(x, axis))))
        elif letter not in available:
            factors.append((letter, _ones(x, axis)))
        letters.append(letter)
    if not any("..." in one for one, _ in factors):
        return _sum_of(factors, "".join(letters))
    if "..." not in term:
        every = _sum_of(factors, "..." + "".join(letters))
        extra = F.Sub(F.Rank(every), np.int32(len(letters)))
        return F.Sum(every, F.Range(np.int32(0), extra, np.int32(1)))
    before = len(term.partition("...")[0])
    leading = "..." + "".join(letters)
    target = "".join(letters[:before]) + "..." + "".join(letters[before:])
    transposed = x if leading == target else F.Einsum([x], equation=f"{target}->{leading}")
    flow = sum_to(_sum_of(factors, leading), transposed)
    return flow if leading == target else F.Einsum([flow], equation=f"{leading}->{target}")


def _axes_of_letters(term: str) -> list[int]:
    """The axis of each letter, those after ``...`` counted from the end."""
    before, _, after = term.partition("...")
    return [*range(len(before)), *range(-len(after), 0)]


def _ones(x: Tensor, axis: int) -> Tensor:
    """A vector of ones as long as an axis of x."""
    size = F.StridedSlice(F.Shape(x), [axis], [axis + 1], [1], end_mask=int(axis == -1))
    return F.Fill(size, np.ones((), x.dtype.as_numpy_dtype))


def _sum_of(factors: list[tuple[str, Tensor]], output: str) -> Tensor:
    equation = ",".join(term for term, _ in factors) + "->" + output
    return F.Einsum([factor for _, factor in factors], equation=equation)
