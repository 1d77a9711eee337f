"""Clusters of element-wise nodes as machine code."""
