"""Numbers, element by element, and what is made of many of them along axes: arithmetic, functions,
comparisons, reductions, sums over segments."""
