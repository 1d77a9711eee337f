"""Optimisers' updates of many parameters, or of the rows that indices name, in one pass."""
