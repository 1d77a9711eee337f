"""Elements chosen and tensors cut by fewer calls."""
