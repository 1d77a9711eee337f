"""Passes that choose elements and slice tensors by fewer calls."""
