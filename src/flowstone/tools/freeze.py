"""Writes a graph whose variables are constants: a GraphDef that needs no checkpoint.

    flowstone freeze [options] MODEL FILE

MODEL is the folder of a SavedModel, whose signature's outputs are kept, or the file of a MetaGraphDef, with
its checkpoint, or of a GraphDef. FILE is written as text if its name ends in .pbtxt.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from flowstone.client.session import Session
from flowstone.framework.errors import InvalidArgumentError, OpError
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def_parts import convert_variables_to_constants
from flowstone.framework.graphs.import_graph import import_graph_def
from flowstone.saved_model.loader import load
from flowstone.tools.model_files import Held, read
from flowstone.training.checkpoints.meta_graph import write_graph
from flowstone.training.checkpoints.saver_import import import_meta_graph

NAME = "freeze"
SUMMARY = "write a graph with constants in place of its variables"


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone freeze`."""
    parser.add_argument("model", metavar="MODEL", help="a SavedModel's folder, or a graph's file")
    parser.add_argument("file", metavar="FILE", help="the GraphDef to write")
    parser.add_argument("--outputs", metavar="NAMES", help="the nodes to keep, separated by commas")
    parser.add_argument("--checkpoint", metavar="PREFIX", help="the checkpoint of a graph's file")
    parser.add_argument("--tags", default="serve", help="of the graph to take, separated by commas (serve)")
    parser.add_argument("--signature", default="serving_default", help="of a SavedModel (serving_default)")


def execute(options: argparse.Namespace) -> int:
    """Writes the frozen graph; returns the exit status, 2 if it cannot be made."""
    try:
        frozen = _frozen(options)
    except (AssertionError, KeyError, OpError, OSError, RuntimeError, ValueError) as error:
        print(f"flowstone freeze: {options.model}: {getattr(error, 'message', error)}", file=sys.stderr)
        return 2
    folder, name = os.path.split(options.file)
    write_graph(frozen, folder, name, as_text=name.endswith(".pbtxt"))
    print(f"{options.file}: {len(frozen.node):,} nodes, {frozen.ByteSize():,} bytes")
    return 0


def _frozen(options: argparse.Namespace) -> Any:
    held = read(options.model)
    if not held.graphs:
        raise InvalidArgumentError(None, None, "it holds no graph")
    with Graph().as_default() as graph, Session() as session:
        meta = _loaded(session, held, options)
        outputs = options.outputs.split(",") if options.outputs else _outputs(meta, options.signature)
        definition = graph.as_graph_def()
        for node in definition.node:
            node.device = ""
        return convert_variables_to_constants(session, definition, outputs)


def _loaded(session: Any, held: Held, options: argparse.Namespace) -> Any:
    """The model in the session, with the values of its variables; its MetaGraphDef."""
    if held.kind == "SavedModel":
        return load(session, options.tags.split(","), options.model, clear_devices=True)
    (meta,) = held.graphs
    if held.kind == "GraphDef":
        if options.checkpoint:
            raise InvalidArgumentError(None, None, "a GraphDef has no Saver to restore a checkpoint with")
        import_graph_def(meta.graph_def, name="")
        return meta
    saver = import_meta_graph(meta, clear_devices=True)
    if saver is not None:
        if not options.checkpoint:
            raise InvalidArgumentError(None, None, "its variables need --checkpoint")
        saver.restore(session, options.checkpoint)
    return meta


def _outputs(meta: Any, key: str) -> list[str]:
    if key not in meta.signature_def:
        raise InvalidArgumentError(None, None, f"it has no signature '{key}'; name the nodes with --outputs")
    infos = meta.signature_def[key].outputs.values()
    return sorted({info.name.partition(":")[0] for info in infos})
