"""`tf.function`: Python functions that are traced, once for each kind of arguments, and called as one node.

`traced_functions` has the decorator, `traces` makes a function of the graph's library of a Python function,
`call_arguments` says which calls share a trace, `created_variables` has variables that a function creates
belong to the graph outside. `ops/control/program_order.py` has effects happen in the order of the program.
"""
