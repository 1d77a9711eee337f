"""Nodes as one generated function of Python: whose memory is whose, names, loops, failures, traces."""
