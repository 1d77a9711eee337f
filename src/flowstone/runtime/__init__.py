"""From a rewritten subgraph to a step: memory analysis, generated code, plans, failures (DESIGN: the life of
a step).
"""
