"""What a subgraph must satisfy between passes: each violation is found, and the pass is named."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf
from flowstone.framework.graphs.subgraph import Subgraph
from flowstone.framework.types import dtypes
from flowstone.rewriting.analyses.dependences import dependences
from flowstone.rewriting.invariants import check, check_kept
from flowstone.rewriting.passes import Pass
from flowstone.rewriting.simplification.partial_execution import prune


def program() -> Subgraph:
    x, y = tf.placeholder(tf.float32, [2], name="x"), tf.placeholder(tf.float32, [2], name="y")
    with tf.control_dependencies([tf.sin(x, name="sin")]):
        total = tf.add(tf.exp(x, name="exp"), y, name="total")
    return prune([total], [total.op], [x, y])


def swap(subgraph: Subgraph) -> None:
    subgraph.nodes[-1], subgraph.nodes[-2] = subgraph.nodes[-2], subgraph.nodes[-1]


def retype(subgraph: Subgraph) -> None:
    subgraph.nodes[0].outputs[0].dtype = dtypes.int32


def drop_waited(subgraph: Subgraph) -> None:
    subgraph.nodes = [node for node in subgraph.nodes if node.name != "sin"]


def drop_target(subgraph: Subgraph) -> None:
    subgraph.fetches = []
    subgraph.nodes.pop()


BROKEN = {
    "takes exp:0, which is not computed before it": swap,
    "waits for sin, which does not run before it": drop_waited,
    "has 1 inputs, declared are 2": lambda subgraph: subgraph.nodes[-1].inputs.pop(),
    "but it is int32": retype,
    "feed 0 is _Arg": lambda subgraph: subgraph.feeds.reverse(),
    "the fetch total:0 is not computed": lambda subgraph: subgraph.nodes.pop(),
    "the target total is not in the subgraph": drop_target,
}


@pytest.mark.parametrize("message", BROKEN)
def test_what_is_broken_is_named(message) -> None:
    subgraph = program()
    check(subgraph, "a_pass")
    BROKEN[message](subgraph)
    with pytest.raises(AssertionError, match=f"{message} after a_pass"):
        check(subgraph, "a_pass")


def some_pass(subgraph: Any) -> None:
    """Does nothing."""


def test_a_result_may_not_lose_what_it_depends_on() -> None:
    subgraph = program()
    before = dependences(subgraph)
    check_kept(before, before, Pass(some_pass, ""))
    subgraph.nodes[-1].inputs[1] = subgraph.nodes[-1].inputs[0]
    after = dependences(subgraph, before)
    with pytest.raises(AssertionError, match=r"fetch 0 does not depend on .* any more after some_pass"):
        check_kept(before, after, Pass(some_pass, ""))
    check_kept(before, after, Pass(some_pass, "", loses=True))
