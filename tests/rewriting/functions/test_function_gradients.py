"""The gradient of a function in a plan: with its call, and without."""

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


def function(name: str, body: Callable[..., Any], *types: Any, **options: Any) -> Any:
    return Defun(*(types or (tf.float32,)), func_name=name, **options)(body)


def inlined(fetches: Sequence[Any], feeds: Sequence[Any], targets: Sequence[Any] = ()) -> list[str]:
    """The lines of the subgraph afterwards; no call is left and all invariants hold."""
    subgraph = prune(fetches, list(targets), feeds)
    inline_functions(subgraph)
    check(subgraph, "inline_functions")
    assert not any(is_call(node) for node in subgraph.nodes)
    return str(subgraph).splitlines()


def test_a_gradient_takes_the_nodes_of_the_call(x) -> None:
    """The function is not computed again: its one Tanh is there once."""
    y = function("Bent", lambda a: tf.tanh(a, name="bend"))(x, name="call")
    lines = inlined([y, *tf.gradients(y, x)], [x])
    assert sum(" = Tanh(" in line for line in lines) == 1
    assert sum(" = TanhGrad(%1," in line for line in lines) == 1


def test_a_gradient_without_its_call_computes_the_function(x) -> None:
    bent = function("Bent", lambda a: tf.tanh(a, name="bend"))
    lines = inlined(forms.Gradient([x, tf.ones([2])], bent), [x])
    assert sum(" = Tanh(" in line for line in lines) == 1
