"""Flowstone: stateful dataflow graphs, sessions and training, speaking the TensorFlow 1.x Python API."""
# DEVELOPMENT VERSION: collects every module's __all__; becomes explicit at the end.

import sys
import types

from flowstone import ops
from flowstone.client.session import InteractiveSession, Session
from flowstone.framework import errors
from flowstone.framework.composite import *
from flowstone.framework.dtypes import *
from flowstone.framework.graph import Graph, GraphKeys, Operation
from flowstone.framework.scope import get_default_graph, get_default_session, reset_default_graph
from flowstone.framework.shape import Dimension, TensorShape
from flowstone.framework.tensor import Tensor, convert_to_tensor, register_tensor_conversion_function

nn = types.ModuleType("flowstone.nn")
for _module in ops.MODULES:
    for _name in getattr(_module, "__all__", ()):
        if not hasattr(_module, _name):
            print(_module.__name__, "lacks", _name, file=sys.stderr)
            continue
        setattr(nn, _name, getattr(_module, _name))
        if _name not in globals():
            globals()[_name] = getattr(_module, _name)
try:
    import importlib
    _gradients = importlib.import_module("flowstone.gradients")
    for _name in _gradients.__all__:
        globals()[_name] = getattr(_gradients, _name)
except ImportError as _error:
    print("flowstone.gradients does not import:", _error, file=sys.stderr)

_PROTOS = {"ConfigProto": "config_pb2", "RunOptions": "config_pb2", "RunMetadata": "config_pb2", "GPUOptions": "config_pb2",
           "OptimizerOptions": "config_pb2", "GraphOptions": "config_pb2", "GraphDef": "graph_pb2", "NodeDef": "node_def_pb2",
           "AttrValue": "attr_value_pb2"}


def device(name): return get_default_graph().device(name)
def name_scope(name, default_name=None, values=None): return get_default_graph().name_scope(name or default_name)
def control_dependencies(inputs): return get_default_graph().control_dependencies(inputs)
def container(name): return get_default_graph().container(name)


def __getattr__(name):
    if name in _PROTOS:
        from flowstone.framework.graph_def import messages
        return getattr(messages(_PROTOS[name]), name)
    if name in ("train", "test", "app", "flags", "logging", "compat"):
        return importlib.import_module(f"flowstone.{name}")
    raise AttributeError(f"flowstone has no name {name!r}")
