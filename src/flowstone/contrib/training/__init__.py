"""`tf.contrib.training`: parameters, batches by length, loops of training and evaluation."""

from __future__ import annotations

from flowstone.contrib.package_names import package_names

__getattr__, __dir__ = package_names(
    globals(),
    {
        "flowstone.contrib.training.evaluation": "StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator"
        " evaluate_once evaluate_repeatedly get_or_create_eval_step wait_for_new_checkpoint",
        "flowstone.contrib.training.feeding_queue_runner": "FeedingQueueRunner",
        "flowstone.contrib.training.hparam": "HParams parse_values",
        "flowstone.contrib.training.resample": "resample_at_rate weighted_resample",
        "flowstone.contrib.training.sampling_ops": "rejection_sample stratified_sample",
        "flowstone.contrib.training.sequence_queueing_state_saver": "NextQueuedSequenceBatch"
        " SequenceQueueingStateSaver batch_sequences_with_states",
        "flowstone.contrib.training.training": "add_gradients_summaries clip_gradient_norms"
        " clip_gradient_norms_fn create_train_op multiply_gradients train",
        "flowstone.training.input.bucketing": "bucket bucket_by_sequence_length",
        "flowstone.training.sessions.device_setter": "GreedyLoadBalancingStrategy RandomStrategy"
        " byte_size_load_fn",
    },
)
