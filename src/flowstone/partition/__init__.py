"""One subgraph a device, joined by Sends and Receives (white paper 3.2.2, 4.4)."""

from flowstone.partition import send_receive

__all__ = ["send_receive"]
