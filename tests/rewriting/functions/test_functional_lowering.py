"""Functional control flow as primitives: Switches and Merges, and frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.functions.function import Defun
from flowstone.ops.control import functional_forms as forms
from flowstone.rewriting.functions.function_inlining import inline_functions, is_call
from flowstone.rewriting.invariants import check
from flowstone.rewriting.simplification.partial_execution import prune


@pytest.fixture
def x():
    return tf.placeholder(tf.float32, [2], name="x")


@pytest.fixture
def p():
    return tf.placeholder(tf.bool, [], name="p")


def function(name: str, body: Callable[..., Any], *types: Any, **options: Any) -> Any:
    return Defun(*(types or (tf.float32,)), func_name=name, **options)(body)


def inlined(fetches: Sequence[Any], feeds: Sequence[Any], targets: Sequence[Any] = ()) -> list[str]:
    """The lines of the subgraph afterwards; no call is left and all invariants hold."""
    subgraph = prune(fetches, list(targets), feeds)
    inline_functions(subgraph)
    check(subgraph, "inline_functions")
    assert not any(is_call(node) for node in subgraph.nodes)
    return str(subgraph).splitlines()


def test_a_conditional_becomes_switches_and_merges(x, p) -> None:
    then, other = function("Then", lambda a: a * 2.0), function("Else", lambda a: tf.exp(a))
    assert inlined(forms.If(p, [x], then, other, name="if"), [p, x]) == [
        "%0 = _Arg() index=0 : bool[]  # p",
        "%1 = _Arg() index=1 : float32[2]  # x",
        "%2 = Switch(%1, %0) : float32[2], float32[2]  # if/switch",
        "%3 = Switch(%0, %0) : bool[], bool[]  # if/switch",
        "%4 = Identity(%3) : bool[]  # if/branch_0/pivot",
        "%5 = Exp(%2) : float32[2]  # if/branch_0/Exp",
        "%6 = Identity(%3:1) : bool[]  # if/branch_1/pivot",
        "%7 = Const() value=2. : float32[]  # if/branch_1/mul/y",
        "%8 = Mul(%2:1, %7) : float32[2]  # if/branch_1/mul_0",
        "%9 = Merge(%5, %8) : float32[2], int32[]  # if/merge_0",
        "return %9",
    ]


def test_a_loop_becomes_a_frame_into_which_constants_enter(x) -> None:
    types = tf.float32, tf.float32
    goes_on = function("GoesOn", lambda a, k: tf.less(a[0], k), *types)
    body = function("Body", lambda a, k: (a * k, k), *types)
    lines = inlined([forms.While([x, tf.constant(9.0, name="k")], goes_on, body, name="loop")[0]], [x])
    kinds = [line.split(" = ")[1].split("(")[0] for line in lines[:-1]]
    assert kinds.count("Enter") == 2 and kinds.count("Merge") == kinds.count("NextIteration") == 1
    assert "%4 = Enter(%1) frame_name='loop' is_constant=True : float32[]  # loop/Enter" in lines
    assert any("NextIteration" in line and "loop/NextIteration" in line for line in lines)
