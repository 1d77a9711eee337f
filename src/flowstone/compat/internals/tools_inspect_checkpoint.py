"""`tensorflow.python.tools.inspect_checkpoint`: prints what a checkpoint holds.

python -m tensorflow.python.tools.inspect_checkpoint --file_name=model.ckpt --all_tensors
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.compat.command_options import add_truth

__all__ = ["main", "parse_numpy_printoption", "print_tensors_in_checkpoint_file"]


def print_tensors_in_checkpoint_file(
    file_name: str,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints tensors of a checkpoint: their names, types and shapes, or their names and values.

    Args:
        file_name: the checkpoint's prefix, or file.
        tensor_name: the tensor whose value to print.
        all_tensors: whether to print the values of all, in the order of names.
        all_tensor_names: whether to print the names of all; without any of the three types and shapes too.
        count_exclude_pattern: tensors whose names match are not counted among the parameters.

    What is not there is said, not raised.
    """
    try:
        reader = tf.train.NewCheckpointReader(file_name)
        if all_tensors or all_tensor_names:
            for name in sorted(reader.get_variable_to_shape_map()):
                print("tensor_name: ", name)
                if all_tensors:
                    print(reader.get_tensor(name))
        elif tensor_name:
            print("tensor_name: ", tensor_name)
            print(reader.get_tensor(tensor_name))
        else:
            print(reader.debug_string().decode("utf-8"))
    except tf.errors.OpError as error:
        print(error.message)
        return
    _print_count(reader, count_exclude_pattern)


def _print_count(reader: Any, pattern: str) -> None:
    sizes = {name: math.prod(dims) for name, dims in reader.get_variable_to_shape_map().items()}
    left_out = [name for name in sizes if pattern and re.match(pattern, name)]
    if pattern:
        count = sum(sizes[name] for name in left_out)
        print(f"# Excluding {len(left_out)} tensors ({count} params) that match {pattern} when counting.")
    print(f"# Total number of params: {sum(sizes.values()) - sum(sizes[name] for name in left_out)}")


def parse_numpy_printoption(kv_str: str) -> None:
    """Sets one of NumPy's print options, as ``precision=3``. ArgumentTypeError if it is none."""
    name, equals, text = kv_str.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"'{kv_str}' is not in the form k=v.")
    present: dict[str, Any] = dict(np.get_printoptions())
    if name not in present:
        raise argparse.ArgumentTypeError(f"'{name}' is not a valid printoption.")
    kind = type(present[name])
    if kind is type(None):
        raise argparse.ArgumentTypeError(f"Setting '{name}' from the command line is not supported.")
    try:
        value = kind(text) if kind is not bool else text.lower() in ("true", "1")
        chosen: dict[str, Any] = {name: value}
        np.set_printoptions(**chosen)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints what the command line (by default the process's) asks for."""
    parser = argparse.ArgumentParser("inspect_checkpoint", description="Prints what a checkpoint holds.")
    parser.add_argument("--file_name", default="", help="the checkpoint's prefix")
    parser.add_argument("--tensor_name", default="", help="the tensor whose value to print")
    parser.add_argument("--count_exclude_pattern", default="", help="of tensors that are no parameters")
    for name, text in (("all_tensors", "print all values"), ("all_tensor_names", "print all names")):
        add_truth(parser, name, False, text)
    parser.add_argument("--printoptions", nargs="*", type=parse_numpy_printoption, help="NumPy's, as k=v")
    args = parser.parse_args(arguments)
    if not args.file_name:
        parser.print_usage()
        sys.exit(1)
    print_tensors_in_checkpoint_file(
        args.file_name, args.tensor_name, args.all_tensors, args.all_tensor_names, args.count_exclude_pattern
    )
