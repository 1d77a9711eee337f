"""Which device runs each node (white paper 3.2.1, 4.3): constraints, costs, the greedy simulation, and
simulated clusters to judge it on.
"""
