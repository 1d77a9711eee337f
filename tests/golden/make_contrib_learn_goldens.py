"""Writes `contrib_learn/`: Estimators of `tf.contrib.learn` that TensorFlow 1.15.5 trained, and answers of
heads.

Run with TensorFlow 1.15.5: ``$TF115_PYTHON tests/golden/make_contrib_learn_goldens.py``. Each model of
`learn_models.py` is trained for three steps; its checkpoint is NAME.index and NAME.data-…, its variables,
evaluation and predictions are in answers.json, with the answers of each head. inputs.json has what the
feeders, input functions and readers of `learn_inputs.py` give, functions.json what the functions of
`learn_functions.py` do, points.json the points of `learn_points.py`, trained.json the variables and answers
of the models of `learn_trained.py`. bundle is a session bundle.
"""

import glob
import json
import os
import shutil
import sys
import tempfile

import tensorflow as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "contrib", "learn"))
import learn_functions
import learn_inputs
import learn_models
import learn_points
import learn_trained
from tensorflow.contrib.learn.python.learn.learn_io import data_feeder
from tensorflow.contrib.linear_optimizer.python import sdca_optimizer
from tensorflow.contrib.session_bundle import exporter

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "contrib_learn")


def write(name, values):
    with open(os.path.join(FOLDER, name), "w") as file:
        is_numbers = name in ("functions.json", "points.json", "trained.json")
        json.dump(values, file, indent=None if is_numbers else 1, sort_keys=True)
        file.write("\n")


def train_models():
    """The answers of the models of `learn_models.py`, whose checkpoints are written."""
    answers = {"models": {}, "heads": learn_models.head_answers(tf)}
    for name in learn_models.NAMES:
        model_dir = tempfile.mkdtemp()
        model, labels = learn_models.model(tf, name, model_dir)
        model.fit(input_fn=learn_models.input_fn(tf, labels), steps=3)
        answers["models"][name] = learn_models.answers(tf, model, labels)
        latest = tf.train.latest_checkpoint(model_dir)
        for path in glob.glob(latest + ".index") + glob.glob(latest + ".data*"):
            shutil.copy(path, os.path.join(FOLDER, name + path[len(latest) :]))
    return answers


def export_bundle():
    """A graph of one product with a file, as a session bundle."""
    os.chdir(tempfile.mkdtemp())  # the file's path is part of the graph
    with open("words.txt", "w") as file:
        file.write("words")
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.matmul(x, tf.Variable([[1.0], [2.0]], name="w"), name="y")
        text = tf.Variable("", name="text", collections=[tf.GraphKeys.LOCAL_VARIABLES])
        name = tf.constant("words.txt", name="name")
        read, step = tf.assign(text, tf.read_file(name)).op, tf.Variable(7, name="step", dtype=tf.int64)
        session.run(tf.global_variables_initializer())
        export = exporter.Exporter(tf.train.Saver(sharded=True))
        export.init(
            graph.as_graph_def(),
            init_op=read,
            default_graph_signature=exporter.regression_signature(x, y),
            named_graph_signatures={"outputs": exporter.generic_signature({"y": y})},
            assets_collection=[name],
        )
        made = export.export("exports", step, session)
    shutil.rmtree(os.path.join(FOLDER, "bundle"), ignore_errors=True)
    shutil.copytree(made.decode(), os.path.join(FOLDER, "bundle"), ignore=lambda *_: ["checkpoint"])


def main():
    tf.logging.set_verbosity(tf.logging.ERROR)
    only = sys.argv[1:]  # the files to write; all if none is named
    if not only:
        shutil.rmtree(FOLDER, ignore_errors=True)
        os.makedirs(FOLDER)
    makers = {
        "answers.json": train_models,
        "inputs.json": lambda: {
            "feeders": learn_inputs.feeder_answers(tf, data_feeder),
            "batches": learn_inputs.input_answers(tf),
        },
        "points.json": lambda: [
            learn_points.answer(tf.contrib.learn.datasets.make_dataset, case)
            for case in range(len(learn_points.CASES))
        ],
        "trained.json": lambda: learn_trained.answers(tf, sdca_optimizer.SDCAOptimizer),
        "functions.json": lambda: learn_functions.all_answers(tf),
    }
    if not only or "bundle" in only:
        export_bundle()
    for name, make in makers.items():
        if not only or name in only:
            write(name, make())


main()
