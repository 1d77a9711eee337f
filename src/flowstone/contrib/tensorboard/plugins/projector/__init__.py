"""`tf.contrib.tensorboard.plugins.projector`: embeddings for TensorBoard's projector.

config = projector.ProjectorConfig()
config.embeddings.add(tensor_name="words", metadata_path="words.tsv")
projector.visualize_embeddings(tf.summary.FileWriter(logdir), config)
"""

from __future__ import annotations

import os
from typing import Any

from google.protobuf import text_format
from tensorboard.plugins.projector import projector_config_pb2 as projector_config_pb2

import flowstone as tf

__all__ = ["EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]

EmbeddingInfo = projector_config_pb2.EmbeddingInfo
ProjectorConfig = projector_config_pb2.ProjectorConfig
SpriteMetadata = projector_config_pb2.SpriteMetadata

_FILE = "projector_config.pbtxt"


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes a ProjectorConfig into the folder of a FileWriter, where TensorBoard finds it.

    The embeddings themselves are the variables of the checkpoints there. Raises ValueError if the writer has
    no folder.
    """
    logdir = summary_writer.get_logdir()
    if logdir is None:
        raise ValueError("Summary writer must have a logdir")
    with tf.gfile.Open(os.path.join(logdir, _FILE), "w") as file:
        file.write(text_format.MessageToString(config))
