"""Which modules of flowstone are asked for the names that only TensorFlow's internal modules have.

A table from the paths of modules to sources, modules in the order in which they are asked; `=` marks what is
not flowstone's. `module_paths.py` adds the files of `internals` and the public objects.
"""

from __future__ import annotations

from collections.abc import Iterator

_PYTHON = {
    "": "flowstone",
    "autograph": "contrib.autograph",
    "autograph.core": "",
    "autograph.core.ag_ctx": "",
    "autograph.impl": "",
    "autograph.impl.api": "",
    "autograph.lang": "",
    "autograph.lang.directives": "contrib.autograph",
    "client": "",
    "client.device_lib": "client.devices",
    "client.session": "client.session flowstone",
    "client.timeline": "client.timeline",
    "compat": "",
    "compat.compat": "compat.text",
    "data": "data",
    "data.experimental": "",
    "data.experimental.ops": "",
    "data.ops": "",
    "data.ops.dataset_ops": "data",
    "data.ops.iterator_ops": "data",
    "data.ops.multi_device_iterator_ops": "data.multi_device_iterator",
    "debug": "debugger",
    "debug.lib": "",
    "debug.lib.debug_data": "debugger",
    "debug.lib.debug_utils": "debugger",
    "debug.wrappers": "",
    "debug.wrappers.dumping_wrapper": "debugger",
    "debug.wrappers.framework": "debugger",
    "debug.wrappers.hooks": "debugger",
    "debug.wrappers.local_cli_wrapper": "debugger",
    "distribute": "contrib.distribute.core",
    "distribute.cluster_resolver": "contrib.cluster_resolver",
    "distribute.collective_all_reduce_strategy": "contrib.distribute",
    "distribute.cross_device_ops": "contrib.distribute.core contrib.distribute.cross_device_ops",
    "distribute.distribute_lib": "contrib.distribute.core contrib.distribute",
    "distribute.distribution_strategy_context": "contrib.distribute.core contrib.distribute",
    "eager": "",
    "eager.backprop": "flowstone",
    "eager.context": "compat.behaviour",
    "eager.def_function": "functions.traced_functions",
    "eager.function": "functions.traced_functions contrib.eager",
    "eager.monitoring": "",
    "eager.tape": "",
    "estimator": "estimator",
    "estimator.estimator": "estimator.estimator estimator.estimator_v2 estimator",
    "estimator.estimator_lib": "estimator",
    "estimator.inputs.inputs": "estimator.inputs",
    "estimator.util": "estimator.function_arguments",
    "estimator.warm_starting_util": "estimator.warm_start_settings train",
    "estimator.mode_keys": "estimator.mode_keys estimator",
    "feature_column": "",
    "feature_column.feature_column": "feature_column layers.feature_columns",
    "feature_column.feature_column_lib": "feature_column layers.feature_columns",
    "feature_column.feature_column_v2": "feature_column layers.feature_columns",
    "feature_column.sequence_feature_column": "layers.feature_columns",
    "feature_column.serialization": "layers.feature_columns",
    "framework": "",
    "framework.common_shapes": "framework.types.shape framework.types.dimension",
    "framework.composite_tensor": "",
    "framework.constant_op": "flowstone",
    "framework.device": "framework.graphs.device_name",
    "framework.device_spec": "",
    "framework.dtypes": "framework.types.dtypes",
    "framework.errors": "framework.errors",
    "framework.errors_impl": "framework.errors",
    "framework.function": "framework.functions.function",
    "framework.graph_util": "graph_util",
    "framework.graph_io": "train",
    "framework.graph_util_impl": "graph_util",
    "framework.importer": "flowstone",
    "framework.load_library": "framework.declarations.op_packages",
    "framework.meta_graph": "training.checkpoints.meta_graph training.checkpoints.meta_graph_import train",
    "framework.op_def_registry": "framework.declarations.operation",
    "framework.ops": "flowstone framework.graphs.graph framework.tensors.tensor framework.tensors.scope"
    " framework.declarations.containers framework.tensors.composite",
    "framework.random_seed": "flowstone framework.graphs.graph",
    "framework.smart_cond": "layers.arguments",
    "framework.sparse_tensor": "flowstone",
    "framework.tensor_shape": "framework.types.shape framework.types.dimension",
    "framework.tensor_spec": "framework.tensors.bounded_specs flowstone",
    "framework.tensor_util": "flowstone framework.tensors.tensor",
    "framework.test_util": "test",
    "framework.type_spec": "framework.tensors.type_specs framework.tensors.bounded_specs data.specs",
    "framework.versions": "flowstone",
    "keras": "keras",
    "keras.utils": "keras.utils",
    "keras.utils.conv_utils": "layers.arguments",
    "layers": "layers",
    "layers.base": "layers layers.base layers.calls layers.input_layer",
    "layers.convolutional": "layers layers.convolutional layers.transposed_convolutional"
    " layers.separable_convolutional",
    "layers.core": "layers layers.core",
    "layers.layers": "layers",
    "layers.maxout": "layers.maxout",
    "layers.normalization": "layers layers.normalization",
    "layers.pooling": "layers layers.pooling",
    "layers.utils": "layers.arguments",
    "lib": "",
    "lib.io": "",
    "lib.io.file_io": "io.file_system io.file_objects gfile",
    "lib.io.tf_record": "python_io",
    "ops": "",
    "ops.array_grad": "ops.arrays.arrays",
    "ops.array_ops": "flowstone ops.arrays.arrays",
    "ops.candidate_sampling_ops": "nn",
    "ops.check_ops": "flowstone debugging",
    "ops.boosted_trees_ops": "estimator.canned.tree_resources",
    "training.checkpointable.base": "training.checkpoints.tracking",
    "training.checkpointable.data_structures": "training.checkpoints.tracking",
    "training.checkpointable.tracking": "training.checkpoints.tracking",
    "training.checkpointable.util": "train",
    "training.tracking.base": "training.checkpoints.tracking",
    "training.tracking.data_structures": "training.checkpoints.tracking",
    "training.tracking.tracking": "training.checkpoints.tracking",
    "training.tracking.util": "train",
    "ops.clip_ops": "flowstone",
    "ops.collective_ops": "ops.collectives.collective_ops",
    "ops.confusion_matrix": "flowstone layers.label_shapes",
    "ops.control_flow_ops": "flowstone ops.control.control_flow ops.control.loops",
    "ops.control_flow_util": "ops.control.control_flow",
    "ops.ctc_ops": "nn",
    "ops.custom_gradient": "flowstone",
    "ops.map_fn": "flowstone",
    "ops.data_flow_ops": "flowstone ops.queues.queues ops.queues.accumulators ops.queues.barriers"
    " ops.queues.staging_areas ops.readers.record_input ops.variables.stateful",
    "ops.distributions": "",
    "ops.distributions.bernoulli": "distributions.bernoulli",
    "ops.distributions.beta": "distributions.beta contrib.distributions",
    "ops.distributions.bijector_impl": "distributions.bijectors",
    "ops.distributions.categorical": "distributions.categorical",
    "ops.distributions.dirichlet": "distributions.dirichlet",
    "ops.distributions.dirichlet_multinomial": "distributions.dirichlet_multinomial",
    "ops.distributions.distribution": "distributions.distribution distributions",
    "ops.distributions.distributions": "distributions",
    "ops.distributions.exponential": "distributions.exponential contrib.distributions",
    "ops.distributions.gamma": "distributions.gamma contrib.distributions",
    "ops.distributions.identity_bijector": "distributions.bijectors",
    "ops.distributions.kullback_leibler": "distributions.kullback_leibler",
    "ops.distributions.laplace": "distributions.laplace contrib.distributions",
    "ops.distributions.multinomial": "distributions.multinomial",
    "ops.distributions.normal": "distributions.normal contrib.distributions",
    "ops.distributions.special_math": "distributions.normal_functions",
    "ops.distributions.student_t": "distributions.student_t contrib.distributions",
    "ops.distributions.uniform": "distributions.uniform",
    "ops.distributions.util": "contrib.distributions.distribution_util distributions.parameters",
    "ops.embedding_ops": "nn",
    "ops.functional_ops": "flowstone ops.control.functional_forms",
    "ops.gradient_checker": "test gradients.gradient_checker",
    "ops.gradients": "flowstone gradients.gradient_computation",
    "ops.gradients_impl": "flowstone gradients.gradient_computation",
    "ops.histogram_ops": "flowstone ops.numbers.histograms",
    "ops.image_ops": "image",
    "ops.image_ops_impl": "image",
    "ops.init_ops": "initializers flowstone ops.variables.initializers",
    "ops.inplace_ops": "flowstone",
    "ops.io_ops": "flowstone io framework.declarations.generated_ops",
    "ops.linalg": "",
    "ops.linalg.linalg": "linalg",
    "ops.linalg.linalg_impl": "linalg",
    "ops.linalg.linear_operator": "linalg",
    "ops.linalg.linear_operator_adjoint": "linalg",
    "ops.linalg.linear_operator_block_diag": "linalg",
    "ops.linalg.linear_operator_circulant": "linalg",
    "ops.linalg.linear_operator_composition": "linalg",
    "ops.linalg.linear_operator_diag": "linalg",
    "ops.linalg.linear_operator_full_matrix": "linalg",
    "ops.linalg.linear_operator_householder": "linalg",
    "ops.linalg.linear_operator_identity": "linalg",
    "ops.linalg.linear_operator_inversion": "linalg",
    "ops.linalg.linear_operator_kronecker": "linalg",
    "ops.linalg.linear_operator_low_rank_update": "linalg",
    "ops.linalg.linear_operator_lower_triangular": "linalg",
    "ops.linalg.linear_operator_zeros": "linalg",
    "ops.linalg.linear_operator_addition": "contrib.linalg",
    "ops.linalg.linear_operator_util": "",
    "ops.linalg_ops": "linalg flowstone",
    "ops.logging_ops": "flowstone summary",
    "ops.lookup_ops": "ops.lookup.lookup_tables ops.lookup.mutable_tables ops.lookup.table_initializers"
    " ops.lookup.vocabularies flowstone",
    "ops.losses": "losses",
    "ops.losses.losses": "losses",
    "ops.losses.losses_impl": "losses",
    "ops.losses.util": "losses",
    "ops.list_ops": "framework.declarations.generated_ops",
    "ops.manip_ops": "manip",
    "ops.math_ops": "flowstone math ops.numbers.elementwise ops.numbers.reductions ops.algebra.matrices",
    "ops.metrics": "metrics",
    "ops.metrics_impl": "metrics layers.metrics.state",
    "ops.nccl_ops": "ops.collectives.nccl_ops",
    "ops.nn": "nn",
    "ops.nn_grad": "ops.networks.neural_net",
    "ops.nn_impl": "nn",
    "ops.nn_ops": "nn flowstone ops.networks.neural_net ops.networks.convolution",
    "ops.numerics": "flowstone",
    "ops.parallel_for": "",
    "ops.parallel_for.control_flow_ops": "",
    "ops.parallel_for.gradients": "",
    "ops.parsing_ops": "flowstone",
    "ops.partitioned_variables": "flowstone ops.variables.variable_scope",
    "ops.random_ops": "flowstone random",
    "ops.resource_variable_ops": "flowstone ops.variables.resource_variable ops.variables.stateful"
    " ops.variables.variables framework.declarations.generated_ops",
    "ops.resources": "ops.variables.resources ops.variables.stateful",
    "ops.rnn": "nn contrib.seq2seq.decoder",
    "ops.rnn_cell": "nn.rnn_cell",
    "ops.rnn_cell_impl": "nn.rnn_cell contrib.rnn.core_rnn_cell",
    "ops.script_ops": "flowstone",
    "ops.session_ops": "flowstone ops.control.session_tensors",
    "ops.sets": "sets",
    "ops.sort_ops": "flowstone",
    "ops.sparse_ops": "flowstone sparse",
    "ops.special_math_ops": "flowstone",
    "ops.standard_ops": "flowstone",
    "ops.stateless_random_ops": "contrib.stateless random",
    "ops.state_ops": "flowstone ops.variables.stateful ops.variables.counting",
    "ops.string_ops": "flowstone strings",
    "ops.summary_ops": "summary",
    "ops.template": "flowstone ops.variables.template",
    "ops.op_selector": "contrib.graph_editor.select contrib.graph_editor.util",
    "ops.signal": "",
    "ops.summary_ops_v2": "contrib.summary contrib.summary.recording contrib.summary.summary_writers",
    "ops.tensor_array_ops": "flowstone",
    "ops.unconnected_gradients": "flowstone",
    "ops.variable_scope": "flowstone ops.variables.variable_scope ops.variables.scope_defaults",
    "ops.variables": "flowstone ops.variables.variables ops.variables.partitioned_variables"
    " ops.variables.variable_creation ops.variables.stateful",
    "ops.weights_broadcast_ops": "layers.weights_broadcast",
    "platform": "",
    "platform.app": "app",
    "platform.benchmark": "testing.benchmark test",
    "platform.flags": "flags app.flags",
    "platform.gfile": "gfile",
    "platform.googletest": "test",
    "platform.resource_loader": "resource_loader",
    "platform.test": "test",
    "platform.tf_logging": "logging",
    "profiler": "profiler",
    "profiler.model_analyzer": "profiler profiling.profiler",
    "profiler.option_builder": "profiler",
    "profiler.profile_context": "profiling.profile_context",
    "profiler.tfprof_logger": "profiler profiling.op_log",
    "pywrap_tensorflow": "train errors python_io",
    "saved_model": "saved_model",
    "saved_model.builder": "saved_model.builder",
    "saved_model.loader": "saved_model.loader",
    "saved_model.main_op": "saved_model.main_op",
    "saved_model.load": "saved_model.object_loading",
    "saved_model.nested_structure_coder": "saved_model.structured_values",
    "saved_model.save": "saved_model.object_saving",
    "saved_model.signature_constants": "saved_model.signature_constants",
    "saved_model.signature_def_utils": "saved_model.signature_def_utils",
    "saved_model.tag_constants": "saved_model.tag_constants",
    "saved_model.utils": "saved_model.utils",
    "summary": "",
    "summary.summary": "summary",
    "summary.summary_iterator": "io.events",
    "summary.writer": "",
    "summary.writer.writer": "summary",
    "summary.writer.writer_cache": "summary",
    "tf2": "",
    "tpu": "contrib.tpu",
    "tpu.device_assignment": "contrib.tpu.refused_names",
    "tpu.functional": "contrib.tpu.refused_names",
    "tpu.ops": "",
    "tpu.ops.tpu_ops": "contrib.tpu contrib.tpu.refused_names",
    "tpu.topology": "contrib.tpu.refused_names",
    "tpu.tpu": "contrib.tpu",
    "tpu.tpu_config": "estimator.tpu",
    "tpu.tpu_context": "estimator.tpu",
    "tpu.tpu_estimator": "estimator.tpu",
    "tpu.tpu_feed": "contrib.tpu",
    "tpu.tpu_function": "contrib.tpu.tpu_function",
    "tpu.tpu_optimizer": "contrib.tpu.cross_shard",
    "tools": "",
    "tools.freeze_graph": "",
    "tools.inspect_checkpoint": "",
    "tools.optimize_for_inference": "",
    "tools.optimize_for_inference_lib": "framework.graphs.inference_graphs",
    "tools.saved_model_cli": "saved_model.command_inputs",
    "tools.saved_model_utils": "",
    "tools.strip_unused_lib": "framework.graphs.inference_graphs",
    "training": "",
    "training.distribute": "contrib.distribute.core contrib.distribute",
    "training.distribution_strategy_context": "contrib.distribute.core contrib.distribute",
    "training.basic_loops": "train",
    "training.checkpoint_utils": "train",
    "training.moving_averages": "training.optimizers.moving_averages train",
    "training.training_ops": "framework.declarations.generated_ops",
    "training.training": "train",
    "training.training_util": "train training.hooks.global_step_reading",
    "user_ops": "",
    "user_ops.user_ops": "user_ops",
    "util": "",
    "util.compat": "compat.text",
    "util.function_utils": "",
    "util.nest": "framework.tensors.nest framework.tensors.shallow_nest",
    "util.object_identity": "",
    "util.tf_contextlib": "=contextlib",
    "util.tf_inspect": "=inspect",
}

