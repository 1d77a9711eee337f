"""Graph to graph: pruning, folding, merging and other rewrites of a plan's `Subgraph` (white paper 4.2,
5.1).
"""
