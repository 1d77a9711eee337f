"""Lists of tensors in variants: elements, shapes, mistakes. Loops with them are in `test_functions.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowstone as tf
from flowstone.framework.declarations.operation import F

pytestmark = pytest.mark.usefixtures("graph")


def reserved(count: int = 3, shape: Any = (2,)) -> Any:
    return F.TensorListReserve(np.array(shape, np.int32), count, element_dtype=tf.float32)


def empty(shape: Any = (2,), limit: int = -1) -> Any:
    return F.EmptyTensorList(np.array(shape, np.int32), limit, element_dtype=tf.float32)


def push(handle: Any, value: Any) -> Any:
    return F.TensorListPushBack(handle, tf.constant(value))


def pop(handle: Any, shape: Any = (2,)) -> Any:
    return F.TensorListPopBack(handle, np.array(shape, np.int32), element_dtype=tf.float32)


def put(handle: Any, index: int, value: Any, **attributes: Any) -> Any:
    return F.TensorListSetItem(handle, index, tf.constant(value), **attributes)


def get(handle: Any, index: int, shape: Any = (2,), dtype: Any = tf.float32) -> Any:
    return F.TensorListGetItem(handle, index, np.array(shape, np.int32), element_dtype=dtype)


def stack(handle: Any, shape: Any = (2,), **attributes: Any) -> Any:
    return F.TensorListStack(handle, np.array(shape, np.int32), element_dtype=tf.float32, **attributes)


def concat(handle: Any, shape: Any = (-1, 2), lengths: Any = ()) -> Any:
    lengths = np.array(lengths, np.int64)
    return F.TensorListConcatV2(handle, np.array(shape, np.int32), lengths, element_dtype=tf.float32)


def split(value: Any, lengths: Any) -> Any:
    return F.TensorListSplit(tf.constant(value), np.array([-1], np.int32), np.array(lengths, np.int64))


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        return session.run(fetches)


def test_what_was_not_set_reads_as_zeros() -> None:
    handle = put(reserved(), 1, [1.0, 2.0])
    element, whole, length = run([get(handle, 0), stack(handle), F.TensorListLength(handle)])
    assert element.tolist() == [0, 0]
    assert (whole.tolist(), length) == ([[0, 0], [1, 2], [0, 0]], 3)


def test_others_tell_the_shape_of_what_was_not_set() -> None:
    handle = put(reserved(shape=-1), 1, [1.0, 2.0])
    assert run(stack(handle, -1)).tolist() == [[0, 0], [1, 2], [0, 0]]
    assert run(get(reserved(shape=-1), 1)).tolist() == [0, 0]


def test_a_change_leaves_the_list_as_it_was() -> None:
    before = push(empty(), [1.0, 2.0])
    after = push(put(before, 0, [5.0, 6.0]), [7.0, 8.0])
    popped, last = pop(after)
    found = run([stack(before), stack(after), stack(popped), last])
    assert [value.tolist() for value in found] == [[[1, 2]], [[5, 6], [7, 8]], [[5, 6]], [7, 8]]


def test_nobody_overwrites_an_element() -> None:
    x = tf.placeholder(tf.float32, [2])
    value = x * 2.0
    handle = F.TensorListPushBack(empty(), value)
    doubled, read = value + 1.0, get(handle, 0) + 1.0
    with tf.Session() as session:
        found = session.run([stack(handle), doubled, read], {x: [1, 2]})
    assert [value.tolist() for value in found] == [[[2, 4]], [3, 5], [3, 5]]


def test_a_read_variable_stays_as_it_was_read() -> None:
    variable = tf.get_variable("v", initializer=[1.0, 2.0], use_resource=True)
    handle = F.TensorListPushBack(empty(), variable.read_value())
    with tf.control_dependencies([handle.op]):
        changed = variable.assign_add([10.0, 10.0], read_value=False)
    with tf.control_dependencies([changed]):
        whole = stack(handle)
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(whole).tolist() == [[1, 2]]


def test_elements_of_several_rows() -> None:
    handle = push(push(empty([-1, 2]), [[1.0, 2.0]]), [[3.0, 4.0], [5.0, 6.0]])
    values, lengths = run(concat(handle))
    assert (values.tolist(), lengths.tolist()) == ([[1, 2], [3, 4], [5, 6]], [1, 2])
    values, lengths = run(concat(put(reserved(2, [-1, 2]), 1, [[3.0, 4.0]]), lengths=[2, 1]))
    assert (values.tolist(), lengths.tolist()) == ([[0, 0], [0, 0], [3, 4]], [2, 1])
    values, lengths = run(concat(empty([-1, 2])))
    assert (values.shape, lengths.shape) == ((0, 2), (0,))
    old = F.TensorListConcat(handle, element_dtype=tf.float32)
    assert run(old[0]).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert run(get(split([1.0, 2.0, 3.0], [1, 2]), 1, [-1])).tolist() == [2, 3]


def test_lists_of_several_lengths() -> None:
    table = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    grown = put(reserved(), 4, [1.0, 2.0], resize_if_index_out_of_bounds=True)
    scattered = F.TensorListScatter(table, [3, 0], np.array([2], np.int32))
    found = run([stack(grown), stack(scattered), stack(F.TensorListResize(scattered, 1))])
    assert [len(value) for value in found] == [5, 4, 1]
    assert found[1].tolist() == [[3, 4], [0, 0], [0, 0], [1, 2]]


def test_the_shape_of_the_elements() -> None:
    shapes = [
        F.TensorListElementShape(reserved(shape=shape), shape_type=tf.int64) for shape in ((2,), -1, (-1, 3))
    ]
    assert [value.tolist() for value in run(shapes)] == [[2], -1, [-1, 3]]


def test_strings() -> None:
    handle = F.TensorListReserve(np.array([], np.int32), 2, element_dtype=tf.string)
    handle = F.TensorListSetItem(handle, 1, tf.constant("a"))
    assert run(F.TensorListStack(handle, np.array([], np.int32), element_dtype=tf.string)).tolist() == [
        b"",
        b"a",
    ]


def test_sums_and_zeros_of_lists() -> None:
    a, b = put(reserved(), 0, [1.0, 2.0]), put(put(reserved(), 0, [1.0, 2.0]), 1, [5.0, 5.0])
    total, zeros = run([stack(F.AddN([a, b])), stack(F.ZerosLike(b))])
    assert (total.tolist(), zeros.tolist()) == ([[2, 4], [5, 5], [0, 0]], [[0, 0]] * 3)


def test_lists_of_lists() -> None:
    inner = push(empty(), [1.0, 2.0])
    outer = F.TensorListPushBack(
        F.EmptyTensorList(np.array([], np.int32), -1, element_dtype=tf.variant), inner
    )
    doubled = F.AddN([outer, outer])
    found = F.TensorListGetItem(doubled, 0, np.array([], np.int32), element_dtype=tf.variant)
    zeros = F.TensorListGetItem(F.ZerosLike(outer), 0, np.array([], np.int32), element_dtype=tf.variant)
    assert run([stack(found), stack(zeros)])[0].tolist() == [[2, 4]]
    assert run(stack(zeros)).tolist() == [[0, 0]]


def from_rows(x: Any) -> Any:
    return F.TensorListFromTensor(x, np.array([2], np.int32))


GRADIENTS = {
    "stacked": lambda x: stack(from_rows(x)),
    "one element": lambda x: get(from_rows(x), 1) * get(from_rows(x), 0),
    "replaced": lambda x: stack(F.TensorListSetItem(from_rows(x), 1, x[2] * x[0])),
    "put behind the end": lambda x: stack(
        F.TensorListSetItem(from_rows(x), 4, x[2] * x[0], resize_if_index_out_of_bounds=True)
    ),
    "pushed": lambda x: stack(F.TensorListPushBack(from_rows(x), x[0] * x[1])),
    "popped": lambda x: F.TensorListPopBack(from_rows(x), np.array([2], np.int32), element_dtype=tf.float32)[
        1
    ],
    "left by a pop": lambda x: stack(
        F.TensorListPopBack(from_rows(x), np.array([2], np.int32), element_dtype=tf.float32)[0]
    ),
    "resized": lambda x: (
        stack(F.TensorListResize(from_rows(x), 5)) * 2.0 + stack(F.TensorListResize(from_rows(x), 1))
    ),
    "gathered": lambda x: F.TensorListGather(
        from_rows(x), [2, 0], np.array([2], np.int32), element_dtype=tf.float32
    ),
    "scattered": lambda x: stack(F.TensorListScatter(x, [3, 0, 1], np.array([2], np.int32))),
    "scattered among more": lambda x: stack(F.TensorListScatterV2(x, [3, 0, 1], np.array([2], np.int32), 6)),
    "scattered among others": lambda x: stack(
        F.TensorListScatterIntoExistingList(from_rows(x), x[:2] * 3.0, [2, 0])
    ),
    "split and joined": lambda x: concat(
        F.TensorListSplit(x, np.array([-1, 2], np.int32), np.array([1, 2], np.int64))
    )[0],
    "joined as before": lambda x: F.TensorListConcat(
        F.TensorListSplit(x, np.array([-1, 2], np.int32), np.array([1, 2], np.int64)),
        element_dtype=tf.float32,
    )[0],
    "added": lambda x: stack(F.AddN([from_rows(x), from_rows(x * x)])),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    x = tf.constant([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25]])
    y = GRADIENTS[name](x)
    with tf.Session():
        error = tf.test.compute_gradient_error(x, [3, 2], tf.reduce_sum(y * y * 1.5), [])
    assert error < 2e-2


MISTAKES = {
    "Trying to access element 3 in a list with 3 elements.": lambda: get(reserved(), 3),
    "Trying to access element -1 in a list": lambda: get(reserved(), -1),
    "Trying to read an uninitialized tensor but element_shape is not fully defined: <unknown>": (
        lambda: get(reserved(shape=-1), 1, -1)
    ),
    "op elements int32 but list elements float32": lambda: get(reserved(), 1, dtype=tf.int32),
    "has shape [2], not [3]": lambda: get(put(reserved(), 1, [1.0, 2.0]), 1, [3]),
    "Tried to set a tensor with incompatible shape at a list index": lambda: put(reserved(), 1, [1.0] * 3),
    "Trying to modify element 5 in a list with 3 elements.": lambda: put(reserved(), 5, [1.0, 2.0]),
    "op elements int32 but list": lambda: put(reserved(), 0, [1, 2]),
    "Tried to stack list which only contains uninitialized tensors": lambda: stack(reserved(shape=-1), -1),
    "Operation expected a list with 4 elements but got a list with 3 elements.": (
        lambda: stack(reserved(), num_elements=4)
    ),
    "Tried to stack elements of an empty list with non-fully-defined": lambda: stack(empty(-1), -1),
    "Incompatible shapes during merge: [1] vs. [2]": lambda: stack(
        push(push(empty(-1), [1.0]), [1.0, 2.0]), -1
    ),
    "Incompatible shapes during merge: [2] vs. [1]": lambda: stack(push(empty(-1), [1.0])),
    "Trying to pop from an empty list.": lambda: pop(empty())[1],
    "Tried to push item into a full list list size: 1 max_num_elements: 1": lambda: push(
        push(empty(limit=1), [1.0, 2.0]), [1.0, 2.0]
    ),
    "Tried to append a tensor with incompatible shape to a list": lambda: push(empty(), [1.0]),
    "TensorListSlice expects size to be non-negative. Got: -1": lambda: F.TensorListResize(empty(), -1),
    "The num_elements to reserve must be a non negative number, but got -1": lambda: reserved(-1),
    "Invalid value in tensor used for shape: -2": lambda: reserved(shape=[-2]),
    "Index 7 out o range; list only has 3 elements.": lambda: F.TensorListGather(
        reserved(), [1, 7], np.array([2], np.int32), element_dtype=tf.float32
    ),
    "Indices in TensorListScatter must all be non-negative.": lambda: F.TensorListScatter(
        np.ones((2, 2), np.float32), [-3, 0], np.array([2], np.int32)
    ),
    "Invalid number of rows in input tensor. Expected: 1 Actual: 2": lambda: F.TensorListScatter(
        np.ones((2, 2), np.float32), [0], np.array([2], np.int32)
    ),
    "Row element shape: [3] list shape: [2]": lambda: F.TensorListScatterIntoExistingList(
        reserved(), np.ones((1, 3), np.float32), [1]
    ),
    "Trying to scatter at index 3 in list with size 2": lambda: F.TensorListScatterV2(
        np.ones((2, 2), np.float32), [3, 0], np.array([2], np.int32), 2
    ),
    "All except the first dimension must be fully defined": lambda: concat(empty(-1), -1)[0],
    "Concat saw a scalar shape": lambda: concat(push(empty([]), 1.0), -1)[0],
    "Unused values in tensor. Length of tensor: 3 Values used: 2": lambda: split([1.0, 2.0, 3.0], [1, 1]),
    "Attempting to slice [1, 5] from tensor with length 3": lambda: split([1.0, 2.0, 3.0], [1, 4]),
    "Trying to add two lists of tensors with different lengths. One is 2 and the other is 3": lambda: F.AddN(
        [reserved(2), reserved(3)]
    ),
}


def test_rows_among_others() -> None:
    rows = from_rows(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    more = F.TensorListScatterIntoExistingList(rows, np.array([[5.0, 6.0], [7.0, 8.0]], np.float32), [3, 0])
    before, after = run([stack(rows), stack(more)])
    assert before.tolist() == [[1, 2], [3, 4]]
    assert after.tolist() == [[7, 8], [3, 4], [0, 0], [5, 6]]  # TensorFlow leaves the third row undefined


def test_lists_joined() -> None:
    a, b = from_rows(tf.constant([[1.0, 2.0]])), from_rows(tf.constant([[3.0, 4.0], [5.0, 6.0]]))
    joined = F.TensorListConcatLists(a, b, element_dtype=tf.float32)
    pairs = F.TensorListConcatLists(tf.stack([a, b]), tf.stack([b, b]), element_dtype=tf.float32)
    whole, lengths = run([stack(joined), [F.TensorListLength(each) for each in tf.unstack(pairs)]])
    assert whole.tolist() == [[1, 2], [3, 4], [5, 6]] and lengths == [3, 4]
    assert pairs.shape == [2] and tf.gradients(stack(joined), a) == [None]
    with pytest.raises(ValueError, match="equal rank"):
        F.TensorListConcatLists(tf.stack([a, b]), b, element_dtype=tf.float32)


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes(words: str) -> None:
    wrong = MISTAKES[words]()
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(wrong)
    assert words in str(caught.value)
    assert caught.value.op is wrong.op


def test_what_is_no_list() -> None:
    lock = F.MutexLock(F.MutexV2())
    with pytest.raises(tf.errors.InvalidArgumentError, match="Input handle is not a list"):
        run(F.TensorListLength(lock))


def test_rows_of_another_shape() -> None:
    with pytest.raises(ValueError, match=r"\[2\] and \[3\]"):
        F.TensorListFromTensor(np.ones((2, 2), np.float32), np.array([3], np.int32))
    rows = tf.placeholder_with_default(np.ones((2, 2), np.float32), None)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Specified a list with shape"):
        run(F.TensorListFromTensor(rows, np.array([3], np.int32)))
