"""Models that the tests of serving ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flowstone as tf
from flowstone.serving.model import Model
from flowstone.serving.servable import Servable

signatures = tf.saved_model.signature_def_utils


def save_model(folder: Path, slope: float = 0.5) -> None:
    """Saves a model whose signatures say half of x and 2, in several forms, under the method of each."""
    with tf.Graph().as_default(), tf.Session() as session:
        factor = tf.Variable(slope, name="slope")
        x = tf.placeholder(tf.float32, [None], name="x")
        a = tf.placeholder(tf.float32, [None, 2], name="a")
        b = tf.placeholder(tf.int32, [None], name="b")
        words = tf.placeholder(tf.string, [None], name="words")
        serialized = tf.placeholder(tf.string, [None], name="serialized")
        parsed = tf.parse_example(serialized, {"x": tf.FixedLenFeature([], tf.float32, 0.0)})["x"]
        line = parsed * factor + 2.0
        labels = tf.tile([["low", "high"]], [tf.size(serialized), 1])
        scores = tf.stack([1.0 - line, line], axis=1)
        total = tf.reduce_sum(a, axis=1) + tf.to_float(b)
        say = signatures.predict_signature_def
        defs = {
            "serving_default": say({"x": x}, {"y": x * factor + 2.0}),
            "pair": say({"a": a, "b": b}, {"total": total, "double": b * 2}),
            "words": say({"words": words}, {"again": words + "!", "raw_bytes": words}),
            "mean": say({"x": x}, {"mean": tf.reduce_mean(x)}),
            "first": say({"words": words}, {"first_bytes": words[0]}),
            "classify": signatures.classification_signature_def(serialized, labels, scores),
            "scores": signatures.classification_signature_def(serialized, None, scores),
            "regress": signatures.regression_signature_def(serialized, line),
        }
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, [tf.saved_model.SERVING], defs)
        builder.save()


@pytest.fixture(name="save_model", scope="session")
def _save_model() -> Callable[..., None]:
    return save_model


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with one version, 3."""
    folder = tmp_path_factory.mktemp("models") / "half"
    save_model(folder / "3")
    return folder


@pytest.fixture(scope="session")
def model(model_folder: Path) -> Iterator[Any]:
    """The model `half`, serving version 3."""
    model = Model("half", str(model_folder), lambda path: Servable(path, ["serve"]))
    model.refresh()
    yield model
    model.close()
