"""Known rules: update programs that ATen's fused optimisers compute, in one pass over memory.

A rule is known by its expressions (`update_programs.py`), whatever the variables are called. In the patterns
below `p`, `m`, `v` stand for variables, `g` for a tensor and other words for numbers. What commutes is tried
both ways, and a list has what may stand in one place.

- Adam, with moments as averages, and without the first one (RMSProp without momentum, the root's ε outside)
- Adagrad
- momentum, of gradients or of steps

An average may be written with two numbers, ``b*m + c*g``. It is one of ATen's if ``c`` is ``1 - b``, as a
node or as a constant. Programs often clip what they take a root of to [0, ∞): that is nothing to do where it
is not negative, which the kernel asks of each step's numbers.

ATen computes an average as ``m + c*(g - m)``, and products of three factors in its own order. Results differ
from the program's by at most 4 units in the last place of the largest term, and of the variable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from flowstone.lowering.updates.update_programs import Expression, read
from flowstone.ops.variables.optimizer_steps import STEP_WITHOUT_BIAS

__all__: list[str] = []

_aten: Any = torch
_COMMUTE = frozenset(("add", "mul", "maximum", "minimum"))


class Known(NamedTuple):
    """A rule: `step` takes lists of variables, gradients and numbers, all by name.

    `averages`: pairs of words (kept, share) whose numbers add up to 1. `not_negative`: the variable that
    must not be, if the program clips it. `suits`: whether ATen computes the rule for such numbers.
    """

    patterns: dict[str, Any]
    step: Callable[[dict[str, Any], dict[str, Any]], None]
    averages: tuple[tuple[str, str], ...] = ()
    not_negative: str = ""
    suits: Callable[[dict[str, Any]], bool] = lambda numbers: True


def _are_shares(numbers: dict[str, Any]) -> bool:
    """Whether ATen's corrections of averages, long after their start, are 1."""
    return all([0 <= numbers.get(word, 0.0) < 1 for word in ("b", "d")])


def _is_plain(numbers: dict[str, Any]) -> bool:
    """Whether a rate is what is left of it and 1, less 1, to the last place."""
    return bool(numbers["r"] == 0 or abs(numbers["r"]) > 1e-7)


class Use(NamedTuple):
    """A rule that a program follows: `names` are those of its words, such as ``{"p": "h0"}``."""

    rule: Known
    names: dict[str, str]
    is_clipped: bool


def _adam(lists: dict[str, Any], numbers: dict[str, Any]) -> None:
    variables, grads = lists["p"], lists["g"]
    torch._fused_adam_(
        variables, grads, lists.get("m", grads), lists["v"], [], [STEP_WITHOUT_BIAS] * len(variables),
        lr=numbers["r"], beta1=numbers.get("b", 0.0), beta2=numbers["d"], weight_decay=0.0,
        eps=numbers["e"], amsgrad=False, maximize=False,
    )  # fmt: skip


def _adagrad(lists: dict[str, Any], numbers: dict[str, Any]) -> None:
    variables = lists["p"]
    _aten._fused_adagrad_(
        variables, lists["g"], lists["v"], [STEP_WITHOUT_BIAS] * len(variables),
        lr=numbers["r"], lr_decay=0.0, weight_decay=0.0, eps=numbers["e"], maximize=False,
    )  # fmt: skip


def _momentum(lists: dict[str, Any], numbers: dict[str, Any], rate: Any, share: float) -> None:
    """m = k*m + share*g; p -= rate*m. Without `k` there would be no list of `m`: 0 is the least that is not,
    which is 0 among float32."""
    _aten._fused_sgd_(
        lists["p"], lists["g"], lists["m"], lr=rate, momentum=numbers["k"] or 1e-300, dampening=1 - share,
        nesterov=False, weight_decay=0.0, maximize=False, is_first_step=False,
    )  # fmt: skip


def _average(variable: str, kept: str, x: Any, share: str) -> Any:
    return ("add", ("mul", kept, variable), ("mul", share, x))


def _steps(direction: Any, size: Any) -> Any:
    """p less r times direction over size."""
    return ("sub", "p", [("div", ("mul", "r", direction), size), ("mul", "r", ("div", direction, size))])


_SQUARE = [("square", "g"), ("mul", "g", "g")]
_MEAN, _MEAN_SQUARE = _average("m", "b", "g", "c"), _average("v", "d", _SQUARE, "f")
_SUM = ("add", "v", _SQUARE)


