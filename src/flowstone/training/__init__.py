"""Training: optimisers, learning-rate schedules, moving averages and the global step, all as nodes of the
graph.
"""
