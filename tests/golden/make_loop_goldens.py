"""Ask TensorFlow what the programs of `tests/ops/loop_programs.py` give, and those of
`tests/gradients/loop_gradient_programs.py`.

Run with a Python that has TensorFlow 2 (the files came from 2.21):
`python tests/golden/make_loop_goldens.py`. `tests/golden/loops/values.json` has by program what
`loop_programs.run` gives, and by mistake the class of the error; ``nodes.txt`` what `node_lines` gives, below
a line ``# program``; ``references.json`` what the programs of
`reference_loop_programs.py` give; ``gradients.json`` and ``gradient_nodes.txt`` are the same of gradients.
``from_tensorflow.pbtxt`` is the graph of `loop_programs.exchanged`. Then imports and runs
``from_flowstone.pbtxt``, the same graph as `tests/ops/control/test_loops.py` holds Flowstone's export to.
``gradient_nodes.txt`` came from 1.15.5, though, by the same `node_lines`; in ``nodes.txt`` sums are those of
1.15, by hand: Add where 2.21 has AddV2.
Ends with an error if a message lacks the words that it should have, or that graph's values differ.
"""

from __future__ import annotations

import json
import os
import pathlib
import sys
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3", TF_USE_LEGACY_KERAS="1")
FOLDER = pathlib.Path(__file__).parent / "loops"
for room in ("ops", "gradients"):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / room))

import loop_gradient_programs  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402

import loop_programs  # noqa: E402
import reference_loop_programs  # noqa: E402


def mistakes() -> dict[str, str]:
    """By program the class of the error."""
    found = {}
    for name, (words, _) in loop_programs.MISTAKES.items():
        found[name], message = loop_programs.refusal(tf, name)
        if words not in message:
            raise SystemExit(f"{name}: {words!r} is not in {found[name]}: {message}")
    return found


def exchange() -> None:
    """Writes TensorFlow's graph; runs both."""
    with tf.Graph().as_default() as graph:
        loop_programs.exchanged(tf)
        text = text_format.MessageToString(graph.as_graph_def())
    (FOLDER / "from_tensorflow.pbtxt").write_text(text)
    for path in (FOLDER / "from_tensorflow.pbtxt", FOLDER / "from_flowstone.pbtxt"):
        if path.exists():
            message = text_format.Parse(path.read_text(), tf.GraphDef())
            with tf.Graph().as_default(), tf.Session() as session:
                tf.import_graph_def(message, name="")
                for start, expected in loop_programs.EXCHANGED_VALUES.items():
                    found = session.run(["result:0", "slope:0"], {"x:0": start})
                    np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=str(path))


def main() -> None:
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()
    tf.logging.set_verbosity(tf.logging.FATAL)
    FOLDER.mkdir(exist_ok=True)
    exchange()
    refused = json.dumps(mistakes(), indent=1)
    values = f'{{"programs": {values_of(loop_programs)},\n"mistakes": {refused}}}\n'
    (FOLDER / "values.json").write_text(values)
    (FOLDER / "nodes.txt").write_text(nodes_of(loop_programs))
    (FOLDER / "references.json").write_text(references() + "\n")
    (FOLDER / "gradients.json").write_text(values_of(loop_gradient_programs) + "\n")
    (FOLDER / "gradient_nodes.txt").write_text(nodes_of(loop_gradient_programs))


def references() -> str:
    """What the programs on references give where no pass moves reads, a line each."""
    options = tf.GraphOptions(optimizer_options=tf.OptimizerOptions(opt_level=-1))
    options.rewrite_options.disable_meta_optimizer = True
    config = tf.ConfigProto(graph_options=options, operation_timeout_in_ms=30_000)
    found = {name: reference_loop_programs.run(tf, name, config) for name in reference_loop_programs.PROGRAMS}
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {value}" for key, value in found.items()) + "\n}"


def values_of(module: Any) -> str:
    """What the programs of a module give, a line each."""
    found = {name: module.run(tf, name) for name in module.PROGRAMS}
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def nodes_of(module: Any) -> str:
    """The nodes of a module's named programs."""
    lines = [line for name in module.NAMED for line in (f"# {name}", *module.node_lines(tf, name))]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
