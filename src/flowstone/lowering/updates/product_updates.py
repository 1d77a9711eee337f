"""Descent by a gradient that is a matrix product: ``var -= alpha * a b`` in BLAS's own accumulation.

Plans only: `update_fusion.py` makes these nodes of a product and the update that alone takes it.
The sum of a matrix's rows or columns counts as one: its product with ones.

The gradient is never made, which for the weights of a layer with few examples is most of the step's memory
traffic: 7 ms instead of 49 for 9216 x 4096 weights and 16 examples.

BLAS goes through weights column by column and, where their rows are multiples of 4 KiB apart, finds each in
the place where its caches hold the others. With few examples it therefore gets a few rows at a time: 13 ms
instead of 34 for 25088 x 4096 weights and 4 examples.

Where there are more examples and oneDNN's product is the faster one, the gradient of a large variable is
made and used a block of rows at a time: for 64 examples 16 ms instead of 56, for 256 60 instead of 94, 4 MB
instead of 151, and the same bits.

Weights of few columns are kept column by column from the first such step on: BLAS then needs a quarter of the
time (24 µs instead of 88 for 784 x 10 weights and 100 examples). Machine code
(`native/products/narrow_products.py`) takes 16 on one thread. With many examples oneDNN makes the gradient,
which is then subtracted: 50 µs instead of 113 for 800 x 10 weights and 512 examples.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from flowstone.framework.declarations import work
from flowstone.framework.declarations.kernel import CPU, GPU, Call, Input
from flowstone.framework.declarations.operation import op
from flowstone.framework.machine import onednn
from flowstone.framework.machine.machine import Machine
from flowstone.framework.types import dtypes
from flowstone.lowering.products.narrow_layers import is_compiled
from flowstone.native.products.narrow_products import Sizes, descent
from flowstone.ops.numbers.elementwise import FLOATS

__all__: list[str] = []


def _update(transpose_a: bool, transpose_b: bool, by_columns: bool) -> Any:
    def descend(variable: Any, alpha: Any, a: Any, b: Any) -> Any:
        tensor = _by_columns(variable) if by_columns else variable.tensor
        a, b = a.t() if transpose_a else a, b.t() if transpose_b else b
        if isinstance(alpha, torch.Tensor):
            tensor.addmm_(a * -alpha, b)
        elif 0 < abs(alpha) < math.inf:
            tensor.addmm_(a, b, alpha=-alpha)
        else:  # BLAS leaves out what it multiplies by 0, NaN too, and multiplies the terms by infinity
            tensor.sub_(torch.mm(a, b), alpha=alpha)
        return variable

    return descend


def _by_columns(variable: Any) -> Any:
    """The variable's matrix, from now on kept column by column."""
    tensor = variable.tensor
    if tensor.is_contiguous():
        tensor = variable.tensor = tensor.t().contiguous().t()
    return tensor


def _update_narrow(transpose_a: bool, transpose_b: bool) -> Any:
    product = onednn.product

    def descend_narrow(variable: Any, alpha: Any, a: Any, b: Any) -> Any:
        transposed_b, a = b if transpose_b else b.t(), a.t() if transpose_a else a
        transposed_product = product(transposed_b, a, None, "none", (), "")
        _by_columns(variable).t().sub_(transposed_product, alpha=alpha)
        return variable

    return descend_narrow


_PAGE = 1024  # float32 elements of 4 KiB
_FEW_ROWS = {**dict.fromkeys(range(1, 9), 8), **dict.fromkeys(range(9, 13), 16)}  # by the number of terms


def _rows_at_a_time(machine: Machine, rows: int, terms: int, columns: int) -> int:
    """How many rows BLAS shall get at a time; 0: all."""
    height = _FEW_ROWS.get(terms, 0)
    if not height or rows % height or columns % _PAGE:
        return 0
    return height if rows * columns >= machine.profile.updates_by_rows else 0


def _update_by_rows(transpose_a: bool, transpose_b: bool, height: int) -> Any:
    whole = _update(transpose_a, transpose_b, False)

    def descend_by_rows(variable: Any, alpha: Any, a: Any, b: Any) -> Any:
        tensor = variable.tensor
        if not tensor.is_contiguous() or not 0 < abs(alpha) < math.inf:
            return whole(variable, alpha, a, b)
        a, b = a.t() if transpose_a else a, b.t() if transpose_b else b
        parts = tensor.unflatten(0, (-1, height))
        parts.baddbmm_(a.unflatten(0, (-1, height)), b.expand(parts.shape[0], *b.shape), alpha=-alpha)
        return variable

    return descend_by_rows


