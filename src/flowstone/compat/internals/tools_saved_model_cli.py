"""`tensorflow.python.tools.saved_model_cli`: tells what a SavedModel holds, and runs its signatures.

    python -m tensorflow.python.tools.saved_model_cli show --dir MODEL --all
    python -m tensorflow.python.tools.saved_model_cli run --dir MODEL --tag_set serve \\
        --signature_def serving_default --input_exprs "x=np.ones([1, 2])"
    python -m tensorflow.python.tools.saved_model_cli scan --dir MODEL
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

import flowstone as tf
from flowstone.compat.internals import tools_saved_model_utils as models
from flowstone.saved_model.command_inputs import load_inputs_from_input_arg_string

__all__ = [
    "create_parser",
    "get_signature_def_map",
    "main",
    "run",
    "run_saved_model_with_feed_dict",
    "scan",
    "scan_meta_graph_def",
    "show",
]

UNSAFE_OPS = frozenset(("ReadFile", "WriteFile"))
"""Ops of which a model can do harm beyond its values."""


# ---- what a model holds


def get_signature_def_map(saved_model_dir: str, tag_set: str) -> Any:
    """The signatures of the graph with these tags. RuntimeError if there is none."""
    return models.get_meta_graph_def(saved_model_dir, tag_set).signature_def


def show(args: argparse.Namespace) -> None:
    """Prints the tags, the names of signatures, a signature, or everything, by what is given."""
    if args.all:
        _show_all(args.dir)
    elif args.tag_set is None:
        tag_sets = sorted(models.get_saved_model_tag_sets(args.dir))
        print("The given SavedModel contains the following tag-sets:")
        for tags in tag_sets:
            print(", ".join(sorted(tags)))
    elif args.signature_def is None:
        keys = sorted(get_signature_def_map(args.dir, args.tag_set))
        print("The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:")
        for key in keys:
            print(f'SignatureDef key: "{key}"')
    else:
        _show_signature(args.dir, args.tag_set, args.signature_def, 0)


def _show_all(folder: str) -> None:
    for tags in sorted(models.get_saved_model_tag_sets(folder)):
        tag_set = ", ".join(tags)
        print(f"\nMetaGraphDef with tag-set: '{tag_set}' contains the following SignatureDefs:")
        tag_set = ",".join(tags)
        for key in sorted(get_signature_def_map(folder, tag_set)):
            print(f"\nsignature_def['{key}']:")
            _show_signature(folder, tag_set, key, 1)


def _show_signature(folder: str, tag_set: str, key: str, level: int) -> None:
    signatures = get_signature_def_map(folder, tag_set)
    if key not in signatures:
        raise ValueError(f'Could not find signature "{key}". Please choose from: {", ".join(signatures)}')
    signature, indent = signatures[key], "  " * level
    for word, tensors in (("input", signature.inputs), ("output", signature.outputs)):
        print(f"{indent}The given SavedModel SignatureDef contains the following {word}(s):")
        for name in sorted(tensors):
            print(f"{indent}  {word}s['{name}'] tensor_info:")
            for line in _described(tensors[name]):
                print(f"{indent}      {line}")
    print(f"{indent}Method name is: {signature.method_name}")


def _described(info: Any) -> list[str]:
    shape = "unknown_rank"
    if not info.tensor_shape.unknown_rank:
        dims = [str(dim.size) for dim in info.tensor_shape.dim]
        shape = f"({', '.join(dims)})"
    kind = type(info).DESCRIPTOR.fields_by_name["dtype"].enum_type.values_by_number[info.dtype].name
    return [f"dtype: {kind}", f"shape: {shape}", f"name: {info.name}"]


def scan(args: argparse.Namespace) -> None:
    """Says whether the graphs, or the one with the tags, have ops that read or write files."""
    if args.tag_set:
        scan_meta_graph_def(models.get_meta_graph_def(args.dir, args.tag_set))
        return
    for meta in models.read_saved_model(args.dir).meta_graphs:
        scan_meta_graph_def(meta)


def scan_meta_graph_def(meta_graph_def: Any) -> None:
    """Prints which of the graph's ops read or write files, also those of its functions."""
    graph = meta_graph_def.graph_def
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    tags = list(meta_graph_def.meta_info_def.tags)
    found = UNSAFE_OPS.intersection(node.op for node in nodes)
    if found:
        print(f"MetaGraph with tag set {tags} contains the following blacklisted ops:", set(found))
    else:
        print(f"MetaGraph with tag set {tags} does not contain blacklisted ops.")


# ---- a model's values


def run(args: argparse.Namespace) -> None:
    """Computes the outputs of a signature. AttributeError where no inputs are given."""
    if not (args.inputs or args.input_exprs or args.input_examples):
        raise AttributeError("At least one of --inputs, --input_exprs or --input_examples must be required")
    if args.init_tpu:
        raise tf.errors.UnimplementedError(None, None, "flowstone runs on no TPU; leave --init_tpu out")
    values = load_inputs_from_input_arg_string(args.inputs, args.input_exprs, args.input_examples)
    run_saved_model_with_feed_dict(
        args.dir, args.tag_set, args.signature_def, values, args.outdir, args.overwrite, args.worker,
        tf_debug=args.tf_debug,
    )  # fmt: skip


