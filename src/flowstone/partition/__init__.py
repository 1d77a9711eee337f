"""Splits a plan into one subgraph for each device, joined by Sends and Receives (white paper 3.2.2, 4.4)."""

from flowstone.framework.declarations.operation import registry
from flowstone.partition import send_receive

__all__ = ["send_receive"]

registry.check_complete()
