"""Writes what the profiler of TensorFlow 1.15.5 says of the cases in `tests/profiling/profiler_cases.py`.

    $TF115_PYTHON tests/golden/make_profiler_goldens.py

`tests/golden/profiler.json` has the rows of each case's text, those below the heading "Profile", some of the
messages that are returned, the floating-point operations of single ops, and the advice.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
sys.path.insert(0, str(Path(__file__).parents[1] / "profiling"))

import profiler_cases as cases
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.python.framework import ops

GOLDEN = Path(__file__).with_name("profiler.json")


def metadata(device):
    message = tf.RunMetadata()
    text_format.Merge(cases.step(device), message)
    return message


def rows(graph, case, options):
    view, device, _, _ = case
    run_meta = metadata(device) if device else None
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "text")
        tf.profiler.profile(graph, run_meta, cmd=view, options={**options, "output": "file:outfile=" + file})
        return Path(file).read_text().partition("Profile:\n")[2].rstrip("\n").split("\n")


def message(graph, case, options):
    view, device, _, _ = case
    run_meta = metadata(device) if device else None
    return tf.profiler.profile(graph, run_meta, cmd=view, options={**options, "output": "none"})


def operations():
    counts = []
    for op, inputs, attributes in cases.OPERATIONS:
        with tf.Graph().as_default():
            made = cases.node(tf, op, inputs, attributes)
            try:
                count = ops.get_stats_for_node_def(made.graph, made.node_def, "flops").value
                counts.append(None if count is None else int(count))
            except ValueError:  # the shapes are not complete
                counts.append(None)
    return counts


def main():
    found = {}
    for name, case in cases.CASES.items():
        graph = cases.build_model(tf)  # a profiler keeps state a graph
        options = cases.options(tf.profiler.ProfileOptionBuilder, case)
        found[name] = {"rows": rows(graph, case, options)}
    messages = {}
    for name in cases.MESSAGES:
        options = cases.options(tf.profiler.ProfileOptionBuilder, cases.CASES[name])
        made = message(cases.build_model(tf), cases.CASES[name], options)
        messages[name] = text_format.MessageToString(made, as_one_line=True)
    advice = {}
    for device in cases.ADVICE:
        made = tf.profiler.advise(cases.build_model(tf), metadata(device))
        advice[device] = {checker: list(made.checkers[checker].reports) for checker in sorted(made.checkers)}
    everything = {"rows": {name: each["rows"] for name, each in found.items()}, "messages": messages}
    everything.update(operations=operations(), advice=advice)
    GOLDEN.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
