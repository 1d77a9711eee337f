"""What passes ask about a subgraph, and change nothing by asking: branches, frames, state, memory,
dependences. The subgraph keeps what is asked often (`Subgraph.analysis`)."""
