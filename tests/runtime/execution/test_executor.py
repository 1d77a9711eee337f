"""The executor: programs cut into units give what one segment gives, whatever the order; and its events."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

import flowstone as tf
from flowstone.framework.declarations.containers import ResourceStore
from flowstone.framework.declarations.kernel import Environment
from flowstone.lowering.passes import EVERY
from flowstone.rewriting.passes import run_passes
from flowstone.rewriting.simplification.partial_execution import prune
from flowstone.runtime.code.segments import compile_segment
from flowstone.runtime.execution.executor import DEAD, MERGE, NEXT, SEGMENT, Executor, Unit, UnitGraph
from flowstone.runtime.execution.unit_program import UnitProgram
from flowstone.runtime.steps.step import Step

pytestmark = pytest.mark.usefixtures("graph")


def both_ways(fetches, feeds=(), passes=True):
    """The fetches as one segment computes them, and as units do with all control flow in the executor."""
    results = []
    for compiled in (compile_segment, lambda s, e: UnitProgram.compiled(s, e, dynamic=True)):
        subgraph = prune(fetches, [], [x for x, _ in feeds])
        run_passes(subgraph, EVERY, () if passes else {p.name for p in EVERY})
        program = compiled(subgraph, Environment(resources=ResourceStore()))
        with torch.inference_mode():
            results.append(program.function(Step(), *[torch.as_tensor(value) for _, value in feeds]))
    for one, other in zip(*results):
        np.testing.assert_array_equal(one, other)
    return results[1]


def test_a_counting_loop():
    i, total = tf.while_loop(
        lambda i, t: i < 10, lambda i, t: (i + 1, t + i), [tf.constant(0), tf.constant(0)]
    )
    assert [int(x) for x in both_ways([i, total])] == [10, 45]


def test_a_loop_that_never_runs():
    x = tf.placeholder(tf.float32, [2])
    out = tf.while_loop(lambda i, t: i < 0, lambda i, t: (i + 1, t * 2.0), [tf.constant(0), x])
    i, t = both_ways(list(out), [(x, np.ones(2, "f"))])
    assert int(i) == 0 and t.tolist() == [1, 1]


def collatz(n):
    """Steps to 1: a loop with a conditional in its body."""

    def body(n, count):
        return tf.cond(tf.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1), count + 1

    return tf.while_loop(lambda n, c: n > 1, body, [n, tf.constant(0)])[1]


@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.parametrize(("start", "steps"), [(1, 0), (6, 8), (27, 111)])
def test_a_conditional_in_a_loop(start, steps, passes):
    n = tf.placeholder(tf.int32, [])
    assert int(both_ways([collatz(n)], [(n, np.int32(start))], passes)[0]) == steps


@pytest.mark.parametrize("taken", [True, False])
@pytest.mark.parametrize("passes", [True, False])
def test_a_loop_in_a_branch(taken, passes):
    p = tf.placeholder(tf.bool, [])
    x = tf.placeholder(tf.float32, [3])

    def loop():
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x), [tf.constant(0), x])[1]

    out = tf.cond(p, loop, lambda: x - 1.0)
    value = both_ways([out], [(p, np.bool_(taken)), (x, np.ones(3, "f"))], passes)[0]
    assert value.tolist() == [4.0 if taken else 0.0] * 3


@pytest.mark.parametrize("passes", [True, False])
def test_nested_loops_that_use_values_of_every_level(passes):
    x = tf.placeholder(tf.int32, [])

    def outer(i, total):
        def inner(j, t):
            return j + 1, t + i * j + x

        return i + 1, tf.while_loop(lambda j, t: j < i, inner, [tf.constant(0), total])[1]

    total = tf.while_loop(lambda i, t: i < 6, outer, [tf.constant(0), tf.constant(0)])[1]
    expected = sum(i * j + 2 for i in range(6) for j in range(i))
    assert int(both_ways([total], [(x, np.int32(2))], passes)[0]) == expected


@pytest.mark.by_aten
def test_switches_ask_for_a_python_bool():
    x, v = tf.placeholder(tf.float32, []), tf.placeholder(tf.bool, [2])
    out = tf.while_loop(lambda x: x < 9.0, lambda x: tf.cond(x > 3.0, lambda: x * x, lambda: x + 1.0), [x])
    other = tf.cond(tf.reduce_all(v), lambda: x + 1.0, lambda: x - 1.0)
    program = UnitProgram.compiled(
        run_passes(prune([out, other], [], [x, v]), EVERY), Environment(), dynamic=True
    )
    assert program.source.count(".item() < 9.0") == program.source.count(".item() > 3.0") == 1
    assert program.source.count("bool(") == 1
    values = both_ways([out, other], [(x, np.float32(1)), (v, np.array([True, False]))])
    assert [float(value) for value in values] == [16.0, 0.0]


def test_a_predicate_that_is_fetched_or_handed_on_is_a_tensor_too():
    x = tf.placeholder(tf.float32, [])
    p, q = x > 3.0, x > 4.0
    y = tf.cond(p, lambda: x + 1.0, lambda: x - 1.0)
    z = tf.cond(q, lambda: tf.logical_not(q), lambda: q)
    for value in (2.0, 5.0):
        found = both_ways([p, y, z], [(x, np.float32(value))])
        assert [each.item() for each in found] == [value > 3, value + (1 if value > 3 else -1), False]


@pytest.mark.parametrize("parallel", [1, 2, 10])
def test_iterations_at_once(parallel):
    out = tf.while_loop(
        lambda i, a, b: i < 20,
        lambda i, a, b: (i + 1, a + 1, b + a),
        [tf.constant(0), tf.constant(1), tf.constant(0)],
        parallel_iterations=parallel,
    )
    assert [int(v) for v in both_ways(list(out))] == [20, 21, sum(range(1, 21))]


def test_any_order_of_units_gives_the_same():
    n = tf.placeholder(tf.int32, [])
    fetches = [
        collatz(n),
        *tf.while_loop(lambda i, j: i < n, lambda i, j: (i + 1, j + i), [tf.constant(0), n]),
    ]
    subgraph = prune(fetches, [], [n])
    program = UnitProgram.compiled(subgraph, Environment(resources=ResourceStore()), dynamic=True)
    seen = set()
    for seed in range(20):
        rng, executor = random.Random(seed), Executor(program.graph, [])
        executor.start([torch.tensor(9, dtype=torch.int32)])
        while executor.ready:
            executor.validate()
            executor.ready.rotate(rng.randrange(len(executor.ready)))
            unit, iteration, arguments = executor.ready.popleft()
            executor.finish(unit, iteration, None if arguments is None else outputs_of(unit, arguments))
        executor.validate()
        assert executor.root.outstanding == 0
        seen.add(tuple(int(x) for x in executor.results()))
    assert len(seen) == 1
    following = next(unit for unit in program.graph.units if unit.kind == NEXT)
    story = executor.story(following.name)
    assert story[0].endswith("[0]: finished") and story[-1].endswith("dead")


def outputs_of(unit, arguments):
    return arguments if unit.call is None else unit.call(Step(), *arguments)


def test_a_dead_value_stops_units_up_to_a_merge():
    source, consumer, merge = Unit(SEGMENT, "source"), Unit(SEGMENT, "taker"), Unit(MERGE, "merge")
    source.outputs, consumer.inputs, consumer.outputs = [0, 1], [0], [2]
    merge.inputs, merge.outputs = [2, 1], [3, 4]
    executor = Executor(UnitGraph([source, consumer, merge], 5, [], [3]), [])
    executor.start([])
    unit, iteration, _ = executor.ready.popleft()
    executor.finish(unit, iteration, (DEAD, "alive"))
    assert {unit.name for unit, *_ in executor.ready} == {"taker", "merge"}
    while executor.ready:
        unit, iteration, arguments = executor.ready.popleft()
        assert (arguments is None) == (unit is consumer)
        executor.finish(unit, iteration, arguments)
    assert executor.results() == ["alive"] and executor.story("taker") == ["step: dead"]


def test_arguments_come_in_their_places_once_all_is_there():
    unit = Unit(SEGMENT, "unit")
    unit.inputs, unit.fixed, unit.waits_for, unit.outputs = [1, 0, 1], [(1, "fixed")], [2], [3]
    control = Unit(SEGMENT, "control")
    control.done = 2
    executor = Executor(UnitGraph([unit, control], 4, [0, 1], [3]))
    executor.start(["a", "b"])
    assert [waiting.name for waiting, *_ in executor.ready] == ["control"]
    first, iteration, arguments = executor.ready.popleft()
    executor.validate()
    executor.finish(first, iteration, arguments)
    assert [(u.name, arguments) for u, _, arguments in executor.ready] == [("unit", ["b", "fixed", "a", "b"])]
    assert executor.results() == [DEAD]
    executor.finish(*executor.ready.popleft()[:2], ["result"])
    assert executor.results() == ["result"] and not executor.root.outstanding


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
def test_a_merge_takes_the_one_value_that_is_alive_and_names_its_place(order):
    merge = Unit(MERGE, "merge")
    merge.inputs, merge.waits_for, merge.outputs = [0, 1], [2], [3, 4]
    sources = [Unit(SEGMENT, f"source_{i}") for i in range(3)]
    for i, source in enumerate(sources):
        source.outputs = [i]
    executor = Executor(UnitGraph([*sources, merge], 5, [], [3, 4]))
    executor.start([])
    for i in order:
        executor.finish(sources[i], executor.root, [DEAD if i == 0 else f"value_{i}"])
    ready = [arguments for unit, _, arguments in executor.ready if unit is merge]
    assert ready == [[("value_1", 1)]]
