"""`tf.contrib.framework`: scopes of arguments, variables by name, checkpoints."""

from __future__ import annotations

# A file of this package has the name `arg_scope`, too, which the function takes here.
from flowstone.contrib.framework.arg_scope import add_arg_scope as add_arg_scope
from flowstone.contrib.framework.arg_scope import arg_scope as arg_scope
from flowstone.contrib.framework.arg_scope import arg_scope_func_key as arg_scope_func_key
from flowstone.contrib.framework.arg_scope import arg_scoped_arguments as arg_scoped_arguments
from flowstone.contrib.framework.arg_scope import current_arg_scope as current_arg_scope
from flowstone.contrib.framework.arg_scope import has_arg_scope as has_arg_scope
from flowstone.contrib.framework.smart_cond import smart_case as smart_case
from flowstone.contrib.framework.smart_cond import smart_cond as smart_cond
from flowstone.contrib.framework.smart_cond import smart_constant_value as smart_constant_value
from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone": "CriticalSection TensorSpec argsort assert_same_float_dtype assert_scalar"
        " convert_to_tensor_or_sparse_tensor is_tensor sort",
        "flowstone.contrib.framework.deprecation": "deprecated deprecated_arg_values deprecated_args",
        "flowstone.contrib.framework.graph_util": "get_placeholders",
        "flowstone.contrib.framework.ops": "get_graph_from_inputs get_name_scope prepend_name_scope"
        " strip_name_scope",
        "flowstone.contrib.framework.script_ops": "py_func",
        "flowstone.contrib.framework.tensor_util": "assert_scalar_int reduce_sum_n"
        " remove_squeezable_dimensions with_same_shape with_shape",
        "flowstone.contrib.framework.variables": "VariableDeviceChooser add_model_variable"
        " assert_global_step assert_or_get_global_step assign_from_checkpoint assign_from_checkpoint_fn"
        " assign_from_values assign_from_values_fn filter_variables get_local_variables"
        " get_model_variables get_trainable_variables get_unique_variable get_variable_full_name"
        " get_variables get_variables_by_name get_variables_by_suffix get_variables_to_restore"
        " global_variable local_variable model_variable variable zero_initializer",
        "flowstone.train": "create_global_step get_global_step get_or_create_global_step"
        " init_from_checkpoint list_variables load_checkpoint load_variable",
        "flowstone.ops.readers.record_input": "RecordInput",
    },
)
