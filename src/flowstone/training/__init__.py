"""Training: optimisers, checkpoints, input by queues, hooks, and sessions that keep a training going.

All that computes is nodes of the graph; the rest drives sessions from outside.
"""
