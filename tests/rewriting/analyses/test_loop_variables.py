"""What a loop hands from one iteration to the next."""

from __future__ import annotations

import flowstone as tf
from flowstone.rewriting.analyses.loop_variables import (
    condition_variables,
    constant_of,
    entered,
    loop_variables,
)
from flowstone.rewriting.simplification.partial_execution import prune


def test_each_variable_has_its_five_nodes() -> None:
    x = tf.placeholder(tf.float32, [])
    _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, 1.0])
    subgraph = prune([y], [], [x])
    counter, product = loop_variables(subgraph, subgraph.consumers())
    for each in (counter, product):
        kinds = [n.type for n in (each.enter, each.merge, each.switch, each.next)]
        assert kinds == ["Enter", "Merge", "Switch", "NextIteration"]
    assert counter.exit is None, "nobody takes the counter's last value"
    assert product.exit is subgraph.fetches[0].op and product.exit.type == "Exit"
    assert product.value is product.switch.outputs[1] and product.next_value.op.type == "Mul"
    assert (constant_of(counter.enter.outputs[0]), constant_of(product.enter.outputs[0])) == (0, 1.0)


def test_what_comes_in_unchanged_is_known_outside() -> None:
    x = tf.placeholder(tf.float32, [])
    y = tf.while_loop(lambda y: y < 9, lambda y: y * x, [1.0])
    subgraph = prune([y], [], [x])
    (mul,) = [n for n in subgraph.nodes if n.type == "Mul"]
    first, second = mul.inputs
    assert entered(second) is subgraph.feeds[0] and entered(first) is None
    (variable,) = loop_variables(subgraph, subgraph.consumers())
    assert entered(variable.enter.outputs[0]) is None, "it is the first iteration's alone"


def test_only_scalar_numbers_are_constants() -> None:
    fed = tf.placeholder(tf.float32, [])
    given = [tf.constant(3), tf.constant([3]), tf.constant("3"), tf.constant(True), fed]
    subgraph = prune(given, [], [fed])
    assert [constant_of(x) for x in subgraph.fetches] == [3, None, None, None, None]


def test_a_variable_whose_predicate_side_is_looked_at_is_not_of_the_usual_form() -> None:
    y = tf.while_loop(lambda y: y < 9, lambda y: y * 2, [1])
    subgraph = prune([y], [], [])
    (variable,) = loop_variables(subgraph, subgraph.consumers())
    taken = subgraph.consumers()
    taken[variable.merge.outputs[1]] = [variable.next]
    assert loop_variables(subgraph, taken) == []


def test_what_only_the_condition_reads_has_no_switch() -> None:
    x = tf.placeholder(tf.float32, [])
    y, _ = tf.while_loop(lambda y, error: error > 1e-3, lambda y, error: (y * x, tf.abs(y * x - y)), [x, 1.0])
    subgraph = prune([y], [], [x])
    (product,) = loop_variables(subgraph, subgraph.consumers())
    (error,) = condition_variables(subgraph, subgraph.consumers())
    assert product.next_value.op.type == "Mul" and error.next_value.op.type == "Abs"
    assert error.names == (error.merge.outputs[0],) and error.exit is None
    assert constant_of(error.enter.outputs[0]) == 1.0
