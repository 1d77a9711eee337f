"""AutoGraph: Python functions whose `if`, `while` and `for` on tensors become nodes of the graph.

`convert` gives the converted function. `sources` finds its syntax tree, `jumps` lowers break, continue and
return, `names` says which variables are live where, `rewriting` puts calls in place of statements and
operators (`new_nodes` makes what both write), `control_flow` and `operators` are what is called,
`converted_functions` keeps the results, `entities` is `tf.autograph`. All is imported when a function is
first converted.
"""

from __future__ import annotations

from flowstone.framework.names.late_names import late_names

__getattr__, __dir__ = late_names(
    globals(),
    {
        "flowstone.conversion.converted_functions": "convert do_not_convert",
        "flowstone.conversion.entities": "Feature set_loop_options to_code to_graph",
    },
)
