"""`flowstone.profiler`: the messages in which TensorFlow's profiler answers."""

from tensorboard.compat.proto.tfprof_log_pb2 import OpLogProto

from flowstone.io.proto.tfprof_output_pb2 import AdviceProto, GraphNodeProto, MultiGraphNodeProto
