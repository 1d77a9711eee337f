"""`flowstone.profiler`: what a graph costs and what its steps took, and the messages that say so."""

from tensorboard.compat.proto.tfprof_log_pb2 import OpLogProto

from flowstone.io.proto.tfprof_output_pb2 import AdviceProto, GraphNodeProto, MultiGraphNodeProto
from flowstone.profiling.options import ProfileOptionBuilder
from flowstone.profiling.profiler import Profiler, advise, profile, write_op_log
