"""Subgraphs that one function cannot run: the executor, units of a program, several devices."""