# Modules by which TensorFlow converts Python's statements.
_CONVERSION = """
    converters.asserts converters.break_statements converters.call_trees converters.conditional_expressions
    converters.continue_statements converters.control_flow converters.lists converters.logical_expressions
    converters.return_statements converters.slices core.converter core.naming impl.conversion pyct.anno
    pyct.ast_util pyct.cfg pyct.common_transformers.anf pyct.compiler pyct.errors pyct.inspect_utils
    pyct.origin_info pyct.parser pyct.pretty_printer pyct.qual_names pyct.static_analysis.activity
    pyct.static_analysis.annos pyct.static_analysis.live_values pyct.static_analysis.liveness
    pyct.static_analysis.reaching_definitions pyct.templates pyct.transformer
"""

# Modules of one class or family each, whose names tf.train gathers.
# By the rooms of `training`.
_TRAINING = {
    "optimizers": "adadelta adagrad adagrad_da adam ftrl gradient_descent learning_rate_decay momentum"
    " optimizer proximal_adagrad proximal_gradient_descent rmsprop slot_creator"
    " sync_replicas_optimizer",
    "checkpoints": "checkpoint_management saver",
    "input": "coordinator input queue_runner queue_runner_impl",
    "hooks": "basic_session_run_hooks evaluation session_run_hook",
    "sessions": "device_setter monitored_session server_lib session_manager supervisor",
}

