"""Python's operators on tensors, and on what becomes a tensor.

``x + 1`` adds an AddV2 named ``add`` with the constant ``add/y``; the names are TensorFlow's. The other
operand is converted to the tensor's element type. ``==`` and ``!=`` keep comparing identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.declarations.building import operand, place_of
from flowstone.framework.declarations.operation import F, OpDeclaration
from flowstone.framework.tensors.composite import SparseTensor
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.ops.algebra import matrices
from flowstone.ops.numbers import arithmetic, comparisons, division

__all__: list[str] = []

_Function = Callable[[Any, Any, str], Tensor]
_Method = Callable[..., Tensor]


def _add(x: Tensor, y: Tensor, name: str) -> Tensor:
    return (F.Add if x.dtype.base_dtype is dtypes.string else F.AddV2)(x, y, name=name)


def _logic(of_bool: _Function, of_integers: Callable[[Tensor, Tensor], Tensor]) -> _Function:
    def combine(x: Tensor, y: Tensor, name: str) -> Tensor:
        if x.dtype.base_dtype is dtypes.bool:
            return of_bool(x, y, name)
        with place_of(x).name_scope(name):
            return of_integers(x, y)

    return combine


def _xor(x: Tensor, y: Tensor, name: str) -> Tensor:
    with place_of(x).name_scope(name) as scope:
        return comparisons.logical_xor(x, y, scope)


def _named(op_name: str) -> _Function:
    return lambda x, y, name: getattr(F, op_name)(x, y, name=name)


_BINARY: dict[str, tuple[str, _Function]] = {  # Python's name: name in the graph, function
    "add": ("add", _add),
    "sub": ("sub", _named("Sub")),
    "mul": ("mul", _named("Mul")),
    "truediv": ("truediv", division.truediv),
    "div": ("div", division.div),
    "floordiv": ("floordiv", _named("FloorDiv")),
    "mod": ("mod", _named("FloorMod")),
    "pow": ("pow", _named("Pow")),
    "matmul": ("matmul", lambda x, y, name: matrices.matmul(x, y, name=name)),
    "and": ("and", _logic(lambda x, y, name: F.LogicalAnd(x, y, name=name), lambda x, y: F.BitwiseAnd(x, y))),
    "or": ("or", _logic(lambda x, y, name: F.LogicalOr(x, y, name=name), lambda x, y: F.BitwiseOr(x, y))),
    "xor": ("xor", _logic(_xor, lambda x, y: F.BitwiseXor(x, y))),
}
_COMPARISONS = {"lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual"}


def _operators(name: str, reflected: str, function: _Function) -> tuple[_Method, _Method]:
    """The methods ``x . y`` and ``y . x`` of a tensor x.

    An object of a library that is no tensor, but has the `reflected` method, is asked for ``x . y``.
    """

    def left(x: Tensor, y: Any) -> Any:
        if type(y) is Tensor:
            return function(x, y, name)
        if isinstance(y, SparseTensor):
            return NotImplemented  # it knows how to combine with a tensor
        with (graph := place_of(x)).as_default(), graph.name_scope(name) as scope:
            try:
                other = operand(y, x.dtype.base_dtype, "y")
            except TypeError:
                if type(y).__module__ in ("builtins", "numpy") or not hasattr(type(y), reflected):
                    raise
                return NotImplemented
            return function(x, other, scope)

    def right(y: Tensor, x: Any) -> Any:
        with (graph := place_of(y)).as_default(), graph.name_scope(name) as scope:
            return function(operand(x, y.dtype.base_dtype, "x"), y, scope)

    return left, right


def _comparison(name: str) -> _Method:
    def compare(x: Tensor, y: Any) -> Tensor:
        declaration: OpDeclaration = getattr(F, name)
        return declaration(x, y)

    return compare


def _invert(x: Tensor) -> Tensor:
    return F.LogicalNot(x) if x.dtype.base_dtype is dtypes.bool else F.Invert(x)


def _methods() -> dict[str, _Method]:
    methods: dict[str, _Method] = {
        "__neg__": lambda x: F.Neg(x),
        "__abs__": lambda x: arithmetic.abs(x),
        "__invert__": _invert,
    }
    for python_name, (name, function) in _BINARY.items():
        methods[f"__{python_name}__"], methods[f"__r{python_name}__"] = _operators(
            name, f"__r{python_name}__", function
        )
    for python_name, name in _COMPARISONS.items():
        methods[f"__{python_name}__"] = _comparison(name)
    return methods


OPERATORS = _methods()


def install_operators(cls: type, convert: Callable[[Any], Tensor]) -> None:
    """Gives `cls` the operators of Tensor; `convert(self)` makes the tensor that they are applied to."""
    for name, method in OPERATORS.items():
        setattr(cls, name, _converted(method, convert))


def _converted(method: _Method, convert: Callable[[Any], Tensor]) -> _Method:
    def operate(self: Any, *operands: Any) -> Tensor:
        return method(convert(self), *operands)

    return operate


for _name, _method in OPERATORS.items():
    Tensor.overload(_name, _method)


# ---- of sparse tensors, with dense ones that broadcast to them


def _times(sparse: SparseTensor, dense: Any) -> Any:
    return _with_dense("mul", F.SparseDenseCwiseMul, sparse, dense)


def _over(sparse: SparseTensor, dense: Any) -> Any:
    return _with_dense("truediv", F.SparseDenseCwiseDiv, sparse, dense)


def _with_dense(name: str, declaration: OpDeclaration, sparse: SparseTensor, dense: Any) -> Any:
    """The elements combined with the dense ones at their places; integers are divided as float64."""
    if isinstance(dense, SparseTensor):
        return NotImplemented
    values = sparse.values
    with (graph := place_of(sparse)).as_default(), graph.name_scope(name) as scope:
        y = convert_to_tensor(dense, values.dtype.base_dtype, "y")
        if name == "truediv" and values.dtype.is_integer:
            wide = dtypes.float32 if values.dtype.size < 4 else dtypes.float64
            values, y = F.Cast(values, DstT=wide), F.Cast(y, DstT=wide)
        found = declaration(sparse.indices, values, sparse.dense_shape, y, name=scope)
    return SparseTensor(sparse.indices, found, sparse.dense_shape)


SPARSE_OPERATORS: dict[str, Callable[[SparseTensor, Any], Any]] = {
    "__mul__": _times,
    "__rmul__": _times,
    "__truediv__": _over,
    "__div__": _over,
}
for _operator, _function in SPARSE_OPERATORS.items():
    setattr(SparseTensor, _operator, _function)
