"""From a rewritten subgraph to a step: memory analysis, generated code, plans, failures
(docs/architecture.md: the life of a step).
"""
