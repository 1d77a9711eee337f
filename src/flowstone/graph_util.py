"""`flowstone.graph_util`: parts of GraphDefs."""

from flowstone.framework.graphs.graph_def_parts import (
    convert_variables_to_constants,
    extract_sub_graph,
    must_run_on_cpu,
    remove_training_nodes,
    tensor_shape_from_node_def_name,
)
from flowstone.framework.graphs.import_graph import import_graph_def
