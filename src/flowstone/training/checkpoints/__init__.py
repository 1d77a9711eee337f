"""Checkpoints and meta graphs: savers, object graphs, what is read of files without a graph."""
