"""Programs in which loops and conditionals look at reference variables that they change, run alike by
flowstone and, for the golden file, by TensorFlow.

A reference is an alias: a predicate, a loop variable that began as the variable, or what was captured from
outside shows the buffer as it is at the moment. Each is a function of the module ``tf`` that returns a list
of tensors of integers; what they do has one order only (one iteration at a time).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Adds a program to the table."""
    PROGRAMS[function.__name__] = function
    return function


def number(tf: Any, value: Any = 0) -> Any:
    return tf.Variable(value, use_resource=False)


def loop(tf: Any, condition: Callable[..., Any], body: Callable[..., Any], start: list[Any]) -> list[Any]:
    return tf.while_loop(condition, body, start, parallel_iterations=1, return_same_structure=True)


def counting(tf: Any, n: Any, then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A body that adds 1 to the variable, and `then` gives the next value."""

    def body(i: Any) -> Any:
        with tf.control_dependencies([n.assign_add(1)]):
            return then(i)

    return body


# ---- in predicates, as loop variables


@program
def predicate_that_the_body_changes(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: n < 7, lambda i: n.assign_add(1), [n])


@program
def variable_as_loop_variable(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: i < 7, lambda i: n.assign_add(1), [n])


@program
def first_value_changes_in_the_first_iteration(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: n < 7, counting(tf, n, lambda i: i + 10), [n])


@program
def predicate_alone(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: n < 7, counting(tf, n, lambda i: i + 10), [0])


@program
def loop_variable_handed_on(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: i < 7, counting(tf, n, lambda i: tf.identity(i)), [n])


@program
def copy_of_the_variable_handed_on(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: i < 7, counting(tf, n, lambda i: n + 0), [n])


@program
def alias_of_the_variable_handed_on(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: i < 7, counting(tf, n, lambda i: tf.identity(n)), [0])


@program
def reads_made_before_the_loop(tf: Any) -> Any:
    n, m = number(tf), number(tf)
    value, copy = n.value(), tf.identity(m)
    return [
        *loop(tf, lambda i: value < 7, lambda i: n.assign_add(1), [n]),
        *loop(tf, lambda i: i < 7, lambda i: m.assign_add(1) + 0 * copy, [m]),
    ]


@program
def reads_made_in_the_predicate(tf: Any) -> Any:
    n, m = number(tf), number(tf)
    return [
        *loop(tf, lambda i: n.read_value() < 7, lambda i: n.assign_add(1), [n]),
        *loop(tf, lambda i: m._ref() < 7, lambda i: m.assign_add(1), [m]),
    ]


@program
def two_predicates(tf: Any) -> Any:
    n = number(tf)
    body = counting(tf, n, lambda i: i + 1)
    return loop(tf, lambda i: tf.logical_and(i < 4, n < 3), body, [0])


@program
def truth_as_predicate(tf: Any) -> Any:
    n, goes_on = number(tf, 2), number(tf, True)

    def body(i: Any) -> Any:
        change = tf.cond(i > 4, lambda: goes_on.assign(False), lambda: goes_on.assign(True))
        with tf.control_dependencies([change]):
            return i + n

    return loop(tf, lambda i: goes_on, body, [0])


@program
def assigned_squares(tf: Any) -> Any:
    n = number(tf)

    def body(i: Any) -> Any:
        with tf.control_dependencies([n.assign(i * i)]):
            return i + 1

    return loop(tf, lambda i: n < 30, body, [0])


@program
def assigned_as_the_next_value(tf: Any) -> Any:
    n = number(tf)
    return loop(tf, lambda i: n < 30, lambda i: n.assign(i + 7), [0])


@program
def rows_instead_of_scalars(tf: Any) -> Any:
    n = number(tf, [0, 0])

    def body(i: Any, x: Any) -> Any:
        y = x * 2
        with tf.control_dependencies([n.assign_add(y + 1)]):
            return i + 1, tf.identity(n) * 3

    return loop(tf, lambda i, x: i < 4, body, [0, n])


# ---- nested loops, arrays, one loop after another


@program
def nested_loops(tf: Any) -> Any:
    n, m = number(tf), number(tf)

    def body(i: Any) -> Any:
        def inner(j: Any) -> Any:
            with tf.control_dependencies([n.assign_add(1), m.assign_add(j)]):
                return j + 1

        (j,) = loop(tf, lambda j: n < 3 * (i + 1), inner, [0])
        with tf.control_dependencies([j]):
            return i + 1

    return loop(tf, lambda i: n < 14, body, [0])


@program
def aliases_in_an_array(tf: Any) -> Any:
    n = number(tf)

    def body(i: Any, array: Any) -> Any:
        with tf.control_dependencies([n.assign_add(1)]):
            return i + 1, array.write(i, tf.identity(n))

    return [loop(tf, lambda i, _: i < 4, body, [0, tf.TensorArray(tf.int32, 4)])[1].stack()]


@program
def values_in_an_array(tf: Any) -> Any:
    n = number(tf)

    def body(i: Any, array: Any) -> Any:
        with tf.control_dependencies([n.assign_add(1)]):
            return i + 1, array.write(i, n + 0)

    return [loop(tf, lambda i, _: i < 4, body, [0, tf.TensorArray(tf.int32, 4)])[1].stack()]


@program
def one_loop_after_another(tf: Any) -> Any:
    n = number(tf)
    (x,) = loop(tf, lambda i: i < 5, lambda i: i + 1, [n])
    with tf.control_dependencies([x]):
        assigned = n.assign(3)
    with tf.control_dependencies([assigned]):
        return [*loop(tf, lambda i: i < 6, lambda i: i + 2, [n]), x]


# ---- conditionals


def one_or_two(tf: Any, pred: Any) -> Any:
    return tf.cond(pred, lambda: tf.constant(1), lambda: tf.constant(2))


@program
def conditional_after_an_assignment(tf: Any) -> Any:
    b = number(tf, True)
    with tf.control_dependencies([b.assign(False)]):
        return [one_or_two(tf, b)]


@program
def conditionals_before_and_after(tf: Any) -> Any:
    b = number(tf, True)
    x = one_or_two(tf, b)
    with tf.control_dependencies([x]):
        assigned = b.assign(False)
    with tf.control_dependencies([assigned]):
        return [tf.cond(b, lambda: x, lambda: x + 10)]


@program
def the_reference_itself_decides(tf: Any) -> Any:
    b = number(tf, True)
    x = one_or_two(tf, b)
    with tf.control_dependencies([x]):
        assigned = b.assign(False)
    with tf.control_dependencies([assigned]):
        return [tf.cond(b._ref(), lambda: x, lambda: x + 10)]


@program
def negated_after_an_assignment(tf: Any) -> Any:
    b = number(tf, True)
    x = one_or_two(tf, b)
    with tf.control_dependencies([x]):
        assigned = b.assign(False)
    with tf.control_dependencies([assigned]):
        return [tf.cond(tf.logical_not(b), lambda: x, lambda: x + 10)]


@program
def conditional_in_a_branch_that_assigns(tf: Any) -> Any:
    b, v = number(tf, True), number(tf, 3)

    def assigning() -> Any:
        with tf.control_dependencies([b.assign(False)]):
            z = v.assign_add(1)
        with tf.control_dependencies([z]):
            return tf.cond(b, lambda: z + 100, lambda: z + 200)

    return [tf.cond(b, assigning, lambda: v.assign_add(10) + 0)]


@program
def conditional_in_a_predicate(tf: Any) -> Any:
    b = number(tf, True)

    def body(i: Any) -> Any:
        change = tf.cond(i > 4, lambda: b.assign(False), lambda: b.assign(True))
        with tf.control_dependencies([change]):
            return i + 1

    return loop(tf, lambda i: tf.cond(b, lambda: i < 100, lambda: False), body, [0])


@program
def conditional_in_a_body(tf: Any) -> Any:
    b = number(tf, True)

    def body(i: Any) -> Any:
        with tf.control_dependencies([b.assign(tf.equal(i % 2, 0))]):
            return tf.cond(b, lambda: i + 1, lambda: i + 10)

    return loop(tf, lambda i: i < 40, body, [0])


@program
def branches_that_assign(tf: Any) -> Any:
    n = number(tf)
    branches = lambda i: tf.cond(n < 3, lambda: n.assign_add(1), lambda: n.assign_add(2))  # noqa: E731
    return loop(tf, lambda i: n < 7, branches, [n])


@program
def branches_that_assign_and_end(tf: Any) -> Any:
    n = number(tf)
    branches = lambda i: tf.cond(n < 10, lambda: n.assign_add(3), lambda: n.assign_sub(100))  # noqa: E731
    return loop(tf, lambda i: n >= 0, branches, [0])


# ---- running


def run(tf: Any, name: str, config: Any = None) -> list[Any]:
    """The integers that a program gives in a session of its own."""
    with tf.Graph().as_default():
        found = PROGRAMS[name](tf)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            return [value.tolist() for value in session.run(list(found))]