def _size(squares: Any) -> Any:
    """The root of squares that may be clipped, and ε."""
    clipped = [
        ("maximum", ("minimum", squares, "infinity"), "zero"),
        ("minimum", ("maximum", squares, "zero"), "infinity"),
        ("maximum", squares, "zero"),
    ]
    return ("add", [("sqrt", squares), ("sqrt", clipped)], "e")


_STEP_MEAN = ("sub", ("mul", "k", "m"), ("mul", "r", "g"))
_GRADIENT_MEAN = ("add", ("mul", "k", "m"), "g")
RULES = (
    Known(
        {"m": _MEAN, "v": _MEAN_SQUARE, "p": _steps(_MEAN, _size(_MEAN_SQUARE))},
        _adam,
        (("b", "c"), ("d", "f")),
        not_negative="v",
        suits=_are_shares,
    ),
    Known(
        {"v": _MEAN_SQUARE, "p": _steps("g", _size(_MEAN_SQUARE))},
        _adam,
        (("d", "f"),),
        not_negative="v",
        suits=_are_shares,
    ),
    Known({"v": _SUM, "p": _steps("g", _size(_SUM))}, _adagrad, not_negative="v"),
    Known(
        {"m": _STEP_MEAN, "p": ("add", "p", _STEP_MEAN)},
        lambda lists, numbers: _momentum(lists, numbers, -1.0, -numbers["r"]),
        suits=_is_plain,
    ),
    Known(
        {"m": _GRADIENT_MEAN, "p": ("sub", "p", ("mul", "r", _GRADIENT_MEAN))},
        lambda lists, numbers: _momentum(lists, numbers, numbers["r"], 1.0),
    ),
)


def known_rule(program: str, constants: dict[str, Any], complements: set[tuple[str, str]]) -> Use | None:
    """The rule that a program follows. `constants`: values of numbers that are known; `complements`: pairs
    of numbers of which the second is 1 less the first."""
    results = read(program)
    for rule in RULES:
        for names in _assigned(rule, results):
            if _is_sound(rule, names, constants, complements):
                return Use(rule, names, "zero" in names)
    return None


def _assigned(rule: Known, results: dict[str, Expression]) -> Iterator[dict[str, str]]:
    """The ways in which the rule's words are the program's names."""
    if len(results) != len(rule.patterns):
        return
    found: list[dict[str, str]] = [{}]
    for word, pattern in rule.patterns.items():
        found = [
            more
            for names in found
            for variable, expression in results.items()
            if names.get(word, variable) == variable
            for more in _matched(pattern, expression, {**names, word: variable})
        ]
    yield from found


def _matched(pattern: Any, expression: Expression, names: dict[str, str]) -> Iterator[dict[str, str]]:
    if isinstance(pattern, list):
        for each in pattern:
            yield from _matched(each, expression, names)
    elif isinstance(pattern, str):
        kind = "h" if pattern in ("p", "m", "v") else "x" if pattern == "g" else "n"
        if isinstance(expression, str) and expression[0] == kind:
            if names.get(pattern, expression) == expression:
                yield {**names, pattern: expression}
    elif not isinstance(expression, str) and expression[0] == pattern[0]:
        orders = [expression[1:]]
        if pattern[0] in _COMMUTE:
            orders.append(expression[:0:-1])
        for operands in orders:
            yield from _all_matched(pattern[1:], operands, names)


def _all_matched(patterns: Any, operands: Any, names: dict[str, str]) -> Iterator[dict[str, str]]:
    if not patterns:
        yield names
        return
    for more in _matched(patterns[0], operands[0], names):
        yield from _all_matched(patterns[1:], operands[1:], more)


def _is_sound(rule: Known, names: dict[str, str], constants: dict[str, Any], complements: Any) -> bool:
    variables = [names[word] for word in rule.patterns]
    if len(set(variables)) < len(variables):
        return False
    for word, value in (("zero", 0.0), ("infinity", np.inf)):
        if word in names and constants.get(names[word]) != value:
            return False
    pairs = [(names[kept], names[share]) for kept, share in rule.averages]
    return all([pair in complements or _add_up(*map(constants.get, pair)) for pair in pairs])


def _add_up(kept: Any, share: Any) -> bool:
    """Whether both are what a float of their type is of β and 1 - β, for some β."""
    if kept is None or share is None:
        return False
    return bool(kept.dtype.type(1 - float(share)) == kept or share.dtype.type(1 - float(kept)) == share)


def exact_share(kept: float, share: float) -> float:
    """β such that both ``β`` and ``1 - β``, rounded, are the two numbers of an average."""
    return 1 - share if np.float32(1 - share) == np.float32(kept) else kept
