"""The names of `tf.contrib` that programs use most are there."""

from __future__ import annotations

import functools
from typing import Any

import pytest

import flowstone as tf
from flowstone.contrib.module_paths import ELSEWHERE, is_ours, module_names

NAMES = [
    "cluster_resolver.TPUClusterResolver",
    "compiler.xla",
    "data.group_by_window",
    "data.padded_batch_and_drop_remainder",
    "data.parallel_interleave",
    "distributions",
    "distributions.bijectors",
    "distributions.bijectors.Invert",
    "distributions.bijectors.Softplus",
    "eager.python.tfe",
    "eager.python.tfe.defun",
    "framework",
    "framework.add_arg_scope",
    "framework.arg_scope",
    "framework.nest",
    "framework.nest.assert_same_structure",
    "framework.nest.flatten",
    "framework.nest.is_sequence",
    "framework.nest.map_structure",
    "framework.nest.pack_sequence_as",
    "layers",
    "layers.batch_norm",
    "layers.flatten",
    "layers.fully_connected",
    "layers.l1_regularizer",
    "layers.l2_regularizer",
    "layers.layer_norm",
    "layers.variance_scaling_initializer",
    "layers.xavier_initializer",
    "learn.python.learn.datasets.mnist",
    "legacy_seq2seq.sequence_loss_by_example",
    "nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits",
    "rnn",
    "rnn.BasicLSTMCell",
    "rnn.DropoutWrapper",
    "rnn.GRUCell",
    "rnn.LSTMBlockCell",
    "rnn.LSTMCell",
    "rnn.LSTMStateTuple",
    "rnn.MultiRNNCell",
    "rnn.NASCell",
    "rnn.RNNCell",
    "rnn.ResidualWrapper",
    "rnn.static_bidirectional_rnn",
    "rnn.static_rnn",
    "seq2seq.AttentionWrapper",
    "seq2seq.AttentionWrapperState",
    "seq2seq.BasicDecoder",
    "seq2seq.BeamSearchDecoder",
    "seq2seq.TrainingHelper",
    "seq2seq.dynamic_decode",
    "seq2seq.tile_batch",
    "slim",
    "slim.add_arg_scope",
    "slim.arg_scope",
    "slim.arg_scope_func_key",
    "slim.avg_pool2d",
    "slim.batch_norm",
    "slim.conv2d",
    "slim.conv2d_transpose",
    "slim.dropout",
    "slim.flatten",
    "slim.fully_connected",
    "slim.initializers.xavier_initializer",
    "slim.l2_regularizer",
    "slim.max_pool2d",
    "slim.model_analyzer.analyze_vars",
    "slim.separable_conv2d",
    "slim.softmax",
    "summary.always_record_summaries",
    "summary.create_file_writer",
    "summary.record_summaries_every_n_global_steps",
    "summary.scalar",
    "tensorboard.plugins.projector",
    "tensorboard.plugins.projector.ProjectorConfig",
    "tensorboard.plugins.projector.visualize_embeddings",
    "tpu.CrossShardOptimizer",
    "tpu.RunConfig",
    "tpu.TPUConfig",
    "tpu.TPUEstimator",
    "tpu.TPUEstimatorSpec",
    "training.HParams",
    "util.constant_value",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_there(name: str) -> None:
    found: Any = functools.reduce(getattr, name.split("."), tf.contrib)
    assert found is not None


def test_what_is_not_there_says_so() -> None:
    with pytest.raises(AttributeError, match=r"flowstone does not have the name tf\.contrib\.tensorrt"):
        tf.contrib.tensorrt  # noqa: B018


def test_every_package_that_is_not_here_names_what_is_nearest() -> None:
    packages = [name for name in module_names() if not is_ours(name) and name not in (*ELSEWHERE, "cmake")]
    assert packages
    for name in packages:
        with pytest.raises(AttributeError, match=rf"the name tf\.contrib\.{name}; use "):
            getattr(tf.contrib, name)
