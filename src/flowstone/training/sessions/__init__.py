"""Sessions that begin, recover and end by themselves, servers and clusters."""
