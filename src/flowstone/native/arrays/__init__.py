"""Kernels of arrays: rows moved, picked, counted and reduced by indices; quantised numbers."""