def _update_in_blocks(transpose_a: bool, transpose_b: bool, rows: int, block: int) -> Any:
    ends = [(start, min(start + block, rows)) for start in range(0, rows, block)]
    product = onednn.product

    def descend(variable: Any, alpha: Any, a: Any, b: Any) -> Any:
        tensor = variable.tensor
        a, transposed_b = a.t() if transpose_a else a, b if transpose_b else b.t()
        for start, end in ends:
            tensor[start:end].sub_(product(a[start:end], transposed_b, None, "none", (), ""), alpha=alpha)
        return variable

    return descend


def _product_kernel(node: Any, env: Any) -> Any:
    transpose_a, transpose_b = node.attributes["transpose_a"], node.attributes["transpose_b"]
    rows, columns = node.static_shape(2)[transpose_a], node.static_shape(3)[not transpose_b]
    machine, sizes = env.machine, (rows, node.static_shape(2)[not transpose_a], columns)
    is_cpu = env.device.type == "cpu"
    has_choice = is_cpu and node.dtype(2) is dtypes.float32
    if has_choice and machine.adds_narrow_products(*sizes):
        update = _update_narrow(transpose_a, transpose_b)
    elif has_choice and (few := _rows_at_a_time(machine, *sizes)):
        update = _update_by_rows(transpose_a, transpose_b, few)
    elif has_choice and (block := machine.rows_of_a_block(*sizes)):
        update = _update_in_blocks(transpose_a, transpose_b, rows, block)
    else:
        update = _update(transpose_a, transpose_b, is_cpu and machine.prefers_columns(rows, columns))
    if is_cpu and transpose_a and is_compiled(node.inputs[2], sizes[1], rows, columns):
        update = descent(Sizes(sizes[1], rows, columns), transpose_b, update)
    return Call(update, Input(0), _rate(node, env), Input(2), Input(3))


def _sum_update(transposed: bool, ones: Any) -> Any:
    def descend_by_sum(variable: Any, alpha: Any, matrix: Any) -> Any:
        columns = matrix if transposed else matrix.t()
        if isinstance(alpha, torch.Tensor):
            variable.tensor.addmv_(columns, ones * -alpha)
        elif 0 < abs(alpha) < math.inf:
            variable.tensor.addmv_(columns, ones, alpha=-alpha)
        else:
            variable.tensor.sub_(columns.sum(1), alpha=alpha)
        return variable

    return descend_by_sum


def _sum_kernel(node: Any, env: Any) -> Any:
    transposed = node.attributes["axis"] == 1
    terms = node.static_shape(2)[1 if transposed else 0]
    ones = torch.ones(terms, dtype=node.dtype(2).torch, device=env.device)
    return Call(_sum_update(transposed, ones), Input(0), _rate(node, env), Input(2))


def _rate(node: Any, env: Any) -> Any:
    """The argument for input 1: a Python number, unless reading it would wait for a device."""
    value = node.constant(1)
    if value is not None:
        return value.item()
    return Call(torch.Tensor.item, Input(1)) if env.device.type == "cpu" else Input(1)


def _declare(name: Any, operands: Any, attributes: Any, kernel: Any, cost: work.Cost) -> Any:
    """The ops on a reference and on a resource."""
    for prefix, held, out in (("_", "Ref(T)", "out: Ref(T)"), ("_Resource", "resource", "")):
        declaration = op(
            f"{prefix}{name}",
            f"var: {held}, alpha: T, {operands} -> {out}",
            attributes,
            T=FLOATS,
            mutates=[0],
            aliases=[0] if out else [],
            stateful=not out,
            capturable=True,
            cost=cost,
        )
        declaration.infer(_held_dims if out else _nothing)
        declaration.kernel(CPU, GPU)(kernel)
        declaration.not_differentiable()


def _held_dims(node: Any) -> Any:
    return node.dims(0)


def _nothing(node: Any) -> Any:
    return None


_declare(
    "ApplyProduct",
    "a: T, b: T",
    "transpose_a: bool = false ; transpose_b: bool = false",
    _product_kernel,
    work.product_update,
)
_declare("ApplySum", "matrix: T", "axis: int", _sum_kernel, work.per_element_of(work.input_at(2), 2))
