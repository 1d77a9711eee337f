"""One subgraph a device, joined by Sends and Receives (white paper 3.2.2, 4.4)."""
