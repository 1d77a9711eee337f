"""The rules of optimisers as steps for machine code (`native/updates/updates.py`), and updates by them.

A rule is written as what it does to an element: names of what a parameter holds, of the numbers that all
share, and ``g``, its gradient. A name that is assigned again has its new value from then on, and what is held
has its last value in the end. The expressions are those of ATen's steps on single variables
(`ops/variables/optimizer_steps.py`). Results differ from these by at most 4 units in the last place of the
largest term, and of the variable: ATen joins some products and sums to one rounding, others not.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from flowstone.framework.declarations.kernel import Call, Input
from flowstone.framework.types.shape import num_elements
from flowstone.lowering.updates.update_programs import read_instructions
from flowstone.native.clusters import kernels
from flowstone.native.codegen import host
from flowstone.native.codegen.emitter import FLOATS
from flowstone.native.numerics.elements import suits
from flowstone.native.updates.update_code import update_kernel
from flowstone.native.updates.updates import Operand, Rule, Update
from flowstone.ops.variables import optimizer_steps as steps

__all__ = ["Places", "native_call", "rule_of", "rule_of_program"]


class Written(NamedTuple):
    """A rule as text: the names of what is `held`, of the `numbers` in the order of the op, and the steps.
    `known`: numbers that must be constants of these values."""

    held: str
    numbers: str
    text: str
    known: tuple[tuple[str, float], ...] = ()


_ADAM = """
m = m + (g - m) * (1 - beta1)
v = v * beta2 + g * g * (1 - beta2)
"""
_RATE = "step = rate * sqrt(1 - power2) / (1 - power1)\n"
_ADAM_NUMBERS = "power1 power2 rate beta1 beta2 epsilon"
_SHRINK = "shrunk = maximum(abs(q) - a * l1, 0.0) * sign(q)\np = shrunk / (1 + a * l2)"
_FTRL = """
before = sqrt(n)
n = n + g * g
after = sqrt(n)
l = l + s + (before - after) * p / rate
p = (minimum(maximum(l, -l1), l1) - l) * rate / (maximum(after, 1.1754943508222875e-38) + 2 * l2 * rate)
"""
_RULES = {
    "ScatterAdd": Written("p", "", "p = p + g"),
    "ScatterSub": Written("p", "", "p = p - g"),
    "ApplyGradientDescent": Written("p", "rate", "p = p - g * rate"),
    "ApplyMomentum": Written("p a", "rate momentum", "a = a * momentum + g\np = p - a * rate"),
    "ApplyMomentum nesterov": Written(
        "p a", "rate momentum", "a = a * momentum + g\np = p - (g + a * momentum) * rate"
    ),
    "ApplyKerasMomentum": Written("p a", "rate momentum", "a = a * momentum - g * rate\np = p + a"),
    "ApplyKerasMomentum nesterov": Written(
        "p a", "rate momentum", "a = a * momentum - g * rate\np = p + a * momentum - g * rate"
    ),
    "ApplyAdam": Written("p m v", _ADAM_NUMBERS, f"{_RATE}{_ADAM}p = p - m * step / (sqrt(v) + epsilon)"),
    "ApplyAdam nesterov": Written(
        "p m v",
        _ADAM_NUMBERS,
        f"{_RATE}{_ADAM}p = p - (m * beta1 + g * (1 - beta1)) * step / (sqrt(v) + epsilon)",
    ),
    "ApplyAdamWithAmsgrad": Written(
        "p m v w",
        _ADAM_NUMBERS,
        f"{_RATE}m = m + (g - m) * (1 - beta1)\nv = v + (g * g - v) * (1 - beta2)\nw = maximum(w, v)\n"
        "p = p - m * step / (sqrt(w) + epsilon)",
    ),
    "ApplyAdaMax": Written(
        "p m v",
        "power1 rate beta1 beta2 epsilon",
        "m = m + (g - m) * (1 - beta1)\nv = maximum(v * beta2, abs(g))\n"
        "p = p - m * (rate / (1 - power1)) / (v + epsilon)",
    ),
    "ApplyAdagrad": Written("p a", "rate", "a = a + g * g\np = p - g * rate / sqrt(a)"),
    "ApplyAdagradV2": Written("p a", "rate epsilon", "a = a + g * g\np = p - g * rate / (sqrt(a) + epsilon)"),
    "ApplyAdagradDA": Written(
        "p a s",
        "rate l1 l2 count",
        "a = a + g\ns = s + g * g\n"
        "p = maximum(abs(a) - l1 * count, 0.0) * sign(a) * (-rate) / (sqrt(s) + l2 * count * rate)",
    ),
    "ApplyRMSProp": Written(
        "p s m",
        "rate rho momentum epsilon",
        "s = s * rho + g * g * (1 - rho)\nm = m * momentum + g * rate / sqrt(s + epsilon)\np = p - m",
    ),
    "ApplyCenteredRMSProp": Written(
        "p a s m",
        "rate rho momentum epsilon",
        "s = s * rho + g * g * (1 - rho)\na = a + (g - a) * (1 - rho)\n"
        "m = m * momentum + g * rate / sqrt(s - a * a + epsilon)\np = p - m",
    ),
    "ApplyAdadelta": Written(
        "p a u",
        "rate rho epsilon",
        "a = a * rho + g * g * (1 - rho)\nd = sqrt((u + epsilon) / (a + epsilon)) * g\np = p - d * rate\n"
        "u = u * rho + d * d * (1 - rho)",
    ),
    "ApplyFtrl": Written("p n l", "rate l1 l2 power", f"s = g{_FTRL}", (("power", -0.5),)),
    "ApplyFtrlV2": Written(
        "p n l", "rate l1 l2 shrinkage power", f"s = g + p * (2 * shrinkage){_FTRL}", (("power", -0.5),)
    ),
    "ApplyProximalGradientDescent": Written("p", "a l1 l2", f"q = p - g * a\n{_SHRINK}"),
    "ApplyProximalAdagrad": Written(
        "p n", "rate l1 l2", f"n = n + g * g\na = rate / sqrt(n)\nq = p - g * a\n{_SHRINK}"
    ),
    "ApplyAddSign": Written(
        "p m",
        "rate alpha decay beta",
        "m = m + (g - m) * (1 - beta)\np = p - (sign(g) * sign(m) * decay + alpha) * g * rate",
    ),
    "ApplyPowerSign": Written(
        "p m",
        "rate base decay beta",
        "m = m + (g - m) * (1 - beta)\np = p - exp(sign(g) * sign(m) * (base * decay)) * g * rate",
    ),
}
_OPERATORS = {ast.Add: "AddV2", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "RealDiv"}
_FUNCTIONS = {
    "abs": "Abs", "exp": "Exp", "maximum": "Maximum", "minimum": "Minimum", "sign": "Sign", "sqrt": "Sqrt",
}  # fmt: skip
_INSTRUCTIONS = {
    **_FUNCTIONS, "add": "AddV2", "div": "RealDiv", "mul": "Mul", "neg": "Neg", "reciprocal": "Reciprocal",
    "rsqrt": "Rsqrt", "square": "Square", "sub": "Sub",
}  # fmt: skip


@functools.cache
def _rule(written: Written, is_scaled: bool) -> Rule:
    held, numbers = written.held.split(), [*written.numbers.split(), *(["scale"] if is_scaled else [])]
    values: dict[str, Operand] = {name: f"h{i}" for i, name in enumerate(held)}
    values.update({name: f"n{i}" for i, name in enumerate(numbers)})
    values["g"] = "x0"
    found: list[tuple[str, tuple[Operand, ...]]] = []

    def named(operation: str, *operands: Operand) -> Operand:
        found.append((operation, operands))
        return f"t{len(found) - 1}"

    def value(node: Any) -> Operand:
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]
        if isinstance(node, ast.BinOp):
            return named(_OPERATORS[type(node.op)], value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return named("Neg", value(node.operand))
        return named(_FUNCTIONS[node.func.id], *map(value, node.args))

    if is_scaled:
        values["g"] = named("Mul", "x0", values["scale"])
    for line in ast.parse(written.text).body:
        assert isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        values[line.targets[0].id] = value(line.value)
    return Rule(len(held), 1, len(numbers), tuple(found), tuple([values[name] for name in held]))


def rule_of(
    update: str, use_nesterov: bool, constants: Sequence[Any], is_scaled: bool = False
) -> Rule | None:
    """The rule of an op by its name without prefix; `constants`: the values of its numbers, None of those
    that are only known in the step; `is_scaled`: whether one more number is what gradients are multiplied by
    first. None if it has no rule for such numbers."""
    written = _RULES.get(f"{update} nesterov" if use_nesterov else update)
    if written is None:
        return None
    numbers = dict(zip(written.numbers.split(), constants))
    if any(numbers[name] is None or float(numbers[name]) != value for name, value in written.known):
        return None
    return _rule(written, is_scaled)


@functools.lru_cache(maxsize=256)
def rule_of_program(program: str, held: int, given: int, numbers: int) -> Rule:
    """The rule that an update program is (`update_programs.py`), with the same bits."""
    calls, ends = read_instructions(program)
    place = {name: f"t{i}" for i, (name, _, _) in enumerate(calls)}
    lines = [
        (_INSTRUCTIONS[function], tuple([place.get(each, each) for each in operands]))
        for _, function, operands in calls
    ]
    results = {name: place[value] for name, value in ends}
    return Rule(
        held, given, numbers, tuple(lines), tuple([results.get(f"h{i}", f"h{i}") for i in range(held)])
    )


class Places(NamedTuple):
    """Which inputs of a node are what: the `held` variables of all parameters, all first ones, then all
    second ones …; the arrays that are `given`, in the same order; and the `numbers`."""

    held: Sequence[int]
    given: Sequence[int]
    numbers: Sequence[int]


def native_call(node: Any, rule: Rule | None, places: Places, run: Callable[..., None]) -> Call | None:
    """The call of machine code for a node that does this rule; None if there is none. ``run(held, given,
    *numbers)`` does the same by ATen, of two lists and Python's numbers."""
    if rule is None or not places.given or not kernels.is_on() or not host.variable_offset():
        return None
    dtype, count = node.attributes["T"].name, len(places.held) // rule.held
    sizes = [num_elements(node.inputs[i].dims) for i in places.given[:count]]
    if dtype not in FLOATS or not all(sizes):
        return None
    if not all(suits(name, [dtype] * len(operands), {}) for name, operands in rule.steps):
        return None
    constants = [node.constant(i) for i in places.numbers]
    floats = tuple([each is not None for each in constants])
    update = Update(rule, dtype, tuple([size or 0 for size in sizes]), floats)
    kernel = update_kernel(update, lambda *arguments: otherwise(*arguments))
    otherwise = _Otherwise(kernel, run, len(places.held), len(places.given), count)
    arrays = [*map(Input, places.held), *[_in_rows(node, i) for i in places.given]]
    words = [Input(i) if each is None else float(each.item()) for i, each in zip(places.numbers, constants)]
    return Call(kernel, *arrays, *words)


