"""Random values, their seeds, and samples of classes."""
