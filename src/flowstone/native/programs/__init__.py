"""Programs: loops, conditionals and computations on small arrays, compiled whole."""
