"""Update programs: what a step does to a variable and its slots, element by element, as text.

A program is what remains of assignments such as ``m = b*m + c*g; p = p - r*m`` when names are left out:

    t0=mul(n0,h0);t1=mul(n1,x0);t2=sub(t0,t1);t3=add(h1,t2);h0=t2;h1=t3

`h0`, `h1` … are the variables that it changes, as they were; `x0` … tensors of their shape, as gradients
are; `n0` … scalars. Every instruction names its result (`t0`, `t1` …), and the last words say which result
each variable gets (``h0=t2``). Two parameters have the same rule if their programs are equal as text.

Expressions are the same as nested tuples, ``("add", ("mul", "n0", "h0"), …)``: what the graph is read into,
and what known rules are compared with (`known_rules.py`).

>>> text = written({"h0": ("sub", "h0", ("mul", "n0", "x0"))})
>>> text
't0=mul(n0,x0);t1=sub(h0,t0);h0=t1'
>>> read(text)
{'h0': ('sub', 'h0', ('mul', 'n0', 'x0'))}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

__all__: list[str] = []

Expression = Any  # a name, or a tuple of an instruction's name and expressions

# Of these, the bits do not depend on where in a vector an element lies.
INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "abs": torch.abs,
    "add": torch.add,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": torch.mul,
    "neg": torch.neg,
    "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt,
    "sign": torch.sign,
    "sqrt": torch.sqrt,
    "square": torch.square,
    "sub": torch.sub,
}
_OF_TYPES = {
    "Abs": "abs", "Add": "add", "AddV2": "add", "Div": "div", "Inv": "reciprocal", "Maximum": "maximum",
    "Minimum": "minimum", "Mul": "mul", "Neg": "neg", "RealDiv": "div", "Reciprocal": "reciprocal",
    "Rsqrt": "rsqrt", "Sign": "sign", "Sqrt": "sqrt", "Square": "square", "Sub": "sub",
}  # fmt: skip


def instruction_of(node: Any) -> str | None:
    """The instruction that does what a node does; None if there is none."""
    if node.type == "AddN":
        return "add" if len(node.inputs) == 2 else None
    return _OF_TYPES.get(node.type)


def written(results: dict[str, Expression]) -> str:
    """The program that gives each variable the value of its expression."""
    lines: list[str] = []
    known: dict[Expression, str] = {}

    def name_of(expression: Expression) -> str:
        if isinstance(expression, str):
            return expression
        if expression not in known:
            operands = [name_of(each) for each in expression[1:]]
            name = f"t{len(known)}"
            lines.append(f"{name}={expression[0]}({','.join(operands)})")
            known[expression] = name
        return known[expression]

    ends = [f"{variable}={name_of(expression)}" for variable, expression in results.items()]
    return ";".join([*lines, *ends])


def read_instructions(program: str) -> tuple[list[tuple[str, str, list[str]]], list[tuple[str, str]]]:
    """A program's instructions (result, name, operands), and pairs of a variable and its result."""
    pairs = [line.split("=") for line in program.split(";")]
    calls = [(name, *value[:-1].split("(")) for name, value in pairs if "(" in value]
    ends = [(name, value) for name, value in pairs if "(" not in value]
    return [(name, function, words.split(",")) for name, function, words in calls], ends


def read(program: str) -> dict[str, Expression]:
    """The expressions of a program, by variable."""
    known: dict[str, Expression] = {}
    calls, ends = read_instructions(program)
    for name, function, operands in calls:
        known[name] = (function, *[known.get(each, each) for each in operands])
    return {name: known[value] for name, value in ends}


class Instruction(NamedTuple):
    """A call of `function`, on what is in the places `operands`, into the place `result`."""

    function: Callable[..., Any]
    operands: tuple[int, ...]
    result: int


class Program(NamedTuple):
    """A program in places: first those of the variables, then tensors, numbers, and room for `temporaries`.

    `copies`: pairs of places (from, to), after all instructions.
    """

    instructions: list[Instruction]
    temporaries: int
    copies: list[tuple[int, int]]


def in_places(program: str, held: int, tensors: int, numbers: int) -> Program:
    """The program with as few places as it needs: a result lies where it belongs, if nobody reads what was
    there any more, or where an operand was that is not needed again.
    """
    starts = {"h": 0, "x": held, "n": held + tensors}
    calls, ends = read_instructions(program)
    last = {word: i for i, (_, _, operands) in enumerate(calls) for word in operands}
    last.update({value: len(calls) for _, value in ends})
    place = {word: starts[word[0]] + int(word[1:]) for word in last if word[0] in starts}
    first_free = count = held + tensors + numbers
    free: list[int] = []
    instructions = []
    for i, (name, function, operands) in enumerate(calls):
        taken = tuple([place[each] for each in operands])
        free += [place[each] for each in set(operands) if last[each] == i and place[each] >= first_free]
        own = [end for end, value in ends if value == name and last.get(end, -1) <= i]
        if own:
            place[name] = starts["h"] + int(own[0][1:])
        elif free:
            place[name] = free.pop()
        else:
            place[name], count = count, count + 1
        instructions.append(Instruction(INSTRUCTIONS[function], taken, place[name]))
    copies = [(place[value], int(name[1:])) for name, value in ends]
    return Program(instructions, count - first_free, [pair for pair in copies if pair[0] != pair[1]])


def run(program: Program, places: list[Any]) -> None:
    """Runs the program; `places` has the variables, tensors, numbers and temporaries."""
    for function, operands, result in program.instructions:
        if len(operands) == 2:
            function(places[operands[0]], places[operands[1]], out=places[result])
        else:
            function(places[operands[0]], out=places[result])
    for origin, target in program.copies:
        places[target].copy_(places[origin])
