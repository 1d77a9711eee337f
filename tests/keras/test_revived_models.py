"""Models of a program's class that come out of a SavedModel, without that class (make_keras_goldens.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]

GOLDEN = Path(__file__).parents[1] / "golden" / "keras"

_X = np.random.RandomState(0).randn(6, 4).astype("f")


@pytest.fixture(autouse=True)
def _graph(keras_graph: None) -> None: ...


def _saved(folder: Path) -> tuple[str, np.ndarray[Any, Any]]:
    """The folder of a model of a class, and what the model computes of `_X`."""

    class Doubled(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(name="doubled")
            self.inner = tf.keras.layers.Dense(3, activation="tanh")
            self.norm = tf.keras.layers.BatchNormalization()
            self.outer = tf.keras.layers.Dense(2)

        def call(self, x: Any, training: Any = None) -> Any:
            return 2.0 * self.outer(self.norm(self.inner(x), training=training))

    model = Doubled()
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(_X, np.ones([6, 2]), verbose=0)
    path = str(folder / "model")
    model.save(path, save_format="tf")
    found = model.predict(_X)
    tf.keras.backend.clear_session()
    return path, found


def test_it_has_the_name_of_its_class_its_weights_and_its_results(tmp_path: Path) -> None:
    path, expected = _saved(tmp_path)
    model = tf.keras.models.load_model(path)
    assert (type(model).__name__, model.name) == ("Doubled", "doubled")
    assert isinstance(model, tf.keras.Model)
    np.testing.assert_allclose(model.predict(_X), expected, rtol=1e-5, atol=1e-6)
    assert (len(model.weights), len(model.trainable_weights)) == (8, 6)
    assert model.metrics_names[0] == "loss"
    assert len(model.evaluate(_X, np.ones([6, 2]), verbose=0)) == 2


def test_it_trains_on(tmp_path: Path) -> None:
    path, _ = _saved(tmp_path)
    model = tf.keras.models.load_model(path)
    before = model.get_weights()
    losses = model.fit(_X, np.ones([6, 2]), epochs=20, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    changed = [not np.array_equal(a, b) for a, b in zip(before, model.get_weights())]
    assert all(changed)  # the moving means among them


def test_without_compile_it_is_not_compiled(tmp_path: Path) -> None:
    path, expected = _saved(tmp_path)
    model = tf.keras.models.load_model(path, compile=False)
    assert model.optimizer is None
    np.testing.assert_allclose(model.predict(_X), expected, rtol=1e-5, atol=1e-6)


def test_one_that_tensorflow_1_15_wrote() -> None:
    values = np.load(GOLDEN / "own_class_values.npz")
    model = tf.keras.models.load_model(str(GOLDEN / "own_class"))
    assert (type(model).__name__, model.name) == ("Doubled", "doubled")
    np.testing.assert_allclose(model.predict(values["inputs"]), values["outputs"], rtol=1e-5)
    np.testing.assert_allclose(
        model.evaluate(values["inputs"], np.ones([2, 2]), verbose=0), values["loss"], rtol=1e-5
    )


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    tf.saved_model.save(tf.Module(), str(tmp_path / "no_model"))
    with pytest.raises(ValueError, match=r"not of a tf\.keras model"):
        tf.keras.models.load_model(str(tmp_path / "no_model"))
