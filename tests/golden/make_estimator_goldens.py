"""Train TensorFlow's canned Estimators for three steps, and ask what they answer.

Run with a Python that has TensorFlow 1.15: `python tests/golden/make_estimator_goldens.py`. The models are in
`tests/estimator/canned_models.py`. `tests/golden/estimators` gets a checkpoint for each and, in
`answers.json`, the shapes of its variables, the tags of its summaries, the metrics, the first prediction,
the signatures, and the variables two steps later.
"""

import glob
import json
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "estimator"))

import numpy as np
import tensorflow as tf
from canned_models import examples, models

GOLDEN = pathlib.Path(__file__).parent / "estimators"


def plain(value):
    """A value as JSON has it."""
    value = np.asarray(value)
    if value.dtype == object:
        return [text.decode() for text in value.ravel()]
    return value.tolist()


def answer(make, kind, folder, name):
    estimator = make(folder)
    estimator.train(lambda: examples(tf, kind), steps=3)
    names = estimator.get_variable_names()
    tags = {
        value.tag
        for path in glob.glob(folder + "/*tfevents*")
        for event in tf.train.summary_iterator(path)
        for value in event.summary.value
    }
    found = {
        "variables": {each: list(estimator.get_variable_value(each).shape) for each in names},
        "tags": sorted(tags),
    }
    for path in glob.glob(folder + "/model.ckpt-3.*"):
        if not path.endswith("meta"):
            shutil.copy(path, str(GOLDEN / (name + os.path.basename(path)[len("model.ckpt-3") :])))
    metrics = estimator.evaluate(lambda: examples(tf, kind))
    found["metrics"] = {key: plain(value) for key, value in metrics.items()}
    first = next(estimator.predict(lambda: examples(tf, kind)))
    found["prediction"] = {
        "/".join(key) if isinstance(key, tuple) else key: plain(value) for key, value in first.items()
    }
    spec = {"x": tf.FixedLenFeature([1], tf.float32), "c": tf.FixedLenFeature([], tf.string)}
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    path = estimator.export_savedmodel(folder + "/export", receiver).decode()
    with tf.Session(graph=tf.Graph()) as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], path).signature_def
    found["signatures"] = {
        key: [each.method_name.rpartition("/")[2], sorted(each.inputs), sorted(each.outputs)]
        for key, each in signatures.items()
    }
    estimator.train(lambda: examples(tf, kind), steps=2)
    found["later"] = {each: plain(estimator.get_variable_value(each)) for each in names}
    return found


def main():
    tf.logging.set_verbosity(tf.logging.ERROR)
    shutil.rmtree(str(GOLDEN), ignore_errors=True)
    GOLDEN.mkdir()
    answers = {}
    for name, (make, kind) in models(tf).items():
        answers[name] = answer(make, kind, tempfile.mkdtemp(), name)
    text = json.dumps(answers, indent=None, separators=(",", ":"), sort_keys=True)
    (GOLDEN / "answers.json").write_text(text.replace('},"', '},\n"') + "\n")


if __name__ == "__main__":
    main()
