"""Clusters of element-wise steps with reductions, as kernels: loops, passes over rows, teams."""
