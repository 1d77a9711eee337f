"""Weights that nothing changes, in the order of memory that their kernel reads."""
