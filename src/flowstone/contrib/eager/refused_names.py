"""Names of `tf.contrib.eager` that need eager values, and what to use in a graph instead of each."""

from __future__ import annotations

from flowstone.framework.names.refusals import refused_class, refused_function

_NAME, _GRADIENTS = "tf.contrib.eager.", "tf.gradients, which asks the graph"
_LAYERS, _SESSION = "tf.layers, whose variables are the graph's", "a tf.Session, whose steps run in order"
_FILTERS = "tensorflow.python.debug's wrapper sessions, which filter tensors"
_SERVER = 'tf.Session("grpc://host:port")'

EagerVariableStore = refused_class(_NAME + "EagerVariableStore", "tf.variable_scope")
Iterator = refused_class(_NAME + "Iterator", "tf.data.Dataset.make_one_shot_iterator")
Network = refused_class(_NAME + "Network", _LAYERS)
Sequential = refused_class(_NAME + "Sequential", _LAYERS)
add_execution_callback = refused_function(_NAME + "add_execution_callback", _FILTERS)
clear_execution_callbacks = refused_function(_NAME + "clear_execution_callbacks", _FILTERS)
async_wait = refused_function(_NAME + "async_wait", _SESSION)
set_execution_mode = refused_function(_NAME + "set_execution_mode", _SESSION)
connect_to_remote_host = refused_function(_NAME + "connect_to_remote_host", _SERVER)
enable_remote_eager_execution = refused_function(_NAME + "enable_remote_eager_execution", _SERVER)
gradients_function = refused_function(_NAME + "gradients_function", _GRADIENTS)
implicit_gradients = refused_function(_NAME + "implicit_gradients", _GRADIENTS)
implicit_value_and_gradients = refused_function(_NAME + "implicit_value_and_gradients", _GRADIENTS)
value_and_gradients_function = refused_function(_NAME + "value_and_gradients_function", _GRADIENTS)
