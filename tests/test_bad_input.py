"""Mistakes get the errors that TensorFlow gives, with what helps to find them, and harm nothing else.

The mistakes are in `mistakes/`, TensorFlow's answers in `golden/bad_input.json`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.mistakes import building, running
from tests.mistakes import session as sessions
from tests.mistakes.arrays import missing_words

import flowstone as tf
import flowstone.train

GOLDEN = json.loads((Path(__file__).parent / "golden" / "bad_input.json").read_text(encoding="utf-8"))
# Where another node fails than in TensorFlow, with the reason.
OTHER_NODES = {
    "sparse softmax cross entropy, batch": "TensorFlow 2 adds an assertion that 1.4 has not",
    "training on another batch": "TensorFlow 2 adds an assertion that 1.4 has not",
    "loop while a vector": "a predicate is looked at where it is made",
    "batches of a vector": "TensorFlow 2 has another op",
    "Ftrl by a vector": "TensorFlow adds the shrinkage to a penalty of 0",
    "cond of a vector": "a predicate is looked at where it is made",
    "einsum": "TensorFlow 1.4 has no op Einsum",
    "uninitialised reference": "reading a reference is no work of its own",
    "uninitialised, trained": "several variables lack a value; which is met first is a matter of order",
}


@pytest.mark.parametrize("name", building.BUILDING)
def test_building(name: str) -> None:
    error = building.fail_building(tf, name)
    assert_class(error, GOLDEN["building"][name][0])
    assert missing_words(error, building.BUILDING[name][-1]) == [], str(error)


@pytest.mark.parametrize("name", running.RUNNING)
def test_running(name: str) -> None:
    error = running.fail_running(tf, name, after=assert_usable)
    expected, node = GOLDEN["running"][name]
    assert_class(error, expected)
    assert missing_words(error, running.RUNNING[name][-1]) == [], str(error)
    assert_located(error)
    if name not in OTHER_NODES:
        assert error.op.name == node


@pytest.mark.parametrize("name", running.FATAL)
def test_what_ends_tensorflow_is_an_error_here(name: str) -> None:
    error = running.fail_running(tf, name, running.FATAL[name], after=assert_usable)
    assert_class(error, "InvalidArgumentError")
    assert missing_words(error, running.FATAL[name][-1]) == [], str(error)
    assert_located(error)


@pytest.mark.parametrize("name", sessions.SESSION)
def test_session(name: str) -> None:
    error = sessions.fail_in_session(tf, name, after=assert_usable)
    assert_class(error, GOLDEN["session"][name][0])
    assert missing_words(error, sessions.SESSION[name][-1]) == [], str(error)


def assert_class(error: Any, name: str) -> None:
    """`error` is of the class, or of one made from it."""
    assert error is not None, "nothing was raised"
    assert name in [one.__name__ for one in type(error).__mro__], repr(error)


def assert_usable(session: Any, good: Any) -> None:
    """The session still runs a good step."""
    np.testing.assert_array_equal(session.run(*good), [2, 4])


def assert_located(error: Any) -> None:
    """The message names the node that failed, and the user's line that made it."""
    assert isinstance(error, tf.errors.OpError)
    assert error.op is not None and error.op.name in str(error) and error.node_def.name == error.op.name
    assert f"{Path(running.__file__).parent}{os.sep}" in str(error).split("Original stack trace")[0]


SHAPES = st.none() | st.lists(st.none() | st.integers(0, 3), max_size=3)
DTYPES = st.sampled_from(
    ["float16", "float32", "float64", "int8", "uint8", "int64", "bool", "complex64", "S3"]
)
SIZES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
ANYTHING = st.one_of(
    st.none(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.recursive(st.integers(-9, 300) | st.floats(), lambda x: st.lists(x, max_size=3), max_leaves=6),
    DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, SIZES)),
)


@pytest.mark.filterwarnings("ignore")  # NumPy's, of casts that lose something
@settings(max_examples=150, deadline=None)
@given(
    dtype=st.sampled_from(
        ["float32", "float64", "int32", "uint8", "bool", "complex64", "string", "bfloat16"]
    ),
    shape=SHAPES,
    value=ANYTHING,
)
def test_any_feed_is_taken_or_refused(dtype: str, shape: Any, value: Any) -> None:
    """What is fed comes back in the placeholder's type and shape, or is a Python error."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, shape)
        try:
            result = session.run(tf.identity(x), {x: value})
        except (TypeError, ValueError, OverflowError):
            fine = np.full(
                [n or 0 for n in shape or []], b"" if dtype == "string" else 0, x.dtype.as_numpy_dtype
            )
            assert np.shape(session.run(x, {x: fine})) == fine.shape
        else:
            assert x.shape.is_compatible_with(np.shape(result))
            assert tf.as_dtype(np.asarray(result).dtype if dtype != "string" else "string") == x.dtype


@settings(max_examples=60, deadline=None)
@given(first=SIZES, other=SIZES)
def test_any_shapes_are_computed_as_numpy_does_or_refused(first: Any, other: Any) -> None:
    """Broadcasting, products and joints of fed arrays: NumPy's result, or an InvalidArgumentError."""
    a, b = np.ones(first, np.float32), np.full(other, 2, np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        for ours, theirs in (
            (x + y, lambda: a + b),
            (tf.concat([x, y], 0), lambda: np.concatenate([a, b], 0)),
            (tf.stack([x, y]), lambda: np.stack([a, b])),
        ):
            try:
                expected = theirs()
            except ValueError:
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(ours, {x: a, y: b})
            else:
                np.testing.assert_array_equal(session.run(ours, {x: a, y: b}), expected)
