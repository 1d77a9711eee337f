"""Times the torch function that one would write for an op, eagerly: see `scaled_cases.py`.

FUNCTIONS has the ops that torch has a function for, with the arguments of their cases.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from scaled_cases import subjects

from sweep_workers import serve

SUBJECTS = {subject.name: subject for subject in subjects(int(os.environ["BYTES"]), os.environ["DTYPE"])}


def _axes(x: Any) -> tuple[int, ...]:
    return tuple(int(axis) for axis in x.reshape(-1))


FUNCTIONS: dict[str, Any] = {
    "AddV2": torch.add,
    "AddN": lambda xs: sum(xs[1:], xs[0]),
    "All": lambda x, axes: torch.all(x, int(axes.reshape(-1)[0])),
    "Any": lambda x, axes: torch.any(x, int(axes.reshape(-1)[0])),
    "BatchMatMul": torch.matmul,
    "BatchMatMulV2": torch.matmul,
    "BiasAdd": torch.add,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Conj": torch.conj_physical,  # these three have results of their own, where torch's usual ones are views
    "Imag": lambda x: x.imag.contiguous(),
    "Elu": torch.nn.functional.elu,
    "Equal": torch.eq,
    "GreaterEqual": torch.ge,
    "Greater": torch.gt,
    "IsFinite": torch.isfinite,
    "IsInf": torch.isinf,
    "IsNan": torch.isnan,
    "L2Loss": lambda x: x.square().sum() / 2,
    "Less": torch.lt,
    "LessEqual": torch.le,
    "LogSoftmax": lambda x: torch.log_softmax(x, -1),
    "MatMul": torch.matmul,
    "Max": lambda x, axes: torch.amax(x, _axes(axes)),
    "Mean": lambda x, axes: torch.mean(x, _axes(axes)),
    "Min": lambda x, axes: torch.amin(x, _axes(axes)),
    "NotEqual": torch.ne,
    "Real": lambda x: x.real.contiguous(),
    "RealDiv": torch.div,
    "Relu6": torch.nn.functional.relu6,
    "Select": torch.where,
    "SelectV2": torch.where,
    "Selu": torch.selu,
    "Softmax": lambda x: torch.softmax(x, -1),
    "Softplus": torch.nn.functional.softplus,
    "Softsign": torch.nn.functional.softsign,
    "SquaredDifference": lambda x, y: (x - y).square(),
    "Sum": lambda x, axes: torch.sum(x, _axes(axes)),
    "Transpose": lambda x, order: x.permute(_axes(order)).contiguous(),
}
_PLAIN = (
    "Abs Acos Acosh Add Angle Asin Asinh Atan Atan2 Atanh Ceil Complex Cos Cosh Digamma Erf Erfc Exp "
    "Expm1 Floor Igamma Igammac Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul "
    "Neg Pow Reciprocal Relu Round Rsqrt Sigmoid Sign Sin Sinh Sqrt Square Sub Tan Tanh"
)
_OWN_NAMES = {"LogicalAnd": "logical_and", "LogicalNot": "logical_not", "LogicalOr": "logical_or"}
FUNCTIONS |= {op: getattr(torch, _OWN_NAMES.get(op, op.lower())) for op in _PLAIN.split()}


def prepared(op: str, way: int) -> Callable[[], object]:
    """A call of the op's function."""
    function = FUNCTIONS[op]

    def tensor(value: Any) -> Any:
        return [tensor(each) for each in value] if isinstance(value, list) else torch.from_numpy(value)

    arguments = [tensor(value) for value in SUBJECTS[op].ways[way]()[0]]
    if not GRADIENTS:
        return lambda: function(*arguments)
    by = [x.requires_grad_() for x in arguments if x.is_floating_point()]
    dy = torch.ones_like(function(*arguments))
    return lambda: torch.autograd.grad(function(*arguments), by, dy)


GRADIENTS = bool(os.environ["GRADIENTS"])
torch.set_grad_enabled(GRADIENTS)
serve(prepared)
