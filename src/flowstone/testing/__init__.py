"""Testing programs of the library: a test case with sessions and comparisons, benchmarks, comparison of
graphs.
"""
