"""`tf.keras.Model` with Datasets, optimisers of tf.train and checkpoints; a model that TensorFlow 1.15 saved.

The files of tests/golden/keras are TensorFlow's (make_keras_goldens.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras.published import with_keras

import flowstone as tf

GOLDEN = Path(__file__).parents[2] / "golden" / "keras"
pytestmark = [with_keras, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def _seeds(keras_graph: None) -> None:
    np.random.seed(0)
    tf.set_random_seed(0)


def classifier(optimizer: Any = "adam") -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(8, "relu", input_shape=(4,)), layers.Dense(3, "softmax")])
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def examples() -> tuple[Any, Any]:
    x = np.random.randn(96, 4).astype("f")
    return x, np.argmax(x[:, :3], 1)


def test_a_dataset_is_read_whole_in_each_epoch() -> None:
    x, y = examples()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    model = classifier(tf.train.AdamOptimizer(0.02))
    history = model.fit(dataset, epochs=4, verbose=0, validation_data=dataset.repeat(), validation_steps=2)
    assert len(history.history["val_loss"]) == 4
    assert history.history["loss"][-1] < history.history["loss"][0]
    np.testing.assert_allclose(model.evaluate(dataset, verbose=0), model.evaluate(x, y, verbose=0), rtol=1e-5)
    np.testing.assert_allclose(model.predict(dataset), model.predict(x), rtol=1e-5)


def test_iterators_and_tensors_need_a_number_of_steps() -> None:
    x, y = examples()
    repeated = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)
    iterator = repeated.make_one_shot_iterator()
    model = classifier()
    model.fit(iterator, steps_per_epoch=3, verbose=0)
    inputs, targets = iterator.get_next()
    model.fit(inputs, targets, steps_per_epoch=3, verbose=0)
    assert int(tf.keras.backend.get_value(model.optimizer.iterations)) == 6
    with pytest.raises(ValueError, match="number of steps"):
        model.fit(iterator)
    with pytest.raises(ValueError, match="infinitely repeating"):
        model.fit(repeated)
    assert model.predict(repeated.take(2)).shape == (64, 3)
    with pytest.raises(ValueError, match="passed a dataset"):
        model.fit(repeated, y, steps_per_epoch=1)


def test_weights_are_saved_as_checkpoints(tmp_path: Path) -> None:
    x, _ = examples()
    model = classifier()
    before = model.predict(x)
    path = str(tmp_path / "weights")
    model.save_weights(path)
    keys = [name for name, _ in tf.train.list_variables(path)]
    assert "layer_with_weights-0/kernel/.ATTRIBUTES/VARIABLE_VALUE" in keys
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    model.set_weights([0 * weight for weight in model.get_weights()])
    model.load_weights(path)
    np.testing.assert_array_equal(model.predict(x), before)
    model.save_weights(path + ".h5")
    model.set_weights([0 * weight for weight in model.get_weights()])
    model.load_weights(path + ".h5")
    np.testing.assert_array_equal(model.predict(x), before)
    with pytest.raises(ValueError, match="Unknown format"):
        model.save_weights(path, save_format="json")
    with pytest.raises(NotImplementedError, match="by_name"):
        model.load_weights(path, by_name=True)


def two_layers(optimizer: Any = "adam") -> Any:
    """A model of a class of the program's own, which has no weights yet."""

    class Two(tf.keras.Model):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = tf.keras.layers.Dense(5, "relu")
            self.others = [tf.keras.layers.Dense(3, "softmax")]

        def call(self, inputs: Any) -> Any:
            return self.others[0](self.first(inputs))

    model = Two()
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return model


def open_classifier() -> Any:
    layers = tf.keras.layers
    return tf.keras.Sequential([layers.Dense(8, "relu"), layers.Dense(3, "softmax")])


