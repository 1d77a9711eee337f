"""Calls of library functions and functional control flow, replaced by the functions' nodes."""
