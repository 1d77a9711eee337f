"""`tf.function`: Python functions that are traced, once for each kind of arguments, and called as one node.

`function` is the decorator, `traces` makes a function of the graph's library of a call of a Python function,
`call_arguments` says which calls share a trace, `program_order` has the effects of a body happen in the order
in which the Python function has them, `created_variables` has variables that it creates belong to the graph
outside.
"""