def _in_rows(node: Any, i: int) -> Input | Call:
    """The input, row by row: narrow products come column by column (`ops/algebra/matrices.py`), for which the
    code would need views of all arrays."""
    x = node.inputs[i]
    return Call(torch.Tensor.contiguous, Input(i)) if x.op.type == "MatMul" else Input(i)


class _Otherwise:
    """What an update's machine code calls for arguments that it is not for: it calls the code again with
    gradients in the order of their variables in memory, or else `run`."""

    def __init__(self, kernel: Any, run: Callable[..., None], held: int, given: int, count: int) -> None:
        self._kernel, self._run, self._held, self._given, self._count = kernel, run, held, given, count

    def __call__(self, *arguments: Any) -> None:
        held, given = list(arguments[: self._held]), list(arguments[self._held :][: self._given])
        numbers = arguments[self._held + self._given :]
        views = self._views(held, given) if self._kernel.is_compiled else None
        if views is not None:
            self._kernel(*views, *numbers)
        else:
            self._run(held, given, *[x if isinstance(x, float) else x.item() for x in numbers])

    def _views(self, held: list[Any], given: list[Any]) -> list[Any] | None:
        """Contiguous views of all arrays, or None if they have none, or have been made already."""
        if all([isinstance(x, torch.Tensor) for x in held]):
            return None
        variables, count = [x.tensor for x in held], self._count
        if any([x.dtype != variables[0].dtype for x in (*variables, *given)]):
            return None
        given = [steps.laid_out_as(variables[i % count], x) for i, x in enumerate(given)]
        arrays = [*variables, *given]
        for i in range(count):
            views = steps.in_memory_order(tuple(arrays[i::count]))
            if views is None:
                return None
            arrays[i::count] = views
        return arrays
