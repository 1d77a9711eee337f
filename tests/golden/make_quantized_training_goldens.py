"""Writes the graphs that TensorFlow 1.15.5 makes of those in `tests/training/quantized_training_cases.py`.

    $TF115_PYTHON tests/golden/make_quantized_training_goldens.py

`tests/golden/quantized_training.json` has, for each graph, the nodes that were added or changed.
"""

import json
import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

import tensorflow as tf
from google.protobuf import text_format

import quantized_training_cases as cases

GOLDEN = Path(__file__).with_name("quantized_training.json")


def changed(case):
    with tf.Graph().as_default() as graph:
        cases.CASES[case](tf)
    before = {node.name: node for node in graph.as_graph_def().node}
    after = tf.train.do_quantize_training_on_graphdef(graph.as_graph_def(), 8)
    nodes = [node for node in after.node if before.get(node.name) != node]
    lines = {}
    for node in nodes:
        cases.without_details(node, case, node.name not in before)
        lines[node.name] = text_format.MessageToString(node, as_one_line=True)
    return lines


if __name__ == "__main__":
    found = {name: changed(name) for name in cases.CASES}
    GOLDEN.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
