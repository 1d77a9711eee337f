"""The published package over flowstone; without it, what it says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.keras.published import with_keras, without_keras

import flowstone as tf
from flowstone.keras import installation

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


@without_keras
def test_without_the_package_the_error_says_what_to_install() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"pip install flowstone\[keras\]"):
        tf.keras.layers.Dense(3)
    with pytest.raises(ModuleNotFoundError, match=r"pip install flowstone\[keras\]"):
        tf.keras.Sequential  # noqa: B018


@without_keras
def test_the_ground_of_the_backend_is_there_without_the_package() -> None:
    with tf.Session() as session:
        assert session.run(tf.keras.backend.hard_sigmoid(tf.constant(0.0))) == 0.5
    with pytest.raises(ModuleNotFoundError, match=r"flowstone\[keras\]"):
        tf.keras.backend.batch_dot  # noqa: B018


@pytest.mark.parametrize("found", ["2.2.4", "2.3.1"])
def test_versions_that_fit(found: str) -> None:
    assert installation.refusal(found) is None


@pytest.mark.parametrize("found", [None, "2.1.6", "2.4.3", "3.5.0"])
def test_versions_that_do_not_fit(found: str | None) -> None:
    text = installation.refusal(found)
    assert text is not None and "pip install flowstone[keras]" in text
    assert found is None or found in text


@with_keras
def test_a_model_learns_and_is_saved(tmp_path: Path) -> None:
    np.random.seed(0)
    tf.set_random_seed(0)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(16, activation="relu", input_shape=(4,))])
    model.add(layers.Dense(3, activation="softmax"))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    x = np.random.randn(256, 4).astype("f")
    y = np.argmax(x[:, :3], 1)
    losses = model.fit(x, y, epochs=40, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]
    assert model.evaluate(x, y, verbose=0)[1] > 0.5
    path = str(tmp_path / "model.h5")
    model.save(path)
    before = model.predict(x)
    tf.keras.backend.clear_session()
    loaded = tf.keras.models.load_model(path)
    np.testing.assert_allclose(loaded.predict(x), before, atol=1e-6)


@with_keras
def test_namespaces_are_those_of_a_package_of_their_own() -> None:
    from flowstone.keras.optimizers import schedules
    from flowstone.keras.preprocessing import sequence

    keras = pytest.importorskip("keras")
    assert tf.keras.Model.__module__ == "flowstone.keras.package.engine.training"
    assert not issubclass(tf.keras.Model, keras.models.Model)
    assert tf.keras.losses is not keras.losses
    assert tf.keras.optimizers.schedules is schedules
    assert schedules.ExponentialDecay(0.1, 2, 0.5).get_config()["decay_steps"] == 2
    expected = "sigmoid" if keras.__version__.startswith("2.3") else "hard_sigmoid"
    assert keras.layers.LSTM(2).recurrent_activation.__name__ == expected
    assert tf.keras.layers.LSTM(2).recurrent_activation.__name__ == "hard_sigmoid"
    assert issubclass(tf.keras.utils.OrderedEnqueuer, tf.keras.utils.SequenceEnqueuer)
    assert sequence.pad_sequences([[1], [2, 3]], 2).tolist() == [[0, 1], [2, 3]]
    assert tf.keras.__version__ == "2.2.4-tf"


@with_keras
def test_programs_import_it_from_tensorflow() -> None:
    program = (
        "from tensorflow.keras.layers import Dense\n"
        "from tensorflow.python.keras import backend as K\n"
        "from tensorflow.python.keras.utils.np_utils import to_categorical\n"
        "import keras\n"
        "assert not isinstance(keras.layers.Dense(3), Dense)\n"
        "assert K.get_session().graph is K.get_session().graph\n"
        "print(to_categorical([1]).tolist(), K.get_session is not None)\n"
    )
    run = [sys.executable, "-m", "flowstone", "run", "-"]
    result = subprocess.run(run, input=program, capture_output=True, text=True, timeout=100)
    assert result.stdout == "[[0.0, 1.0]] True\n", result.stderr


@with_keras
def test_modules_that_only_tensorflow_has() -> None:
    program = (
        "import tensorflow as tf\n"
        "from tensorflow.keras.optimizers.schedules import ExponentialDecay\n"
        "from tensorflow.python.keras.saving import hdf5_format\n"
        "from tensorflow.python.keras.saving.hdf5_format import save_weights_to_hdf5_group\n"
        "from tensorflow.python.keras.optimizer_v2 import adam\n"
        "from tensorflow.python.keras.optimizer_v2.optimizer_v2 import OptimizerV2\n"
        "print(adam.Adam is tf.keras.optimizers.Adam, issubclass(adam.Adam, OptimizerV2))\n"
    )
    run = [sys.executable, "-m", "flowstone", "run", "-"]
    result = subprocess.run(run, input=program, capture_output=True, text=True, timeout=100)
    assert result.stdout == "True True\n", result.stderr


@with_keras
def test_tensorflows_own_modules_are_the_packages() -> None:
    program = (
        "from tensorflow.python.keras._impl.keras.layers import Dense\n"
        "from tensorflow.python.keras._impl import keras\n"
        "from tensorflow.keras.applications.vgg16 import preprocess_input\n"
        "print(Dense is keras.layers.Dense, callable(preprocess_input))\n"
    )
    run = [sys.executable, "-m", "flowstone", "run", "-"]
    result = subprocess.run(run, input=program, capture_output=True, text=True, timeout=100)
    assert result.stdout == "True True\n", result.stderr


@with_keras
def test_modules_of_keras_are_those_of_tf_keras_where_a_program_says_so() -> None:
    program = """
import sys
import tensorflow as tf
sys.modules["keras"] = tf.keras
import keras.layers
import keras.backend as K
from keras.engine.base_layer import Layer
from keras.models import Sequential
assert keras.layers is tf.keras.layers and Sequential is tf.keras.Sequential
assert issubclass(keras.layers.Dense, Layer) and K.backend() == "tensorflow"
print("same")
"""
    run = [sys.executable, "-m", "flowstone", "run", "-"]
    result = subprocess.run(run, input=program, capture_output=True, text=True, timeout=100)
    assert result.stdout.splitlines()[-1:] == ["same"], result.stderr


@with_keras
def test_classes_say_tensorflows_modules() -> None:
    program = (
        "import pickle\n"
        "import tensorflow as tf\n"
        "from tensorflow.keras import layers\n"
        "model = tf.keras.Sequential([layers.Dense(2, input_shape=[3]), layers.LayerNormalization()])\n"
        "print(type(model), *map(type, model.layers))\n"
        "print(pickle.loads(pickle.dumps(layers.LayerNormalization)) is layers.LayerNormalization)\n"
        "import keras\n"
        "print(keras.Sequential)\n"
    )
    run = [sys.executable, "-m", "flowstone", "run", "-"]
    result = subprocess.run(run, input=program, capture_output=True, text=True, timeout=100)
    names = "engine.sequential.Sequential", "layers.core.Dense", "layers.normalization.LayerNormalization"
    classes = " ".join(f"<class 'tensorflow.python.keras.{name}'>" for name in names)
    expected = f"{classes}\nTrue\n<class 'keras.engine.sequential.Sequential'>\n"
    assert result.stdout == expected, result.stderr