@pytest.mark.parametrize(("made", "loaded"), [(two_layers, two_layers), (classifier, open_classifier)])
def test_weights_that_are_made_later_are_those_of_the_checkpoint(
    made: Any, loaded: Any, tmp_path: Path
) -> None:
    x, y = examples()
    model = made()
    model.fit(x, y, verbose=0)
    path = str(tmp_path / "weights")
    model.save_weights(path)
    other = loaded()
    other.load_weights(path)
    other.compile("sgd", "sparse_categorical_crossentropy")
    np.testing.assert_array_equal(other.predict(x), model.predict(x))
    other.fit(x, y, verbose=0)
    trained = other.get_weights()
    assert any((a != b).any() for a, b in zip(trained, model.get_weights()))
    other.predict(x)
    assert all((a == b).all() for a, b in zip(trained, other.get_weights()))


@pytest.mark.parametrize("make", [classifier, two_layers])
def test_slots_that_are_made_later_are_those_of_the_checkpoint(make: Any, tmp_path: Path) -> None:
    x, y = examples()
    model, other = (make(tf.keras.optimizers.SGD(0.1, momentum=0.9)) for _ in range(2))
    model.fit(x, y, verbose=0, shuffle=False)
    model.save_weights(str(tmp_path / "weights"))
    other.load_weights(str(tmp_path / "weights"))
    tf.keras.backend.set_value(other.optimizer.lr, 0.05)
    tf.keras.backend.set_value(model.optimizer.lr, 0.05)
    for each in (model, other):
        each.fit(x, y, verbose=0, shuffle=False)
    for mine, theirs in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(mine, theirs)
    assert int(tf.keras.backend.get_value(other.optimizer.iterations)) == 6


def test_a_model_of_tensorflow_is_loaded() -> None:
    values = np.load(GOLDEN / "values.npz")
    model = tf.keras.models.load_model(str(GOLDEN / "model.h5"))
    assert isinstance(model, tf.keras.Model)
    np.testing.assert_allclose(model.predict(values["inputs"]), values["outputs"], atol=1e-6)
    model.set_weights([0 * weight for weight in model.get_weights()])
    model.load_weights(str(GOLDEN / "weights"))
    np.testing.assert_allclose(model.predict(values["inputs"]), values["outputs"], atol=1e-6)


def test_arguments_are_in_tensorflows_order() -> None:
    layers = tf.keras.layers
    image = tf.keras.Input((8, 8, 3), batch_size=2)
    layer = layers.Conv2D(4, 3, 2, "same")
    assert layer(image).shape.as_list() == [2, 4, 4, 4]
    assert layer.kernel_size == (3, 3)
    assert isinstance(layer, layers.Conv2D) and issubclass(layers.Conv2D, layers.Layer)

    class Doubled(layers.Dense):
        def call(self, inputs: Any) -> Any:
            return 2 * super().call(inputs)

    assert Doubled(3, "relu")(tf.keras.Input((4,))).shape.as_list() == [None, 3]
    assert layers.Convolution2DTranspose is layers.Conv2DTranspose or issubclass(
        layers.Convolution2DTranspose, layers.Layer
    )


