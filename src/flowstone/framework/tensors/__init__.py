"""Nodes and tensors, the scopes that they are made in, and structures made of them."""
