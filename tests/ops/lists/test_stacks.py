"""Stacks: last in first out, of one step, in both generations; limits and mistakes as TensorFlow has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F
from flowstone.ops.lists.stacks import Stack

pytestmark = pytest.mark.usefixtures("graph")

GENERATIONS = ["", "V2"]


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def made(generation: str, dtype: Any = tf.float32, max_size: int = -1, name: str | None = None) -> Any:
    if generation:
        return F.StackV2(max_size, elem_type=dtype, stack_name=name or "")
    return F.Stack(elem_type=dtype, stack_name=name or "")


def push(generation: str, stack: Any, value: Any, **attributes: Any) -> Any:
    return getattr(F, f"StackPush{generation}")(stack, value, **attributes)


def pop(generation: str, stack: Any, dtype: Any = tf.float32) -> Any:
    return getattr(F, f"StackPop{generation}")(stack, elem_type=dtype)


def after(before: Any, function: Any, *arguments: Any) -> Any:
    with tf.control_dependencies([before]):
        return function(*arguments)


# ---- values


@pytest.mark.parametrize("generation", GENERATIONS)
def test_last_in_first_out(generation: str) -> None:
    stack = made(generation)
    pushed = push(generation, stack, [1.0, 2.0])
    pushed = after(pushed, push, generation, stack, [3.0])
    last = after(pushed, pop, generation, stack)
    first = after(last, pop, generation, stack)
    found = run([pushed, last, first])
    assert [x.tolist() for x in found] == [[3.0], [3.0], [1.0, 2.0]]


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(
    ("dtype", "value"), [(tf.int64, 7), (tf.string, b"text"), (tf.bool, [True, False]), (tf.complex64, 1j)]
)
def test_elements_of_any_type_and_shape(generation: str, dtype: Any, value: Any) -> None:
    stack = made(generation, dtype)
    popped = after(push(generation, stack, tf.constant(value, dtype)), pop, generation, stack, dtype)
    assert popped.dtype == dtype and popped.shape.ndims is None
    np.testing.assert_array_equal(run(popped), value)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_step_has_a_stack_of_its_own(generation: str) -> None:
    stack = made(generation)
    x = tf.placeholder(tf.float32, [])
    popped = after(push(generation, stack, x), pop, generation, stack)
    again = after(popped, pop, generation, stack)
    with tf.Session() as session:
        assert [session.run(popped, {x: v}) for v in (1.0, 2.0)] == [1.0, 2.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty"):
            session.run(again, {x: 1.0})
        assert session.run(popped, {x: 3.0}) == 3.0


@pytest.mark.parametrize("generation", GENERATIONS)
def test_nodes_with_one_name_have_different_stacks(generation: str) -> None:
    first, second = (made(generation, name="same") for _ in range(2))
    with tf.control_dependencies([push(generation, first, 1.0), push(generation, second, 2.0)]):
        found = run([pop(generation, first), pop(generation, second)])
    assert found == [1.0, 2.0]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_what_is_pushed_is_not_overwritten(generation: str) -> None:
    """The pushed sum is used by an operation that could compute in its memory."""
    x = tf.placeholder(tf.float32, [3])
    stack = made(generation)
    pushed = push(generation, stack, x + 1.0)
    other = tf.exp(tf.negative(pushed))
    popped = after(other, pop, generation, stack)
    found = run([popped + 0.0, other, popped * 2.0], {x: [0.0, 1.0, 2.0]})
    np.testing.assert_allclose(found[0], [1, 2, 3])
    np.testing.assert_allclose(found[1], np.exp([-1, -2, -3]), rtol=1e-6)
    np.testing.assert_allclose(found[2], [2, 4, 6])


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_pushed_variable_keeps_its_value(generation: str) -> None:
    v = tf.Variable([1.0, 2.0], use_resource=True)
    stack = made(generation)
    pushed = push(generation, stack, v.read_value())
    changed = after(pushed, v.assign_add, [10.0, 10.0])
    popped = after(changed, pop, generation, stack)
    assert run(popped).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_pushes_and_pops_in_loops(generation: str) -> None:
    stack = made(generation, tf.int32)

    def fill(i: Any) -> Any:
        with tf.control_dependencies([push(generation, stack, i * i)]):
            return i + 1

    def drain(i: Any, total: Any) -> Any:
        return i + 1, total * 10 + tf.reshape(pop(generation, stack, tf.int32), [])

    filled = tf.while_loop(lambda i: i < 4, fill, [0], parallel_iterations=1)
    with tf.control_dependencies([filled]):
        zero = tf.identity(tf.constant(0))
    _, total = tf.while_loop(lambda i, t: i < 4, drain, [zero, 0], parallel_iterations=1)
    assert run(total) == 9410


# ---- limits, closing, mistakes


def test_a_full_stack_refuses_more() -> None:
    stack = F.StackV2(tf.placeholder_with_default(1, []), elem_type=tf.float32, stack_name="small")
    first = push("V2", stack, 1.0)
    second = after(first, push, "V2", stack, 2.0)
    with tf.Session() as session:
        assert session.run(first) == 1.0
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"Stack\[.*small.*\] overflowed its max_size"
        ):
            session.run(second)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_closed_stack_takes_and_gives_nothing(generation: str) -> None:
    stack = made(generation)
    pushed = push(generation, stack, 1.0)
    close = after(pushed, getattr(F, f"StackClose{generation}"), stack)
    popped = after(close, pop, generation, stack)
    run(close)
    for late in (popped, after(close, push, generation, stack, 1.0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="has already been closed"):
            run(late)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_no_gradient_passes_a_stack(generation: str) -> None:
    x = tf.constant(1.0)
    stack = made(generation)
    pushed = push(generation, stack, x)
    popped = after(pushed, pop, generation, stack)
    assert tf.gradients(popped, x) == [None]


def test_attributes_and_types_of_the_nodes(graph) -> None:
    stack = made("V2", tf.float32, 5, "s")
    pushed = push("V2", stack, [1.0], swap_memory=True)
    assert stack.dtype == tf.resource and made("").dtype.is_ref
    assert pushed.op.get_attr("swap_memory") and pushed.shape.as_list() == [1]
    assert stack.op.get_attr("stack_name") == b"s" and stack.op.get_attr("elem_type") == tf.float32


# ---- the object


def test_push_and_pop() -> None:
    stack = Stack("s", limit=2)
    assert [stack.push(x) for x in ("a", "b")] == ["a", "b"] and "2 values" in repr(stack)
    with pytest.raises(tf.errors.InvalidArgumentError):
        stack.push("c")
    assert [stack.pop(), stack.pop()] == ["b", "a"]
    with pytest.raises(tf.errors.InvalidArgumentError):
        stack.pop()
    stack.push("d")
    stack.close()
    with pytest.raises(tf.errors.InvalidArgumentError, match="closed"):
        stack.pop()
