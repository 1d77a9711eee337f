"""SavedModels of an object by TensorFlow's `tf.saved_model.save`, in eager mode.

    /path/to/tensorflow-1.15.5/bin/python tests/golden/make_object_model_goldens.py from_1_15
    /path/to/tensorflow-2.21/bin/python tests/golden/make_object_model_goldens.py from_2_21

write the folders of these names in `object_models`.
"""

import importlib
import os
import sys
import tempfile

import tensorflow as tf

tf.compat.v1.enable_eager_execution()


def asset(path):
    """The asset, whose class has another name in TensorFlow 1."""
    if hasattr(tf.saved_model, "Asset"):
        return tf.saved_model.Asset(path)
    return importlib.import_module("tensorflow.python.training.tracking.tracking").TrackableAsset(path)


class Model(tf.Module):
    """Variables at several depths, an asset, a table and three functions."""

    def __init__(self, folder):
        super().__init__()
        self.v = tf.Variable(3.0)
        path = os.path.join(folder, "vocabulary.txt")
        with open(path, "w") as file:
            file.write("a\nb\nc\n")
        self.asset = asset(path)
        self.sub = [tf.Variable([1.0, 2.0]), tf.Variable([4])]
        index = tf.lookup.TextFileIndex
        lines = tf.lookup.TextFileInitializer(
            self.asset.asset_path, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
        )
        self.table = tf.lookup.StaticHashTable(lines, -1)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x):
        return x * self.v

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def look(self, s):
        return {"ids": self.table.lookup(s), "n": tf.size(s)}

    @tf.function
    def shifted(self, x, up=False):
        if up:
            return x + self.v
        return x - self.v


with tempfile.TemporaryDirectory() as folder:
    model = Model(folder)
    model.shifted(tf.constant([1.0]))
    model.shifted(tf.constant(1.0), up=True)
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "object_models", sys.argv[1])
    tf.saved_model.save(model, target, signatures={"serving_default": model.__call__, "look": model.look})
