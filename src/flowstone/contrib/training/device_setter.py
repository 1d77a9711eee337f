"""Strategies that spread variables over parameter servers: the names of `training.device_setter`."""

from flowstone.training.sessions.device_setter import (
    GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy,
)
from flowstone.training.sessions.device_setter import RandomStrategy as RandomStrategy
from flowstone.training.sessions.device_setter import byte_size_load_fn as byte_size_load_fn
