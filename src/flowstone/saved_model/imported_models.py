"""SavedModels of graphs without objects, as TensorFlow 1 writes them, as functions of the default graph.

Each signature is a function whose body is the part of the model's graph that leads to its results. Variables
are the default graph's, one each, with the names that they have in the model; tables and other resources keep
one identity in all functions by a shared name of this load.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.import_graph import import_graph_def
from flowstone.framework.tensors import nest
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor
from flowstone.framework.tensors.type_specs import TensorSpec
from flowstone.framework.types import dtypes
from flowstone.functions.traced_functions import function
from flowstone.ops.arrays.constants import constant
from flowstone.ops.control.control_flow import group
from flowstone.ops.variables.resource_variable import ResourceVariable
from flowstone.saved_model import constants
from flowstone.saved_model.loaded_objects import user_object
from flowstone.saved_model.loader import asset_paths, chosen_graph, main_op
from flowstone.saved_model.signatures import SignatureMap
from flowstone.training.checkpoints.meta_graph_import import import_scoped_meta_graph

__all__ = ["ImportedFunction", "load_signatures"]

_loads = itertools.count(1)
_INIT = "__saved_model_init_op"


def load_signatures(model: Any, folder: str, tags: set[str] | None) -> tuple[Any, Any]:
    """An object with the model's signatures as functions, and its MetaGraphDef.

    It has `signatures`, `variables`, `prune(feeds, fetches)`, `graph`, `asset_paths` and `initializer`.
    Raises ValueError if the model has several graphs and `tags` is None, RuntimeError if none has the tags.
    """
    if tags is None and len(model.meta_graphs) != 1:
        raise ValueError(
            "Importing a SavedModel with tf.saved_model.load requires a 'tags=' argument if there is more "
            f"than one MetaGraph. Got 'tags=None', but there are {len(model.meta_graphs)} MetaGraphs in the "
            f"SavedModel with tag sets {[list(each.meta_info_def.tags) for each in model.meta_graphs]}. Pass "
            "a 'tags=' argument to load this SavedModel."
        )
    meta = model.meta_graphs[0] if tags is None else chosen_graph(model, tags)
    return _Import(meta, folder).object(), meta


class ImportedFunction:
    """Part of a model's graph as a function: it takes tensors by position or by `names`.

    `inputs` and `outputs` are the tensors of the model's graph, `structured_outputs` the results in their
    structure.
    """

    def __init__(self, body: Any, names: Sequence[str], feeds: list[Tensor], fetches: Any) -> None:
        self._names, self.inputs, self.structured_outputs = list(names), feeds, fetches
        self.outputs = [each for each in nest.flatten(fetches) if isinstance(each, Tensor)]
        specs = [TensorSpec(x.shape, x.dtype) for x in feeds]
        self._function = function(body, input_signature=specs, autograph=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call. TypeError for other arguments, ValueError for tensors of another type or shape."""
        given = dict(zip(self._names, args)) | kwargs
        if len(args) > len(self._names) or set(given) != set(self._names):
            raise TypeError(f"Expected argument names {self._names} but got values for {sorted(given)}.")
        found = self._function(*[given[name] for name in self._names])
        leaves = iter(found if isinstance(found, (list, tuple)) else [found])
        return nest.map_structure(
            lambda leaf: next(leaves) if isinstance(leaf, Tensor) else None, self.structured_outputs
        )


