"""Rules that programs write as assignments become one update each: which ones do, and where they run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from agreement import agree, ops, text

RNG = np.random.default_rng(23)
PASS = "join_written_updates"
ASSIGNMENTS = ("Assign", "AssignAdd", "AssignSub")


def variable(*dims: int, resource: bool = False, dtype: Any = tf.float32) -> Any:
    value = RNG.uniform(0.5, 1.5, dims).astype(dtype.as_numpy_dtype)
    return tf.Variable(value, use_resource=resource)


def gradient(*dims: int, dtype: Any = tf.float32) -> Any:
    """A tensor that the program makes by more than element by element arithmetic."""
    return tf.sin(tf.Variable(RNG.standard_normal(dims).astype(dtype.as_numpy_dtype)))


def adam(p: Any, m: Any, v: Any, g: Any, rate: Any) -> list[Any]:
    new_m, new_v = 0.9 * m + 0.1 * g, 0.999 * v + (1 - 0.999) * tf.square(g)
    new_p = p - rate * new_m / (tf.sqrt(new_v) + 1e-7)
    return [tf.assign(m, new_m), tf.assign(v, new_v), tf.assign(p, new_p)]


def momentum(p: Any, m: Any, g: Any, rate: Any) -> list[Any]:
    new_m = 0.9 * m - rate * g
    return [tf.assign(m, new_m), tf.assign(p, p + new_m)]


def values(variables: Any, updates: Any) -> list[Any]:
    """What the variables are after the updates."""
    with tf.control_dependencies([tf.group(*updates)]):
        return [tf.identity(v.read_value()) for v in variables]


def test_the_assignments_of_a_parameter_are_one_update() -> None:
    p, m, g = variable(2, 3), variable(2, 3), tf.placeholder(tf.float32, [2, 3])
    rate = tf.placeholder(tf.float32, [])
    target = tf.group(*momentum(p, m, g, rate))
    before = ops(text([], [g, rate], targets=[target]))
    assert before.count("Assign") == 2 and before.count("Mul") == 2
    after = text([], [g, rate], PASS, targets=[target])
    (line,) = [line for line in after if "_ProgramUpdate" in line]
    program = "t0=mul(n0,h0);t1=mul(n1,x0);t2=sub(t0,t1);t3=add(h1,t2);h0=t2;h1=t3"
    assert program in line
    assert not {"Mul", "Sub", "Add", "AddV2", *ASSIGNMENTS}.intersection(ops(after))


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("dims", [(3,), (2, 3), (1,), (300, 700)])
def test_steps_are_those_of_the_assignments(monkeypatch: Any, dims: Any, resource: bool, dtype: Any) -> None:
    p, m, v = (variable(*dims, resource=resource, dtype=dtype) for _ in range(3))
    after = values([p, m, v], adam(p, m, v, gradient(*dims, dtype=dtype), tf.constant(0.01, dtype)))
    agree(monkeypatch, after, {}, PASS, fires=1, setup=tf.global_variables_initializer(), tolerance=1e-6)


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.by_aten
def test_parameters_of_one_rule_are_one_update(monkeypatch: Any, resource: bool) -> None:
    rows = [[variable(*dims, resource=resource) for _ in range(3)] for dims in ((4,), (2, 3), (300,), (5, 1))]
    rate = tf.constant(0.01) * tf.ones([])
    updates = [each for p, m, v in rows for each in adam(p, m, v, gradient(*p.shape.as_list()), rate)]
    after = values([v for row in rows for v in row], updates)
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, after, {}, PASS, "group_updates", fires=(4, 4), setup=setup, tolerance=1e-6)
    assert "count=4" in log


@pytest.mark.by_aten
def test_another_rule_is_another_update(monkeypatch: Any) -> None:
    rows = [[variable(3), variable(3)] for _ in range(5)]
    updates = [x for p, m in rows[:4] for x in momentum(p, m, gradient(3), 0.1)]
    updates += momentum(*rows[4], gradient(3), 0.2)
    after = values([v for row in rows for v in row], updates)
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, after, {}, PASS, "group_updates", fires=(5, 4), setup=setup, tolerance=1e-6)
    assert log.count("_ProgramUpdate(") == 2


def test_any_elementwise_rule_is_an_update(monkeypatch: Any) -> None:
    p, a, b, g = variable(4, 3), variable(4, 3), variable(4, 3), gradient(4, 3)
    new_a = 0.95 * a + 0.05 * tf.square(g)
    step = g * tf.sqrt(b + 1e-3) / tf.sqrt(new_a + 1e-3)
    new_b = 0.95 * b + 0.05 * step * step
    new_p = tf.minimum(tf.maximum(p - step, -1.0), tf.reciprocal(tf.abs(p)))
    updates = [tf.assign(a, new_a), tf.assign(p, new_p), tf.assign(b, new_b)]
    after = values([p, a, b], updates)
    agree(monkeypatch, after, {}, PASS, fires=1, setup=tf.global_variables_initializer(), tolerance=1e-6)


@pytest.mark.parametrize("resource", [False, True])
def test_slots_that_are_read_after_their_update_are_values(monkeypatch: Any, resource: bool) -> None:
    p, m, g = variable(4, resource=resource), variable(4, resource=resource), gradient(4)
    new_m = tf.assign(m, 0.9 * m + g)
    with tf.control_dependencies([new_m]):
        new_p = tf.assign_sub(p, 0.1 * m.read_value())
    after = values([p, m], [new_p])
    setup, fires = tf.global_variables_initializer(), 0 if resource else 1  # 0: a read of the slot is fetched
    agree(monkeypatch, after, {}, PASS, fires=fires, setup=setup, tolerance=1e-6)


def test_the_result_of_an_assignment_is_a_value(monkeypatch: Any) -> None:
    p, m, g = variable(4), variable(4), gradient(4)
    new_m = tf.assign(m, 0.9 * m + g)
    after = values([p, m], [tf.assign_sub(p, 0.1 * new_m)])
    agree(monkeypatch, after, {}, PASS, fires=1, setup=tf.global_variables_initializer(), tolerance=1e-6)


@pytest.mark.parametrize("resource", [False, True])
def test_arithmetic_may_wait_for_an_earlier_assignment(monkeypatch: Any, resource: bool) -> None:
    p, m, g = variable(4, resource=resource), variable(4, resource=resource), gradient(4)
    shared, least, most = g + tf.ones([4]), tf.constant(-0.5), tf.constant(0.5)
    first = tf.assign_sub(m, (m - shared) * 0.5)
    with tf.control_dependencies([first]):
        late = tf.minimum(tf.maximum(shared, least), most)  # it goes into the update that it would wait for
    updates = [first, tf.assign_sub(p, late)]
    after = text([], [], PASS, targets=[tf.group(*updates)])
    assert "Maximum" not in ops(after) and sum("ProgramUpdate" in line for line in after) == 1
    agree(monkeypatch, values([p, m], updates), {}, PASS, fires=1, setup=tf.global_variables_initializer())


@pytest.mark.parametrize("resource", [False, True])
def test_an_update_waits_for_what_its_reads_waited_for(monkeypatch: Any, resource: bool) -> None:
    average, other, g = variable(4, resource=resource), variable(4, resource=resource), gradient(4)
    with tf.control_dependencies([tf.assign(other, tf.sin(other))]):
        seen = average.read_value() + 1.0  # late, and before the average moves
    with tf.control_dependencies([seen]):
        old = average.value() if resource else average.read_value()
    update = tf.assign_sub(average, (old - g) * 0.5)
    (line,) = [line for line in text([seen], [], PASS, targets=[update.op]) if "ProgramUpdate" in line]
    assert "^" in line
    fetches = [seen, *values([average], [update])]
    agree(monkeypatch, fetches, {}, PASS, fires=1, setup=tf.global_variables_initializer())


@pytest.mark.parametrize("resource", [False, True])
def test_old_values_that_are_used_elsewhere_stay(monkeypatch: Any, resource: bool) -> None:
    p, m, g = variable(4, resource=resource), variable(4, resource=resource), gradient(4)
    old = p.read_value() * 2.0
    updates = momentum(p, m, g, 0.1)
    with tf.control_dependencies([tf.group(*updates)]):
        fetches = [old + 1.0, tf.identity(p.read_value())]
    setup = tf.global_variables_initializer()
    fetches += [] if resource else updates  # of a reference, the value at the end
    agree(monkeypatch, fetches, {}, PASS, fires=1, setup=setup, tolerance=1e-6)


def test_plain_descent_accumulates_products(monkeypatch: Any) -> None:
    x, w, b = tf.constant(RNG.standard_normal((5, 4)).astype("f")), variable(4, 3), variable(3)
    loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + b))
    g_w, g_b = tf.gradients(loss, [w, b])
    after = values([w, b], [tf.assign(w, w - 0.01 * g_w), tf.assign_sub(b, 0.01 * g_b)])
    setup = tf.global_variables_initializer()
    log = agree(monkeypatch, after, {}, PASS, "fuse_updates", fires=(2, 2), setup=setup, tolerance=1e-5)
    assert "_ApplyProduct" in log


def test_a_gradient_of_rows_is_an_operand(monkeypatch: Any) -> None:
    table, m = variable(6, 2), variable(6, 2)
    (g,) = tf.gradients(tf.reduce_sum(tf.square(tf.gather(table, [1, 4, 1]))), table)
    after = values([table, m], momentum(table, m, tf.convert_to_tensor(g), 0.1))
    agree(monkeypatch, after, {}, PASS, fires=1, setup=tf.global_variables_initializer(), tolerance=1e-6)


def read_between(p: Any, m: Any, g: Any) -> Any:
    """The new slot before the variable's new value."""
    new_m = 0.9 * m + g
    first = tf.assign(m, new_m)
    with tf.control_dependencies([first]):
        seen = tf.reduce_sum(m.read_value())
    with tf.control_dependencies([seen]):
        return [tf.assign(p, p - 0.1 * new_m), seen]