def test_layers_have_variables() -> None:
    class Scaled(tf.keras.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.scale = self.add_variable("scale", (), initializer="ones")
            super().build(input_shape)

        def call(self, inputs: Any) -> Any:
            return inputs * self.scale

    layer = Scaled()
    output = layer.apply(tf.keras.Input((2,)))
    assert layer.trainable_variables == layer.variables == [layer.scale]
    assert layer.non_trainable_variables == []
    assert layer.graph is output.graph
    assert layer.inbound_nodes and not layer.outbound_nodes


@pytest.mark.parametrize("form", ["channels_last", "channels_first"])
def test_bilinear_upsampling_takes_pixels_as_squares(form: str) -> None:
    """TensorFlow 1.15's numbers."""
    last = form == "channels_last"
    images = np.arange(6.0, dtype=np.float32).reshape((1, 2, 3, 1) if last else (1, 1, 2, 3))
    layer = tf.keras.layers.UpSampling2D((2, 2), data_format=form, interpolation="bilinear")
    larger = layer(tf.keras.Input(images.shape[1:]))
    assert larger.shape.as_list() == ([None, 4, 6, 1] if last else [None, 1, 4, 6])
    expected = [
        [0, 0.25, 0.75, 1.25, 1.75, 2],
        [0.75, 1, 1.5, 2, 2.5, 2.75],
        [2.25, 2.5, 3, 3.5, 4, 4.25],
        [3, 3.25, 3.75, 4.25, 4.75, 5],
    ]
    found = tf.keras.backend.eval(layer(tf.constant(images)))
    np.testing.assert_array_equal(found.reshape(4, 6), expected)


def test_a_sequence_after_an_input_layer_is_saved_with_its_shape(tmp_path: Path) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.InputLayer((6,)), layers.Reshape((3, 2)), layers.Dense(4)])
    model.compile("sgd", "mse")
    first = model.get_config()["layers"][0]
    assert first["class_name"] == "Reshape" and tuple(first["config"]["batch_input_shape"]) == (None, 6)
    model.save(str(tmp_path / "model.h5"))
    copy = tf.keras.Sequential.from_config(model.get_config())
    assert [weight.shape.as_list() for weight in copy.weights] == [[2, 4], [4]]
    loaded, x = tf.keras.models.load_model(str(tmp_path / "model.h5")), np.random.randn(2, 6)
    np.testing.assert_array_equal(loaded.predict(x), model.predict(x))


@pytest.mark.parametrize("make", [tf.train.AdamOptimizer, lambda rate: tf.train.MomentumOptimizer(rate, 0.9)])
def test_slots_of_optimizers_of_tf_train_are_in_checkpoints(make: Any, tmp_path: Path) -> None:
    x, y = examples()
    model, other = classifier(make(0.1)), classifier(make(0.1))
    model.fit(x, y, verbose=0, shuffle=False)
    path = str(tmp_path / "weights")
    model.save_weights(path)
    keys = {name.partition("/.ATTRIBUTES")[0] for name, _ in tf.train.list_variables(path)}
    slots = {name for name in keys if name.startswith("layer_with_weights-1/bias/.OPTIMIZER_SLOT/")}
    names = {name.rpartition("/")[2] for name in slots}
    assert names in ({"m", "v"}, {"momentum"})
    assert all("/.OPTIMIZER_SLOT/optimizer/optimizer/" in name for name in slots)
    assert "optimizer/global_step" in keys
    assert ("optimizer/optimizer/beta1_power" in keys) == ("m" in names)
    other.load_weights(path)
    for each in (model, other):
        each.fit(x, y, verbose=0, shuffle=False)
    for mine, theirs in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(mine, theirs)


def test_a_file_of_a_model_without_a_configuration_is_refused_in_words(tmp_path: Path) -> None:
    x, y = examples()
    model = two_layers()
    model.fit(x, y, verbose=0)
    with pytest.raises(NotImplementedError, match="to be a Functional model or a Sequential model"):
        model.save(str(tmp_path / "model.h5"))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["generator", "Sequence"])
def test_generators_of_tuples(kind: str, workers: int) -> None:
    """Inputs may be a tuple, as in TensorFlow; the package takes lists."""
    batch = (np.ones([4, 2]), np.ones([4, 3])), np.ones([4, 1])

    class Batches(tf.keras.utils.Sequence):  # type: ignore[misc]
        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> Any:
            return batch

    def batches() -> Any:
        return Batches() if kind == "Sequence" else iter([batch] * 50)

    inputs = [tf.keras.Input((2,)), tf.keras.Input((3,))]
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(tf.keras.layers.concatenate(inputs)))
    model.compile("sgd", "mse")
    options = {"validation_data": batches(), "validation_steps": 1, "verbose": 0, "workers": workers}
    history = model.fit_generator(batches(), 2, **options).history
    assert len(history["loss"]) == len(history["val_loss"]) == 1
    assert np.ndim(model.evaluate_generator(batches(), 2, workers=workers)) == 0
    assert model.predict_generator(batches(), 2, workers=workers).shape == (8, 1)