class _Import:
    """A MetaGraphDef in the default graph."""

    def __init__(self, meta: Any, folder: str) -> None:
        self._meta = meta
        self.graph = Graph()
        with self.graph.as_default():
            import_scoped_meta_graph(meta)
        self._graph_def = type(meta.graph_def)()
        self._graph_def.CopyFrom(meta.graph_def)
        mark = f"loaded_{next(_loads)}"
        for node in self._graph_def.node:
            if "shared_name" in node.attr and not node.attr["shared_name"].s:
                node.attr["shared_name"].s = f"{mark}/{node.name}".encode()
        self._assets = {name: constant(path) for name, path in asset_paths(meta, folder, None).items()}
        inner = self.graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
        prefix = f"{folder}/{constants.VARIABLES_DIRECTORY}/{constants.VARIABLES_FILENAME}"
        with get_default_graph().control_dependencies(None):
            self._variables = {each.op.name: _variable(each, prefix) for each in inner}
            self._initializer = self._initialized()

    def object(self) -> Any:
        """The object; see `load_signatures`."""
        found = user_object()
        found.signatures = SignatureMap(
            {key: self._signature(each) for key, each in self._meta.signature_def.items() if key != _INIT}
        )
        found.variables, found.graph, found.prune = list(self._variables.values()), self.graph, self.prune
        found.asset_paths, found.initializer = list(self._assets.values()), self._initializer
        return found

    def prune(self, feeds: Any, fetches: Any, name: str | None = None) -> ImportedFunction:
        """The function from tensors of the model's graph to others, tensors or operations, nested."""
        given = [self.graph.as_graph_element(each) for each in nest.flatten(feeds)]
        results = nest.map_structure(self.graph.as_graph_element, fetches)
        return self._part([x.op.name for x in given], given, results)

    def _signature(self, definition: Any) -> ImportedFunction:
        names = sorted(definition.inputs)
        feeds = [self.graph.as_graph_element(definition.inputs[name].name) for name in names]
        fetches = {
            key: self.graph.as_graph_element(info.name) for key, info in sorted(definition.outputs.items())
        }
        return self._part(names, feeds, fetches)

    def _part(self, names: Sequence[str], feeds: list[Any], fetches: Any) -> ImportedFunction:
        wanted = nest.flatten(fetches)
        part = self._leading_to(wanted, {x.name for x in feeds})

        def body(*args: Any) -> Any:
            found = self._imported(part, dict(zip([x.name for x in feeds], args)), wanted)
            with get_default_graph().control_dependencies(found):
                return [F.Identity(x) for x in found if isinstance(x, Tensor)] or constant(1)

        return ImportedFunction(body, names, feeds, fetches)

    def _initialized(self) -> Any:
        """The operation that restores the variables and fills the tables, which `tables_initializer` runs."""
        operations = [each.initializer for each in self._variables.values()]
        main = main_op(self._meta, self.graph, None)
        if main is not None:
            fill = self._part([], [], [getattr(main, "op", main)])
            with get_default_graph().control_dependencies(operations):
                operations.append(fill._function().op)
        found = group(*operations)
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, found)
        return found

    # ---- parts of the graph

    def _leading_to(self, wanted: list[Any], cut: set[str]) -> Any:
        """The nodes that lead to these tensors and operations from the tensors named in `cut`."""
        nodes = {node.name: node for node in self._graph_def.node}
        ends = {*cut, *self._assets, *(f"{name}:0" for name in self._variables)}
        waiting = [x.name if isinstance(x, Tensor) else f"^{x.name}" for x in wanted]
        waiting = [name for name in waiting if name not in ends]
        kept: set[str] = set()
        while waiting:
            name = waiting.pop().lstrip("^").partition(":")[0]
            if name in kept:
                continue
            kept.add(name)
            for each in nodes[name].input:
                if each.startswith("^") or (each if ":" in each else f"{each}:0") not in ends:
                    waiting.append(each)
        part = type(self._graph_def)(versions=self._graph_def.versions, library=self._graph_def.library)
        part.node.extend(node for node in self._graph_def.node if node.name in kept)
        for node in part.node:
            node.attr.pop("_class", None)  # what it was placed beside need not be in the part
        return part

    def _imported(self, part: Any, given: dict[str, Any], wanted: list[Any]) -> list[Any]:
        names, sources = {node.name for node in part.node}, {**self._assets, **given}
        for name, variable in self._variables.items():
            is_resource = self.graph.get_operation_by_name(name).outputs[0].dtype == dtypes.resource
            sources[f"{name}:0"] = variable.handle if is_resource else variable.value()
        graph: Any = get_default_graph()
        sources = {key: x if x.op.graph is graph else graph.capture(x) for key, x in sources.items()}
        used = {each if ":" in each else f"{each}:0" for node in part.node for each in node.input}
        replaced = {name: value for name, value in sources.items() if name in used}
        inside = [x.name for x in wanted if x.name not in sources and x.name.partition(":")[0] in names]
        found = iter(import_graph_def(part, replaced, inside, name="") or [])
        return [sources[x.name] if x.name in sources else next(found) for x in wanted]


def _variable(inner: Any, prefix: str) -> Any:
    """The default graph's variable of the model's one, which its initialiser restores."""

    part = inner._get_save_slice_info()
    key, slices = (inner.op.name, "") if part is None else (part.full_name, part.spec)

    def value() -> Any:
        restored = F.RestoreV2(prefix, [key], [slices], dtypes=[inner.dtype.base_dtype])[0]
        restored.set_shape(inner.shape)
        return restored

    made: Any = ResourceVariable(
        value, trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES], dtype=inner.dtype.base_dtype,
        name=inner.op.name, shape=inner.shape, validate_shape=False,
    )  # fmt: skip
    made._trainable = inner.trainable
    return made
