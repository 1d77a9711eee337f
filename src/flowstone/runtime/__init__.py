"""From a rewritten subgraph to a step (docs/architecture.md: the life of a step).

The rooms, each of which imports only from those before it: `steps` (the state of one execution, and where its
parts meet), `process` (devices, threads, memory of the process), `code` (nodes as one generated function),
`execution` (what one function cannot run: the executor and its units, several devices), `plans` (what a
session keeps and runs again), `explaining` (what a step did, and where its time went).
"""
