"""Objects of SavedModels that TensorFlow 1.15.5 and 2.21 wrote, in a graph: values, errors, saving again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

GOLDEN = Path(__file__).parents[1] / "golden" / "object_models"
MODELS = [GOLDEN / "from_1_15", GOLDEN / "from_2_21"]


def started() -> Any:
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return session


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_functions_variables_and_tables_work(path: Path) -> None:
    model = tf.saved_model.load_v2(path)
    words = tf.constant(["a", "c", "x"])
    called = model(tf.constant([2.0, 3.0]))
    fetches = [called, model.shifted(tf.constant(5.0), up=True), model.shifted(tf.constant([5.0]))]
    found = [model.look(words), model.signatures["look"](s=words), model.signatures["look"](words)]
    gradient = tf.gradients(called, model.v)
    with started() as session:
        assert [value.tolist() for value in session.run(fetches)] == [[6, 9], 8, [2]]
        for each in session.run(found):
            assert (each["ids"].tolist(), each["n"]) == ([0, 2, -1], 3)
        assert session.run(gradient) == [5]
        assert session.run(model.sub[0]).tolist() == [1, 2]
        assert session.run(model.sub[1]).tolist() == [4]
        assert session.run(model.asset.asset_path) == f"{path}/assets/vocabulary.txt".encode()
        session.run(model.v.assign(10.0))
        assert session.run(called).tolist() == [20, 30]
    assert tf.global_variables() == [model.v, *model.sub]
    assert not tf.trainable_variables()
    assert model.v.trainable


def test_a_loaded_model_is_saved_again_and_loaded_twice(tmp_path: Path) -> None:
    model = tf.saved_model.load_v2(MODELS[0])
    with started() as session:
        session.run(model.v.assign(7.0))
        tf.saved_model.save(model, tmp_path / "again", signatures=model.signatures)
    first, second = (tf.saved_model.load_v2(tmp_path / "again") for _ in range(2))
    with started() as session:
        session.run(second.v.assign(1.0))
        x = tf.constant([2.0])
        values = session.run([first(x), second(x), second.look(tf.constant(["b"]))["ids"]])
        assert np.concatenate(values).tolist() == [14, 2, 1]


def test_variables_have_no_values_before_the_initialiser() -> None:
    result = tf.saved_model.load_v2(MODELS[0])(tf.constant([1.0]))
    with tf.Session() as session, pytest.raises(tf.errors.FailedPreconditionError):
        session.run(result)


def test_errors_are_those_of_tensorflow(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="SavedModel file does not exist at"):
        tf.saved_model.load_v2(tmp_path)
    with pytest.raises(ValueError, match="has one MetaGraph with tags"):
        tf.saved_model.load_v2(MODELS[0], tags=["a"])
    model = tf.saved_model.load_v2(MODELS[0], tags="serve")
    with pytest.raises(ValueError, match=r"(?s)Could not find matching function.*Option 2:.*name='x'\)"):
        model.shifted(tf.constant([5.0]), up=True)
    with pytest.raises(ValueError, match="incompatible with input_signature"):
        model(3.0)
    with pytest.raises(ValueError, match="does not match input_signature"):
        model()
    look = model.signatures["look"]
    with pytest.raises(TypeError, match=r"Expected argument names \['s'\].*Missing: \['s'\]"):
        look()
    with pytest.raises(ValueError, match="not compatible with the shape"):
        look(tf.constant("a"))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="load it again in the other one"):
        look(tf.constant(["a"]))
