"""`tf.py_func`."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")


def run(fetch, feeds=None):
    return tf.Session().run(fetch, feeds)


def test_arguments_are_numpys():
    seen = []

    def note(*arguments):
        seen.extend(arguments)
        return np.float32(1)

    run(
        tf.py_func(
            note,
            [tf.constant(1.0), tf.constant(["a", "b"]), tf.constant("c"), tf.constant([[1, 2]])],
            tf.float32,
        )
    )
    assert isinstance(seen[0], np.float32) and seen[1].dtype == object and seen[1].tolist() == [b"a", b"b"]
    assert seen[2] == b"c" and isinstance(seen[3], np.ndarray) and seen[3].shape == (1, 2)


def test_forms_of_results(graph):
    c = tf.constant([1, 2])
    pair = tf.py_func(lambda x: (x, x * 2), [c], [tf.int32, tf.int32], name="nm")
    assert [t.name for t in pair] == ["nm:0", "nm:1"] and pair[0].shape.ndims is None
    assert [value.tolist() for value in run(pair)] == [[1, 2], [2, 4]]
    assert isinstance(tf.py_func(lambda x: x, [c], [tf.int32]), list)
    assert isinstance(tf.py_func(lambda: None, [], []), tf.Operation)
    assert run(tf.py_func(lambda: True, [], tf.bool)) and run(tf.py_func(lambda: 3, [], tf.int64)) == 3
    assert run(tf.py_func(lambda: np.array(["a", "é"]), [], tf.string)).tolist() == [b"a", "é".encode()]
    assert run(tf.numpy_function(lambda x: x, [3], tf.int32)) == 3


def test_stateless_functions_are_another_op():
    r = tf.py_func(lambda x: x, [tf.constant("abc")], tf.string, stateful=False)
    assert r.op.type == r.op.name == "PyFuncStateless" and run(r) == b"abc"
    assert r.op.get_attr("token").startswith(b"pyfunc_")


def test_a_stateful_function_is_called_in_every_step_and_may_fill_its_own_buffer():
    buffer, calls = np.zeros(2, np.float32), []

    def step():
        calls.append(1)
        buffer[:] = len(calls)
        return buffer

    r = tf.py_func(step, [], tf.float32)
    session = tf.Session()
    first, second = session.run(r), session.run(r)
    assert first.tolist() == [1, 1] and second.tolist() == [2, 2]


def test_changing_or_keeping_an_argument_changes_nothing():
    kept = []

    def spoil(x):
        kept.append(x)
        x[...] = 9
        return x

    x = tf.placeholder(tf.float32, [2])
    doubled = x * 2.0
    r = tf.py_func(spoil, [doubled], tf.float32)
    values = run([doubled, r + doubled, x], {x: [1, 2]})
    assert [value.tolist() for value in values] == [[2, 4], [11, 13], [1, 2]] and kept[0].tolist() == [9, 9]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (TypeError, tf.errors.InvalidArgumentError),
        (StopIteration, tf.errors.OutOfRangeError),
        (MemoryError, tf.errors.ResourceExhaustedError),
        (NotImplementedError, tf.errors.UnimplementedError),
        (KeyError, tf.errors.UnknownError),
        (RuntimeError, tf.errors.UnknownError),
    ],
)
def test_exceptions(raised, expected):
    def fail():
        raise raised("words")

    with pytest.raises(expected, match=f"{raised.__name__}: '?words") as caught:
        run(tf.py_func(fail, [], tf.int32))
    assert type(caught.value) is expected


def test_an_exception_tells_the_lines_of_the_function():
    def look_up(x):
        return x["no such key"]

    def fail(x):
        return look_up(x)

    with pytest.raises(tf.errors.UnknownError, match=r"^IndexError: only integers") as caught:
        run(tf.py_func(fail, [tf.constant([1.0])], tf.float32))
    lines = caught.value.message.splitlines()
    assert lines[1] == "Traceback (most recent call last):" and lines[2].endswith(" in fail")
    assert "    return look_up(x)" in lines and '    return x["no such key"]' in lines
    assert "ops/control/script.py" not in caught.value.message.partition("[[node")[0]


def test_the_end_of_data_tells_no_lines():
    def end():
        raise StopIteration("no more")

    with pytest.raises(tf.errors.OutOfRangeError) as caught:
        run(tf.py_func(end, [], tf.float32))
    assert caught.value.message.startswith("StopIteration: no more\n\t [[node")


def test_results_that_do_not_fit():
    c = tf.constant([1, 2])
    for function, types, words in [
        (lambda x: x, tf.float32, "0-th value returned by pyfunc_[0-9]+ is int32, but expects float"),
        (lambda x: 1.5, tf.int32, "is double, but expects int32"),
        (lambda x: (x, x), [tf.int32], "returns 2 values, but expects to see 1 values"),
        (lambda x: None, tf.int32, "returns 0 values, but expects to see 1 values"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            run(tf.py_func(function, [c], types))


def test_misuse_and_gradient():
    x = tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match="Expected func to be callable"):
        tf.py_func(3, [], tf.int32)
    with pytest.raises(TypeError):
        tf.py_func(lambda x: x, 3, tf.int32)
    assert tf.gradients(tf.py_func(lambda x: x, [x], tf.float32), x) == [None]


def test_a_function_lives_as_long_as_its_graph():
    class Function:
        def __call__(self):
            return np.float32(1)

    function = Function()
    watch = weakref.ref(function)
    graph = tf.Graph()
    with graph.as_default():
        r = tf.py_func(function, [], tf.float32)
    del function
    gc.collect()
    assert tf.Session(graph=graph).run(r) == 1
    del graph, r
    gc.collect()
    assert watch() is None
