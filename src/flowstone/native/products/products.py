"""`Product`: a matrix product of few rows with the element-wise steps after it, as a value, and its kernel.

BLAS is made for many rows; of 1 to 128, it reaches a third to a half of what the processor can do, and what
comes after the product is a pass of its own. Here the steps run on a tile of the product while it is in the
first cache. Products are added up in the type of the matrices, in another order than BLAS takes.
Equal products have equal code. Printed, a line a step:

    product float32[20,400] x float32[400,200]
    float32[20,200]
    %0 = input float32[20,200]
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowstone.framework import flags
from flowstone.framework.machine import machine
from flowstone.native.clusters import layouts
from flowstone.native.clusters.clusters import Array, Cluster
from flowstone.native.clusters.entry_points import entry_code
from flowstone.native.clusters.kernels import Code, NativeKernel
from flowstone.native.codegen import host
from flowstone.native.products.product_code import copies_panels, product_code
from flowstone.native.products.streamed_code import StreamedWriter, may_be_streamed

__all__ = ["Product", "ProductKernel", "is_suitable", "product_kernel", "product_source"]

_NAME = "new"
_MOST_ROWS = 128
_MOST_BYTES = 1 << 22  # of the second matrix: larger ones do not stay in a cache


class Product(NamedTuple):
    """`first` [rows, inner] times `second` [inner, columns], which is stored as [columns, inner] if it
    `is_transposed`; then the steps of `after`, whose shape is [rows, columns] and whose input 0 is the
    product. The inputs are the two matrices and what else `after` takes; the outputs are those of `after`.
    `pitched`: the rows of the first matrix may lie apart in memory, all by the same distance.
    """

    rows: int
    inner: int
    columns: int
    is_transposed: bool
    after: Cluster
    pitched: bool = False

    @property
    def dtype(self) -> str:
        """The type of the matrices."""
        return self.after.inputs[0].dtype

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Types and shapes of what it takes."""
        stored = (self.columns, self.inner) if self.is_transposed else (self.inner, self.columns)
        matrices = (Array(self.dtype, (self.rows, self.inner), self.pitched), Array(self.dtype, stored))
        return (*matrices, *self.after.inputs[1:])

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Types and shapes of the results."""
        return tuple([Array(self.after.dtype(i), self.after.dims) for i in self.after.outputs])

    @property
    def work(self) -> int:
        """About how many additions it takes as long as."""
        return 2 * self.multiplications + self.after.work

    @property
    def multiplications(self) -> int:
        """How many numbers are multiplied in the product."""
        return self.rows * self.inner * self.columns

    @property
    def is_streamed(self) -> bool:
        """Whether no cache holds the second matrix, and it is stored by rows."""
        size = 4 if self.dtype == "float32" else 8
        return not self.is_transposed and self.inner * self.columns * size > _MOST_BYTES

    def __repr__(self) -> str:
        return "+".join(["product", *[step.op for step in self.after.steps if step.op != "Const"]])

    def __str__(self) -> str:
        words = [f"{array.dtype}[{','.join(map(str, array.dims))}]" for array in self.inputs[:2]]
        order = " transposed" if self.is_transposed else ""
        return f"product {words[0]} x {words[1]}{order}\n{self.after}"


def is_suitable(rows: int, inner: int, columns: int, is_transposed: bool, dtype: str) -> bool:
    """Whether machine code of ours is likely to be faster than BLAS: of few rows, where rows of the second
    matrix do not fall on the same places of the caches."""
    size = 4 if dtype == "float32" else 8
    if dtype not in ("float32", "float64") or not 0 < rows <= _MOST_ROWS or not inner or columns < 8:
        return False
    if inner * columns * size > _MOST_BYTES:
        most = machine.current().profile.streamed_rows
        return 1 < rows <= most and (is_transposed or may_be_streamed(rows))  # one row: at memory's speed
    if is_transposed:
        return host.lanes() * 4 >= 4 * size  # four sums are folded into a vector
    if rows <= 12 or columns * size % 4096 != 0 or inner * columns * size <= 1 << 18:
        return True
    return copies_panels(rows, inner, columns, dtype)


class ProductKernel(NativeKernel):
    """A function of the product's inputs, and what it becomes. Rows of the first matrix, and of what the
    steps take, may lie apart; a second matrix of another layout goes to the other function."""

    cluster: Any

    def __init__(self, product: Product, otherwise: Callable[..., Any]) -> None:
        super().__init__(product, otherwise, None)  # type: ignore[arg-type]

    def _code(self) -> Code:
        product: Product = self.cluster
        return Code(("product", product), lambda: product_source(product), [_NAME], _NAME)

    def _laid_out(self, inputs: Sequence[Any]) -> Product | None:
        product: Product = self.cluster
        if not layouts.are_of(product, inputs) or not inputs[1].is_contiguous():
            return None
        after, first = product.after, inputs[0]
        if not first.is_contiguous() and layouts.has_pitch(first.shape, first.stride()):
            product = product._replace(pitched=True)
        others = layouts.pitched_for(after._replace(inputs=after.inputs[1:]), inputs[2:])
        if others is not None:
            product = product._replace(after=after._replace(inputs=(after.inputs[0], *others.inputs)))
        return None if product == self.cluster else product

    def _copied(self, inputs: Sequence[Any]) -> list[Any] | None:
        copies = layouts.copied(self.cluster, inputs)
        return copies if copies is not None and inputs[1].is_contiguous() else None


def product_kernel(product: Product, otherwise: Callable[..., Any]) -> ProductKernel:
    """A function of Python that computes the product, by `otherwise` until it is compiled."""
    kernel = ProductKernel(product, otherwise)
    if flags.NATIVE > 1:
        kernel.compile()
    return kernel


def product_source(product: Product) -> str:
    """LLVM's text of the product's function."""
    declarations: dict[str, str] = {}
    code = product_code(
        product.rows,
        product.inner,
        product.columns,
        product.is_transposed,
        product.after,
        declarations,
        product.pitched,
        StreamedWriter if product.is_streamed else None,
    )
    frees_lock = product.multiplications >= machine.current().profile.native_unlocked
    entry = entry_code(_NAME, product.inputs, product.outputs, (), frees_lock, declarations)
    return "\n".join([*declarations.values(), code, entry])
