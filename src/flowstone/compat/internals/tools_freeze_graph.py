"""`tensorflow.python.tools.freeze_graph`: a graph and its checkpoint as one GraphDef.

    python -m tensorflow.python.tools.freeze_graph --input_graph=graph.pbtxt --input_checkpoint=model.ckpt \\
        --output_node_names=out --output_graph=frozen.pb
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import flowstone as tf
from flowstone.compat.command_options import add_truth
from flowstone.io import any_messages

__all__ = ["freeze_graph", "freeze_graph_with_def_protos", "main"]

_TEXTS = {
    "input_graph": "the file of a GraphDef",
    "input_saver": "the file of a SaverDef",
    "input_checkpoint": "the checkpoint's prefix",
    "output_graph": "the file to write",
    "output_node_names": "names of nodes, separated by commas",
    "restore_op_name": "not used",
    "filename_tensor_name": "not used",
    "initializer_nodes": "names of operations to run after restoring, separated by commas",
    "variable_names_whitelist": "variables that alone become constants, separated by commas",
    "variable_names_blacklist": "variables that stay, separated by commas",
    "input_meta_graph": "the file of a MetaGraphDef",
    "input_saved_model_dir": "the folder of a SavedModel",
}


def freeze_graph_with_def_protos(
    input_graph_def: Any,
    input_saver_def: Any,
    input_checkpoint: str | None,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: list[str] | None = None,
    checkpoint_version: int = 2,
) -> Any:
    """The GraphDef of what the outputs need, with constants in place of variables.

    Args:
        input_graph_def: the graph; of `input_meta_graph_def` and `input_saved_model_dir` theirs is taken.
        input_saver_def: how the variables are restored; without it by their names.
        input_checkpoint: the checkpoint's prefix.
        output_node_names: names of nodes, separated by commas.
        restore_op_name, filename_tensor_name: not used.
        output_graph: the file to write it to, if any.
        clear_devices: whether nodes lose their devices.
        initializer_nodes: names of operations to run after restoring, separated by commas.
        variable_names_whitelist, variable_names_blacklist: variables, separated by commas, that alone
            become constants, and that do not.
        saved_model_tags: those of the graph to take from a SavedModel.
        checkpoint_version: as that of Savers.

    Raises ValueError if there is no such checkpoint or no output is named.
    """
    del restore_op_name, filename_tensor_name
    if not input_saved_model_dir and not tf.train.checkpoint_exists(input_checkpoint):
        raise ValueError(f"Input checkpoint '{input_checkpoint}' doesn't exist!")
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    given = input_meta_graph_def.graph_def if input_meta_graph_def else input_graph_def
    if clear_devices and given is not None:
        for node in given.node:
            node.device = ""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        if input_meta_graph_def:
            restorer = tf.train.import_meta_graph(input_meta_graph_def, clear_devices=True)
            restorer.restore(session, input_checkpoint)
        elif input_saved_model_dir:
            given = tf.saved_model.loader.load(session, saved_model_tags, input_saved_model_dir).graph_def
        else:
            tf.import_graph_def(given, name="")
            _restore(session, graph, input_saver_def, input_checkpoint, checkpoint_version)
        if initializer_nodes:
            session.run(initializer_nodes.replace(" ", "").split(","))
        definition = graph.as_graph_def()
        if clear_devices:
            for node in definition.node:
                node.device = ""
        frozen = tf.graph_util.convert_variables_to_constants(
            session,
            definition,
            output_node_names.replace(" ", "").split(","),
            variable_names_whitelist=_names(variable_names_whitelist),
            variable_names_blacklist=_names(variable_names_blacklist),
        )
    if output_graph:
        with tf.gfile.GFile(output_graph, "wb") as file:
            file.write(frozen.SerializeToString())
    return frozen


def _names(text: str) -> list[str] | None:
    return text.replace(" ", "").split(",") if text else None


def _restore(session: Any, graph: Any, saver_def: Any, checkpoint: Any, version: int) -> None:
    """Restores what a graph without collections has of a checkpoint's variables."""
    if saver_def:
        tf.train.Saver(saver_def=saver_def, write_version=version).restore(session, checkpoint)
        return
    nodes = {operation.name: operation for operation in graph.get_operations()}
    variables = {
        name: nodes[name].outputs[0]
        for name in tf.train.NewCheckpointReader(checkpoint).get_variable_to_shape_map()
        if name in nodes
    }
    if any(not x.dtype.is_ref and x.dtype is not tf.resource for x in variables.values()):
        raise ValueError(  # the nodes of these names join a variable's parts
            "Models containing partition variables cannot be converted from checkpoint files. Please pass in "
            "a SavedModel using the flag --input_saved_model_dir."
        )
    tf.train.Saver(var_list=variables, write_version=version).restore(session, checkpoint)


def _parsed(path: str, binary: bool, message: Any, what: str) -> Any:
    if not tf.gfile.Exists(path):
        raise OSError(f"Input {what} file '{path}' does not exist!")
    with tf.gfile.GFile(path, "rb") as file:
        content = file.read()
    if binary:
        message.ParseFromString(content)
        return message
    return any_messages.parse_text(content, message)


def freeze_graph(
    input_graph: str | None,
    input_saver: str | None,
    input_binary: bool,
    input_checkpoint: str | None,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: str | None = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: str = "serve",
    checkpoint_version: int = 2,
) -> Any:
    """The frozen graph of the files `input_graph` (GraphDef) or `input_meta_graph` (MetaGraphDef), binary if
    `input_binary`, or of a SavedModel's folder. The other arguments are those of
    `freeze_graph_with_def_protos`; `input_saver` is the file of a SaverDef, tags are separated by commas.

    Raises OSError for a file that is not there, ValueError as `freeze_graph_with_def_protos`.
    """
    graph = meta = saver = None
    if input_saved_model_dir:
        pass
    elif input_meta_graph:
        meta = _parsed(input_meta_graph, input_binary, tf.MetaGraphDef(), "meta graph")
    elif input_graph:
        graph = _parsed(input_graph, input_binary, tf.GraphDef(), "graph")
    if input_saver:
        saver = _parsed(input_saver, input_binary, tf.train.SaverDef(), "saver")
    return freeze_graph_with_def_protos(
        graph,
        saver,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta,
        input_saved_model_dir,
        saved_model_tags.replace(" ", "").split(","),
        checkpoint_version,
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes a frozen graph as the command line (by default the process's) says."""
    parser = argparse.ArgumentParser(
        "freeze_graph", description="A graph and its checkpoint as one GraphDef."
    )
    for name, text in _TEXTS.items():
        parser.add_argument(f"--{name}", default="", help=text)
    for name, default in (("input_binary", False), ("clear_devices", True)):
        add_truth(parser, name, default)
    parser.add_argument("--checkpoint_version", type=int, default=2)
    parser.add_argument("--saved_model_tags", default="serve", help="separated by commas")
    freeze_graph(**vars(parser.parse_args(arguments)))
