"""Loops and conditionals on small arrays, with what is around them, as nodes that are compiled whole."""
