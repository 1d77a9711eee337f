"""Batches of shapes that a model has checked are fed without being checked again."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import flowstone as tf

if find_spec("keras") is None:
    pytest.skip("needs flowstone[keras]", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    tf.keras.backend.clear_session()
    yield
    tf.keras.backend.clear_session()


def model(loss: str = "mse") -> Any:
    made = tf.keras.Sequential([tf.keras.layers.Dense(2, input_shape=(3,))])
    made.compile("sgd", loss)
    return made


def arrays(count: int = 4, columns: int = 3) -> tuple[Any, Any]:
    return np.ones((count, columns), "f"), np.ones((count, 2), "f")


def test_the_second_batch_is_fed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = model()
    x, y = arrays()
    first = trained._standardize_user_data(x, y)
    checks: list[str] = []
    own = type(trained)._standardize_user_data.__globals__["own"]
    published = own("engine.training_utils").standardize_input_data

    def noted(*arguments: Any, **options: Any) -> Any:
        checks.append("checked")
        return published(*arguments, **options)

    monkeypatch.setattr(own("engine.training_utils"), "standardize_input_data", noted)
    monkeypatch.setattr(own("engine.training"), "standardize_input_data", noted, raising=False)  # Keras 2.2
    other = arrays()
    inputs, targets, weights = trained._standardize_user_data(*other, sample_weight=None)
    assert not checks and inputs[0] is other[0] and targets[0] is other[1]
    assert weights == first[2]
    trained._standardize_user_data(*arrays(5))
    assert checks


def test_other_shapes_are_checked() -> None:
    trained = model()
    trained.train_on_batch(*arrays())
    with pytest.raises(ValueError, match="expected dense_input to have shape"):
        trained.train_on_batch(*arrays(columns=4))
    with pytest.raises(ValueError, match="same number of samples"):
        trained.train_on_batch(arrays(5)[0], arrays()[1])


def test_a_model_that_is_compiled_again_checks_again() -> None:
    trained = model()
    x = np.ones((4, 3), "f")
    trained.train_on_batch(x, np.ones((4, 2), "f"))
    trained.compile("sgd", "sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="expected dense to have shape"):
        trained.train_on_batch(x, np.ones((4, 2), "f"))
    trained.train_on_batch(x, np.ones((4, 1), "f"))


def test_weights_are_not_forgotten() -> None:
    trained = model()
    x, y = arrays()
    trained.train_on_batch(x, y)
    _, _, weights = trained._standardize_user_data(x, y, sample_weight=np.array([1.0, 2, 3, 4]))
    assert weights[0].tolist() == [1, 2, 3, 4]
    _, _, weights = trained._standardize_user_data(x, y)
    assert weights[0].tolist() == [1] * 4


def test_a_vector_becomes_a_column_each_time() -> None:
    made = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(3,))])
    made.compile("sgd", "mse")
    for _ in range(2):
        _, targets, _ = made._standardize_user_data(np.ones((4, 3), "f"), np.ones(4, "f"))
        assert targets[0].shape == (4, 1)
