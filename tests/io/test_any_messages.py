"""Messages inside an `Any` carry TensorFlow's names, in bytes and in text."""

from __future__ import annotations

import pytest
from tensorboard.compat.proto.meta_graph_pb2 import AssetFileDef

from flowstone.framework import errors
from flowstone.io.any_messages import format_text, pack, parse_text, unpack
from flowstone.io.proto.example_pb2 import Example
from flowstone.io.proto.queue_runner_pb2 import QueueRunnerDef
from flowstone.io.proto.saved_model_pb2 import SavedModel


def test_names_are_tensorflows() -> None:
    assert pack(AssetFileDef()).type_url == "type.googleapis.com/tensorflow.AssetFileDef"
    assert pack(QueueRunnerDef()).type_url == "type.googleapis.com/tensorflow.QueueRunnerDef"


def test_either_name_is_read() -> None:
    packed = pack(AssetFileDef(filename="a"))
    packed.type_url = packed.type_url.replace("tensorflow", "tensorboard")
    assert unpack(packed, AssetFileDef).filename == "a"


def test_another_message_is_refused() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"holds a tensorflow\.AssetFileDef, not a"):
        unpack(pack(AssetFileDef()), Example)
    packed = pack(AssetFileDef())
    packed.value = b"\x0a\xff"
    with pytest.raises(errors.DataLossError, match=r"holds no tensorboard\.AssetFileDef"):
        unpack(packed, AssetFileDef)


def model() -> SavedModel:
    made = SavedModel(saved_model_schema_version=1)
    values = made.meta_graphs.add().collection_def["saved_model_assets"].any_list.value
    values.add().CopyFrom(pack(AssetFileDef(filename="words.txt")))
    return made


def test_text_shows_what_is_inside() -> None:
    text = format_text(model())
    assert "[type.googleapis.com/tensorflow.AssetFileDef] {" in text and 'filename: "words.txt"' in text
    assert parse_text(text, SavedModel()) == model()


def test_text_that_is_none() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"Cannot parse a SavedModel from text: 2:3"):
        parse_text("\n  nonsense: 1", SavedModel())
    with pytest.raises(errors.InvalidArgumentError, match="Cannot parse"):
        parse_text(b"\xff", SavedModel())
