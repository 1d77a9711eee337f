"""A model with a vocabulary, a variable and a loop, saved and served by flowstone or TensorFlow (`tf`).

`python tests/training/saved_model_programs.py DIR` saves flowstone's in the folder DIR.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

WORDS = ("on", "mat", "cat")
FED = ["cat", "on", "bird"]


def build(tf: Any, vocabulary: str) -> tuple[Any, Any]:
    """The words that are fed, and what comes of them."""
    index = tf.lookup.TextFileIndex
    lines = tf.lookup.TextFileInitializer(
        vocabulary, tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
    )
    table = tf.lookup.StaticHashTable(lines, 3)
    words = tf.placeholder(tf.string, [None], name="words_fed")
    weights = tf.get_variable("weights", initializer=[1.0, 2.0, 3.0, 4.0])
    chosen = tf.gather(weights, table.lookup(words))
    _, grown = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, chosen])
    return words, tf.identity(grown, name="scaled")


def save(tf: Any, folder: str, as_text: bool = False) -> None:
    """Saves the model for serving, and a second graph with other tags."""
    model = tf.saved_model
    with tempfile.TemporaryDirectory() as below, tf.Graph().as_default(), tf.Session() as session:
        vocabulary = os.path.join(below, "vocabulary.txt")
        with open(vocabulary, "w") as file:
            file.write("\n".join(WORDS))
        words, scaled = build(tf, vocabulary)
        session.run(tf.global_variables_initializer())
        session.run(tf.assign(tf.global_variables()[0], [10.0, 20.0, 30.0, 40.0]))
        signature = model.signature_def_utils.predict_signature_def({"words": words}, {"scaled": scaled})
        builder = model.builder.SavedModelBuilder(folder)
        builder.add_meta_graph_and_variables(
            session,
            [model.tag_constants.SERVING],
            {model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.group(tf.tables_initializer(), name="main"),
            strip_default_attrs=True,
        )
        builder.add_meta_graph(["serve", "again"], strip_default_attrs=True)
        builder.save(as_text)


def served(tf: Any, folder: str, scope: str | None = None) -> list[float]:
    """What a saved model makes of the words in `FED`."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        meta = tf.saved_model.loader.load(session, ["serve"], folder, import_scope=scope)
        signature = meta.signature_def["serving_default"]
        words, scaled = (
            tf.saved_model.utils.get_tensor_from_tensor_info(info, graph, scope)
            for info in (signature.inputs["words"], signature.outputs["scaled"])
        )
        return [float(value) for value in session.run(scaled, {words: FED})]


if __name__ == "__main__":
    import flowstone

    save(flowstone, sys.argv[1])
