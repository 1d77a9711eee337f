"""What a graph costs and what its steps took: the profiler of `tf.profiler`.

`options` says what is asked, `records` what each node of the graph is and did (`float_operations`,
`op_log`), `trees` arranges the nodes by name scope, data flow, kind of op or line of Python, `report` prints
a tree, `messages` returns it, `pictures` writes it for Chrome and for pprof, `advice` looks for what is slow.
`profiler` has the public functions.
"""
