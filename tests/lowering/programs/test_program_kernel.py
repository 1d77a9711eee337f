"""The op _Program: in traces and messages, with variables, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework import flags
from flowstone.lowering.programs.program_regions import join_programs
from flowstone.rewriting.simplification.partial_execution import prune
from three_ways import assert_equal_three_ways, repeated


def loop(x: tf.Tensor, n: int = 4) -> tf.Tensor:
    result: tf.Tensor = tf.while_loop(lambda i, _: i < n, lambda i, a: (i + 1, a * 2.0), [0, x])[1]
    return result


@pytest.mark.parametrize("use_resource", [False, True])
def test_it_takes_what_variables_hold(use_resource: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    x, held = tf.placeholder(tf.float32, [2]), v.read_value()
    y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * held), [0, x])[1]
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
    setup = tf.global_variables_initializer()
    assert_equal_three_ways(monkeypatch, [y, train], {x: [0.5, 0.25]}, setup)


@pytest.mark.parametrize("use_resource", [False, True])
def test_it_takes_what_variables_hold_when_read_in_the_loop(
    use_resource: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    v = tf.Variable([1.0, 2.0], use_resource=use_resource)
    x = tf.placeholder(tf.float32, [2])
    y = tf.while_loop(lambda i, _: i < 3, lambda i, a: (i + 1, a * v.read_value() + v), [0, x])[1]
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
    setup = tf.global_variables_initializer()
    assert_equal_three_ways(monkeypatch, [y, train], {x: [0.5, 0.25]}, setup)


def test_results_are_the_callers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [2])
    y = loop(x)
    for native in (1, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Session() as session:
            first = session.run(y, {x: [1.0, 2.0]})
            second = session.run(y, {x: [3.0, 4.0]})
        assert first.tolist() == [16.0, 32.0] and second.tolist() == [48.0, 64.0]
        first += 1.0
        assert second.tolist() == [48.0, 64.0]


def test_a_loop_that_does_not_run_gives_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [2])
    fed = np.array([1.0, 2.0], np.float32)
    for native in (1, 2):
        monkeypatch.setattr(flags, "NATIVE", native)
        with tf.Session() as session:
            found = session.run(loop(x, 0), {x: fed})
        found += 1.0
        assert fed.tolist() == [1.0, 2.0]


def test_a_traced_step_names_it() -> None:
    x = tf.placeholder(tf.float32, [3])
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session() as session:
        session.run(loop(x), {x: np.ones(3)}, options=options, run_metadata=metadata)
    (graph,) = metadata.partition_graphs
    (program,) = [node for node in graph.node if node.op == "_Program"]
    assert program.attr["operations"].s == b"Less+AddV2+Mul"
    assert "members" not in program.attr


def test_fed_arrays_of_any_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tf.placeholder(tf.float32, [3, 2])
    y = tf.transpose(x)  # a view
    results = [loop(y), tf.exp(y)]
    assert_equal_three_ways(monkeypatch, results, {x: np.random.RandomState(0).rand(2, 3).T})


def test_what_it_costs_counts_iterations() -> None:
    x = tf.placeholder(tf.float32, [300])
    costs = []
    for y in (tf.cond(x[0] > 0.0, lambda: x * 2.0, lambda: x), loop(x)):
        subgraph = prune([y], [], [x])
        join_programs(subgraph)
        (program,) = [node for node in subgraph.nodes if node.type == "_Program"]
        costs.append(program.declaration.cost_function(program))
    assert 300 <= costs[0] <= 3_000
    assert costs[1] >= 30_000


@pytest.mark.parametrize("native", [0, 1, 2])
def test_a_next_value_that_is_an_input_of_the_program(native: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flags, "NATIVE", native)
    x = tf.placeholder(tf.float32, (4, 3, 2))
    (flow,) = repeated(lambda y: tf.gradients(y[2, 1, 1], y), x)  # a constant of many numbers
    wanted = np.zeros((4, 3, 2))
    wanted[2, 1, 1] = 1
    with tf.Session() as session:
        for _ in range(3):
            np.testing.assert_array_equal(session.run(flow, {x: np.ones((4, 3, 2))}), wanted)
