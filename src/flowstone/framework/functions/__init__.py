"""Functions that a graph calls, made of Python functions or read as messages."""
