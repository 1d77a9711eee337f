"""`flowstone.initializers`: first values of variables."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.ops.variables.initializers import (
    Identity as identity,
)
from flowstone.ops.variables.initializers import (
    constant_initializer as constant,
)
from flowstone.ops.variables.initializers import (
    glorot_normal_initializer as glorot_normal,
)
from flowstone.ops.variables.initializers import (
    glorot_uniform_initializer as glorot_uniform,
)
from flowstone.ops.variables.initializers import (
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
)
from flowstone.ops.variables.initializers import (
    ones_initializer as ones,
)
from flowstone.ops.variables.initializers import (
    orthogonal_initializer as orthogonal,
)
from flowstone.ops.variables.initializers import (
    random_normal_initializer as random_normal,
)
from flowstone.ops.variables.initializers import (
    random_uniform_initializer as random_uniform,
)
from flowstone.ops.variables.initializers import (
    truncated_normal_initializer as truncated_normal,
)
from flowstone.ops.variables.initializers import (
    uniform_unit_scaling_initializer as uniform_unit_scaling,
)
from flowstone.ops.variables.initializers import (
    variance_scaling_initializer as variance_scaling,
)
from flowstone.ops.variables.initializers import (
    zeros_initializer as zeros,
)
from flowstone.ops.variables.variable_collections import (
    global_variables_initializer as global_variables,
)
from flowstone.ops.variables.variable_collections import (
    local_variables_initializer as local_variables,
)
from flowstone.ops.variables.variable_collections import (
    variables_initializer as variables,
)

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "__future__": "absolute_import division print_function",
        "flowstone.ops.lookup.lookup_tables": "tables_initializer",
    },
)
