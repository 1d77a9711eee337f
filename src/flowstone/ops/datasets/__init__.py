"""Input pipelines: datasets as values of the graph, and iterators, which hand out their elements.

What a dataset op returns is a `Dataset` (`iteration.py`), an immutable description; an iterator makes an
`Iteration` of it, which has the state: its place, its buffers, its threads.
"""
