"""Save and Restore: operations of the graph, as in the white paper (3.3), over `io/checkpoint_files`."""
