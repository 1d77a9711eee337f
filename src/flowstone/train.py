"""`flowstone.train`: optimisers, learning-rate schedules, moving averages, the global step, and the threads
that feed a graph.
"""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.training.hooks.global_step import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
    global_step,
)
from flowstone.training.input import queue_runner
from flowstone.training.input.batching import (
    batch,
    batch_join,
    maybe_batch,
    maybe_batch_join,
    maybe_shuffle_batch,
    maybe_shuffle_batch_join,
    shuffle_batch,
    shuffle_batch_join,
)
from flowstone.training.input.coordinator import Coordinator, LooperThread
from flowstone.training.input.input_pipelines import (
    input_producer,
    limit_epochs,
    match_filenames_once,
    range_input_producer,
    slice_input_producer,
    string_input_producer,
)
from flowstone.training.input.queue_runner import QueueRunner, add_queue_runner, start_queue_runners
from flowstone.training.optimizers.adadelta import AdadeltaOptimizer
from flowstone.training.optimizers.adagrad import AdagradOptimizer
from flowstone.training.optimizers.adagrad_da import AdagradDAOptimizer
from flowstone.training.optimizers.adam import AdamOptimizer
from flowstone.training.optimizers.ftrl import FtrlOptimizer
from flowstone.training.optimizers.gradient_descent import GradientDescentOptimizer
from flowstone.training.optimizers.learning_rate_decay import (
    cosine_decay,
    cosine_decay_restarts,
    exponential_decay,
    inverse_time_decay,
    linear_cosine_decay,
    natural_exp_decay,
    noisy_linear_cosine_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)
from flowstone.training.optimizers.momentum import MomentumOptimizer
from flowstone.training.optimizers.moving_averages import ExponentialMovingAverage
from flowstone.training.optimizers.optimizer import Optimizer
from flowstone.training.optimizers.proximal_adagrad import ProximalAdagradOptimizer
from flowstone.training.optimizers.proximal_gradient_descent import ProximalGradientDescentOptimizer
from flowstone.training.optimizers.rmsprop import RMSPropOptimizer
from flowstone.training.optimizers.sync_replicas import SyncReplicasOptimizer
from flowstone.training.sessions.device_setter import replica_device_setter

_OURS, _TENSORBOARD = "flowstone.io.proto", "tensorboard.compat.proto"
__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.contrib.mixed_precision": "experimental",
        "flowstone.framework.names.refused_names": "CheckpointOptions",
        "flowstone.io.events": "summary_iterator",
        "flowstone.ops.networks.dual_coordinate_ascent": "sdca_fprint sdca_optimizer sdca_shrink_l1",
        "flowstone.training.sessions.basic_loops": "basic_train_loop",
        "flowstone.training.sessions.cluster_spec": "ClusterSpec",
        "flowstone.training.sessions.server": "Server",
        "flowstone.training.hooks.checkpoint_hook": "CheckpointSaverHook CheckpointSaverListener",
        "flowstone.training.checkpoints.checkpoint_reading": "NewCheckpointReader checkpoints_iterator"
        " init_from_checkpoint list_variables load_checkpoint load_variable",
        "flowstone.training.checkpoints.checkpoint_rotation": "CheckpointManager",
        "flowstone.training.checkpoints.checkpoint_state": "checkpoint_exists generate_checkpoint_state_proto"
        " get_checkpoint_mtimes get_checkpoint_state latest_checkpoint remove_checkpoint"
        " update_checkpoint_state",
        "flowstone.training.checkpoints.meta_graph": "export_meta_graph write_graph",
        "flowstone.training.sessions.monitored_session": (
            "MonitoredSession MonitoredTrainingSession SingularMonitoredSession"
        ),
        "flowstone.training.checkpoints.object_checkpoint": "Checkpoint",
        "flowstone.training.optimizers.quantized_training": "do_quantize_training_on_graphdef",
        "flowstone.training.checkpoints.saver": "Saver",
        "flowstone.training.checkpoints.saver_import": "import_meta_graph",
        "flowstone.training.sessions.scaffold": "Scaffold",
        "flowstone.training.sessions.session_creators": "ChiefSessionCreator SessionCreator"
        " WorkerSessionCreator",
        "flowstone.training.sessions.session_preparation": "SessionManager",
        "flowstone.training.hooks.session_run_hook": (
            "SessionRunArgs SessionRunContext SessionRunHook SessionRunValues"
        ),
        "flowstone.training.hooks.step_hooks": "GlobalStepWaiterHook StepCounterHook StopAtStepHook",
        "flowstone.training.hooks.step_timer": "SecondOrStepTimer",
        "flowstone.training.hooks.summary_hooks": "ProfilerHook SummarySaverHook",
        "flowstone.training.sessions.supervisor": "Supervisor",
        "flowstone.training.hooks.tensor_hooks": (
            "FeedFnHook FinalOpsHook LoggingTensorHook NanLossDuringTrainingError NanTensorHook"
        ),
        "flowstone.training.checkpoints.warm_starting": "VocabInfo warm_start",
        f"{_OURS}.example_pb2": "Example SequenceExample",
        f"{_OURS}.feature_pb2": "BytesList Feature FeatureList FeatureLists Features FloatList Int64List",
        f"{_OURS}.tensorflow_server_pb2": "ServerDef",
        f"{_TENSORBOARD}.cluster_pb2": "ClusterDef JobDef",
        f"{_TENSORBOARD}.saver_pb2": "SaverDef",
    },
)