def fetched(p: Any, m: Any, g: Any) -> Any:
    new_m = 0.9 * m + g
    return [tf.assign(m, new_m), tf.assign(p, p - 0.1 * new_m), new_m]


def changed_twice(p: Any, m: Any, g: Any) -> Any:
    new_m = tf.assign(m, 0.9 * m + g)
    with tf.control_dependencies([new_m]):
        again = tf.assign(m, 0.5 * m.read_value())
    return [again, tf.assign(p, g + 1.0)]


def broadcast(p: Any, m: Any, g: Any) -> Any:
    return [tf.assign(p, p - 0.1 * tf.reduce_sum(g, 0) * m.read_value()[:, :1])]


def not_read(p: Any, m: Any, g: Any) -> Any:
    return [tf.assign(p, 0.1 * g + 2.0), tf.assign(m, 0.1 * g)]


def within_a_branch(p: Any, m: Any, g: Any) -> Any:
    return [tf.cond(tf.reduce_sum(g) > 0, lambda: tf.assign(p, p - 0.1 * g), lambda: p.read_value())]


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize(
    ("program", "fires"),
    [
        (read_between, 0),
        (changed_twice, 0),
        (not_read, 0),
        (within_a_branch, 0),
        (fetched, 1),
        (broadcast, 1),
    ],
)
def test_neighbours_agree(monkeypatch: Any, program: Any, fires: int, resource: bool) -> None:
    """What is read in between, or is no rule, stays; `fires` counts the variable's own last part."""
    p, m, g = variable(4, 3, resource=resource), variable(4, 3, resource=resource), gradient(4, 3)
    outputs = program(p, m, g)
    fetches = [*outputs, *values([p, m], outputs)]
    setup = tf.global_variables_initializer()
    agree(monkeypatch, fetches, {}, PASS, fires=fires, setup=setup, tolerance=1e-6)