def run_saved_model_with_feed_dict(
    saved_model_dir: str,
    tag_set: str,
    signature_def_key: str,
    input_tensor_key_feed_dict: dict[str, Any],
    outdir: str | None,
    overwrite_flag: bool,
    worker: str | None = None,
    init_tpu: bool = False,
    tf_debug: bool = False,
) -> None:
    """Prints the outputs of a signature for inputs by their keys, and writes them to files `KEY.npy`.

    Args:
        saved_model_dir, tag_set, signature_def_key: the model, its tags, separated by commas, the signature.
        input_tensor_key_feed_dict: the values.
        outdir: the folder of the files; without it nothing is written.
        overwrite_flag: whether files that are there are written anew.
        worker: the address of the process that runs it; by default this one.
        init_tpu: must be False.
        tf_debug: whether the debugger runs the step.

    Raises ValueError for a signature or an input that is not there, RuntimeError for a file that is.
    """
    del init_tpu
    signatures = get_signature_def_map(saved_model_dir, tag_set)
    if signature_def_key not in signatures:
        raise ValueError(
            f'Could not find signature "{signature_def_key}". Please choose from: {", ".join(signatures)}'
        )
    signature = signatures[signature_def_key]
    for key in input_tensor_key_feed_dict:
        if key not in signature.inputs:
            names = '", "'.join(signature.inputs)
            raise ValueError(
                f'"{key}" is not a valid input key. Please choose from "{names}", or use --show option.'
            )
    feeds = {signature.inputs[key].name: value for key, value in input_tensor_key_feed_dict.items()}
    keys = sorted(signature.outputs)
    fetches = [signature.outputs[key].name for key in keys]
    with tf.Graph().as_default(), tf.Session(worker or "") as session:
        tf.saved_model.loader.load(session, tag_set.split(","), saved_model_dir)
        runner: Any = tf.python.debug.LocalCLIDebugWrapperSession(session) if tf_debug else session
        found = runner.run(fetches, feed_dict=feeds)
    for key, value in zip(keys, found):
        print(f"Result for output key {key}:\n{value}")
        if outdir:
            _write(os.path.join(outdir, f"{key}.npy"), key, value, overwrite_flag)


def _write(path: str, key: str, value: Any, overwrites: bool) -> None:
    if not tf.gfile.Exists(os.path.dirname(path)):
        tf.gfile.MakeDirs(os.path.dirname(path))
    if tf.gfile.Exists(path) and not overwrites:
        raise RuntimeError(
            f'Output file {path} already exists. Add "--overwrite" to overwrite the existing output files.'
        )
    with tf.gfile.GFile(path, "wb") as file:
        np.save(file, value)
    print(f"Output {key} is saved to {path}")


# ---- the command line


def create_parser() -> argparse.ArgumentParser:
    """The parser of the command line; `args.func(args)` does what is asked for."""
    parser = argparse.ArgumentParser(
        "saved_model_cli", description="saved_model_cli: Command-line interface for SavedModel"
    )
    parser.add_argument("-v", "--version", action="version", version="0.1.0")
    commands = parser.add_subparsers(title="commands", description="valid commands")
    texts = {
        "show": "print tags, signatures and their tensors",
        "run": "compute the outputs of a signature",
        "scan": "look for ops that read or write files",
    }
    parsers = {name: commands.add_parser(name, help=text) for name, text in texts.items()}
    for name, each in parsers.items():
        each.add_argument("--dir", required=True, help="the SavedModel's folder")
        each.add_argument("--tag_set", required=name == "run", help="the tags of a graph, separated by ','")
        each.set_defaults(func=globals()[name])
    parsers["show"].add_argument("--all", action="store_true", help="print all that the model holds")
    parsers["show"].add_argument("--signature_def", metavar="KEY", help="the signature to print")
    _add_run_arguments(parsers["run"])
    return parser


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--signature_def", required=True, metavar="KEY", help="the signature to run")
    parser.add_argument(
        "--inputs", default="", help="KEY=FILE or KEY=FILE[NAME] of .npy, .npz or pickles, separated by ';'"
    )
    parser.add_argument(
        "--input_exprs", default="", help="KEY=EXPRESSION of Python, NumPy being np, separated by ';'"
    )
    parser.add_argument(
        "--input_examples", default="", help="KEY=[{FEATURE: VALUES}]: tf.Examples, separated by ';'"
    )
    parser.add_argument("--outdir", help="the folder for the outputs' files")
    parser.add_argument("--overwrite", action="store_true", help="write files that are there anew")
    parser.add_argument("--tf_debug", action="store_true", help="run in the debugger")
    parser.add_argument("--worker", help="the address of the process that runs it")
    parser.add_argument("--init_tpu", action="store_true", help="refused: there is no TPU")


def main(arguments: Sequence[str] | None = None) -> None:
    """Does what the command line (by default the process's) asks for."""
    parser = create_parser()
    args = parser.parse_args(arguments)
    if not hasattr(args, "func"):
        parser.error("too few arguments")
    args.func(args)
