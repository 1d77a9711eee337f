"""`tensorflow.python.tools.optimize_for_inference`: a graph for inference alone, from file to file.

    python -m tensorflow.python.tools.optimize_for_inference --input=frozen.pb --output=small.pb \\
        --input_names=x --output_names=out
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.compat.command_options import add_truth
from flowstone.framework.graphs.inference_graphs import optimize_for_inference
from flowstone.io import any_messages

__all__ = ["main"]


def _types(text: str) -> Any:
    numbers = [int(number) for number in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the graph that the command line (by default the process's) says. NotFoundError without input."""
    parser = argparse.ArgumentParser("optimize_for_inference", description="A graph for inference alone.")
    for name, text in (("input", "the file of a GraphDef"), ("output", "the file to write")):
        parser.add_argument(f"--{name}", default="", help=text)
    for name in ("input_names", "output_names"):
        parser.add_argument(f"--{name}", default="", help="names of nodes, separated by commas")
    for name, default in (("frozen_graph", True), ("toco_compatible", False)):
        add_truth(parser, name, default)
    parser.add_argument("--placeholder_type_enum", type=_types, default=tf.float32.as_datatype_enum)
    args = parser.parse_args(arguments)
    graph = tf.GraphDef()
    with tf.gfile.GFile(args.input, "rb") as file:
        content = file.read()
    if args.frozen_graph:
        graph.ParseFromString(content)
    else:
        graph = any_messages.parse_text(content, graph)
    made = optimize_for_inference(
        graph, args.input_names.split(","), args.output_names.split(","), args.placeholder_type_enum
    )
    if args.frozen_graph:
        with tf.gfile.GFile(args.output, "wb") as file:
            file.write(made.SerializeToString())
    else:
        tf.train.write_graph(made, os.path.dirname(args.output), os.path.basename(args.output))