# Modules of one strategy or resolver each, whose names contrib gathers.
_STRATEGIES = """
    central_storage_strategy mirrored_strategy one_device_strategy parameter_server_strategy reduce_util
"""
_RESOLVERS = "cluster gce_cluster kubernetes_cluster slurm_cluster tfconfig_cluster"

# Modules of the estimators, whose names lie in files of the same names.
_ESTIMATOR = """
    canned.baseline canned.boosted_trees canned.dnn canned.dnn_linear_combined canned.head canned.linear
    canned.metric_keys canned.optimizers canned.parsing_utils canned.prediction_keys early_stopping
    export.export export.export_output exporter extenders head.base_head head.binary_class_head
    head.multi_class_head head.multi_head head.multi_label_head head.regression_head hooks inputs.numpy_io
    inputs.pandas_io model_fn run_config tpu.tpu_config tpu.tpu_estimator training
"""

_EXAMPLES = {
    "": "",
    "tutorials": "",
    "tutorials.mnist": "",
    "tutorials.mnist.input_data": "contrib.learn.datasets.mnist",
}

# The models that TensorFlow 0.5 to 0.11 came with.
_MODELS = {
    "": "",
    "rnn": "",
    "rnn.linear": "nn.rnn_cell",
    "rnn.ptb": "",
    "rnn.ptb.reader": "compat.eras.ptb_reader",
    "rnn.rnn": "nn",
    "rnn.rnn_cell": "nn.rnn_cell",
    "rnn.seq2seq": "contrib.legacy_seq2seq",
}


