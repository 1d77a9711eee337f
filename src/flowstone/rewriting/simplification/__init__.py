"""Fewer and simpler nodes, on any machine: pruning, shapes, folding, common subexpressions, transposes."""
