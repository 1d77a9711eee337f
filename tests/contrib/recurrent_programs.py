"""Runs programs of recurrent models, by TensorFlow 1.15 or by flowstone, on the same variables.

A program is a function of the module `tf` that returns what to fetch, a nested list, or a pair ("gradients",
(loss, fetches)) for gradients as well. All variables get values that depend on their names alone.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "contrib_recurrent"


def flat(values: Any) -> Iterator[Any]:
    """The parts of nested lists and tuples."""
    if isinstance(values, (list, tuple)):
        for each in values:
            yield from flat(each)
    else:
        yield values


def value_for(name: str, shape: list[int]) -> np.ndarray:
    """The value of a variable: uniform between -0.5 and 0.5."""
    values = np.random.RandomState(sum(map(ord, name))).rand(int(np.prod(shape, dtype=int)))
    return (values.reshape(shape) - 0.5).astype("f")


def run(tf: Any, program: Callable[[Any], Any]) -> tuple[list[list[Any]], list[np.ndarray]]:
    """The variables' names and shapes, and the arrays that were fetched."""
    tf.reset_default_graph()
    tf.set_random_seed(7)
    with tf.Session() as session:
        fetches = program(tf)
        if isinstance(fetches, tuple) and isinstance(fetches[0], str):
            loss, fetches = fetches[1]
            found = tf.gradients(loss, tf.trainable_variables())
            fetches = [fetches, [tf.convert_to_tensor(each) for each in found if each is not None]]
        variables = tf.global_variables()
        session.run(tf.global_variables_initializer())
        for variable in variables:
            variable.load(value_for(variable.name, variable.shape.as_list()), session)
        arrays = [np.asarray(each) for each in session.run(list(flat(fetches)))]
    return [[each.name, each.shape.as_list()] for each in variables], arrays


def write(family: str, found: dict[str, tuple[list[list[Any]], list[np.ndarray]]]) -> None:
    """Writes the golden file of a family of programs."""
    arrays = {f"{name}/{i}": array for name, (_, values) in found.items() for i, array in enumerate(values)}
    names = {name: variables for name, (variables, _) in found.items()}
    GOLDEN.mkdir(exist_ok=True)
    np.savez_compressed(GOLDEN / f"{family}.npz", variables=np.array(json.dumps(names)), **arrays)


def check(tf: Any, family: str, name: str, program: Callable[[Any], Any]) -> None:
    """Asserts that flowstone gives a program the golden variables and values."""
    with np.load(GOLDEN / f"{family}.npz") as golden:
        expected_variables = json.loads(str(golden["variables"]))[name]
        count = sum(each.startswith(f"{name}/") for each in golden.files)
        expected = [golden[f"{name}/{i}"] for i in range(count)]
    variables, arrays = run(tf, program)
    assert variables == expected_variables
    assert [each.shape for each in arrays] == [each.shape for each in expected]
    assert expected
    for i, (array, golden_array) in enumerate(zip(arrays, expected)):
        np.testing.assert_allclose(array, golden_array, rtol=2e-4, atol=2e-5, err_msg=f"fetch {i}")