def listed_sources() -> Iterator[tuple[str, list[str]]]:
    """(name of a module of TensorFlow, the modules to ask)."""
    families = {
        f"training.{name}": f"train training.{room}.{name}"
        for room, names in _TRAINING.items()
        for name in names.split()
    }
    families |= {f"distribute.{name}": "contrib.distribute.core" for name in _STRATEGIES.split()}
    families |= {
        f"distribute.cluster_resolver.{name}_resolver": "contrib.cluster_resolver"
        for name in _RESOLVERS.split()
    }
    families |= {f"estimator.{name}": f"estimator.{name} estimator" for name in _ESTIMATOR.split()}
    families["estimator.util"] = "estimator.input_reading estimator.function_arguments"
    conversion = "compat.conversion_modules"
    families |= dict.fromkeys((f"autograph.{name}" for name in _CONVERSION.split()), conversion)
    rooms = {"python": _PYTHON | families, "examples": _EXAMPLES, "models": _MODELS}
    for root, entries in rooms.items():
        for path, sources in entries.items():
            name = f"tensorflow.{root}.{path}" if path else f"tensorflow.{root}"
            yield name, [_qualified(source) for source in sources.split()]


def _qualified(source: str) -> str:
    if source.startswith("="):
        return source[1:]
    return source if source == "flowstone" else f"flowstone.{source}"
