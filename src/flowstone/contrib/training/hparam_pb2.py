"""The message of hyperparameters."""

from flowstone.io.proto.hparam_pb2 import HParamDef as HParamDef
