"""Flowstone: stateful dataflow graphs, sessions and training, speaking the TensorFlow 1.x Python API."""

from flowstone import ops
from flowstone.client.session import InteractiveSession, Session
from flowstone.framework.dtypes import *
from flowstone.framework.graph import Graph, Operation
from flowstone.framework.scope import get_default_graph
from flowstone.framework.tensor import Tensor
from flowstone.ops.constants import constant, identity, placeholder
from flowstone.ops.control_flow import no_op
from flowstone.ops.elementwise import add
