"""`projector.visualize_embeddings`: the file that TensorBoard's plugin reads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from google.protobuf import text_format

import flowstone as tf


def test_the_config_is_written(tmp_path: Path) -> None:
    projector = tf.contrib.tensorboard.plugins.projector
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add(tensor_name="words", metadata_path="words.tsv")
    embedding.sprite.CopyFrom(projector.SpriteMetadata(image_path="s.png", single_image_dim=[3, 4]))
    assert isinstance(embedding, projector.EmbeddingInfo)
    projector.visualize_embeddings(tf.summary.FileWriter(str(tmp_path)), config)
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert text_format.Parse(text, projector.ProjectorConfig()) == config
    with pytest.raises(ValueError, match="must have a logdir"):
        projector.visualize_embeddings(SimpleNamespace(get_logdir=lambda: None), config)
