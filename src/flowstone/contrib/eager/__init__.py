"""`tf.contrib.eager`: what graphs have of it; the rest refuses, naming the graph's way."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone": "GradientTape TensorSpec custom_gradient make_template",
        "flowstone.client.eager_functions": "py_func=py_function",
        "flowstone.compat.behaviour": "enable_eager_execution executing_eagerly"
        " in_eager_mode=executing_eagerly",
        "flowstone.compat.internals.framework_test_util": "run_test_in_graph_and_eager_modes"
        "=run_in_graph_and_eager_modes run_all_tests_in_graph_and_eager_modes"
        "=run_all_in_graph_and_eager_modes",
        "flowstone.contrib.eager.functions": "get_optimizer_variables list_devices num_gpus run",
        "flowstone.functions.traced_functions": "defun function=defun",
        "flowstone.contrib.eager.refused_names": "EagerVariableStore Iterator Network Sequential"
        " add_execution_callback async_wait clear_execution_callbacks connect_to_remote_host"
        " enable_remote_eager_execution gradients_function implicit_gradients implicit_value_and_gradients"
        " set_execution_mode value_and_gradients_function",
        "flowstone.ops.variables.resource_variable": "Variable=ResourceVariable",
        "flowstone.train": "Checkpoint Saver",
    },
)
