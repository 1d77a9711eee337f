"""What passes ask about a subgraph, and change nothing by asking: branches, frames, state, memory,
dependences."""
