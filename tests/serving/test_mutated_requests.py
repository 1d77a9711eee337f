"""Requests with random damage: each is answered or refused, and the model goes on."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from flowstone.framework import errors
from flowstone.framework.types.tensor_proto import make_tensor_proto
from flowstone.io.proto.serving import classification_pb2, predict_pb2
from flowstone.serving import rest, services

COUNT = 300
BODIES = [
    (":predict", {"signature_name": "pair", "inputs": {"a": [[1, 2.5]], "b": [3]}}),
    (":predict", {"instances": [1.0, -2e5, 3]}),
    (":predict", {"signature_name": "words", "instances": ["a", {"b64": "/wA="}]}),
    (
        ":classify",
        {"signature_name": "classify", "context": {"y": "a"}, "examples": [{"x": [1.0]}, {"z": 3}]},
    ),
]
TOKENS = [b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"1e999", b"-", b"\\u", b"\xff", b"NaN", b"true"]


def damaged(source: random.Random, text: bytes, tokens: list[bytes]) -> bytes:
    """`text` with one to four pieces changed, cut, repeated or put in."""
    changed = bytearray(text)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(changed) + 1)
        piece = changed[at : at + source.randint(1, 12)]
        way = source.randrange(4)
        if way == 0 and at < len(changed):
            changed[at] = source.randrange(256)
        elif way == 1:
            del changed[at : at + len(piece)]
        elif way == 2:
            changed[at:at] = bytes(piece) * source.randint(1, 50)
        else:
            changed[at:at] = source.choice(tokens)
    return bytes(changed)


@pytest.mark.parametrize("index", range(len(BODIES)))
def test_json(model: Any, index: int) -> None:
    what, body = BODIES[index]
    source = random.Random(index)
    text = json.dumps(body).encode()
    for _ in range(COUNT):
        sent = damaged(source, text, TOKENS)
        response = rest.answer(model, rest.Request("POST", f"/v1/models/half{what}", sent))
        assert response.status in (200, 400), (sent, response.body)
        assert isinstance(json.loads(response.body), dict)
    assert rest.answer(model, rest.Request("POST", f"/v1/models/half{what}", text)).status == 200


def test_paths(model: Any) -> None:
    source = random.Random(0)
    for _ in range(COUNT):
        path = damaged(source, b"/v1/models/half/versions/3:predict", [b"/", b":", b"%", b"9" * 30]).decode(
            "latin-1"
        )
        assert rest.answer(model, rest.Request("POST", path, b"{}")).status in (400, 404)


def _messages() -> list[tuple[str, bytes]]:
    prediction = predict_pb2.PredictRequest(output_filter=["total"])
    prediction.model_spec.name, prediction.model_spec.signature_name = "half", "pair"
    prediction.inputs["a"].CopyFrom(make_tensor_proto(np.float32([[1, 2]])))
    prediction.inputs["b"].CopyFrom(make_tensor_proto(np.int32([3])))
    classification = classification_pb2.ClassificationRequest()
    classification.model_spec.name, classification.model_spec.signature_name = "half", "classify"
    example = classification.input.example_list.examples.add()
    example.features.feature["x"].float_list.value.append(1.0)
    return [("Predict", prediction.SerializeToString()), ("Classify", classification.SerializeToString())]


@pytest.mark.parametrize("index", range(2))
def test_protobuf(model: Any, index: int) -> None:
    name, message = _messages()[index]
    method = f"/tensorflow.serving.PredictionService/{name}"
    source = random.Random(index)
    for _ in range(COUNT):
        sent = damaged(source, message, [b"\x08", b"\x0a", b"\x12", b"\xff\xff\xff\x7f", b"\x80" * 10])
        try:
            services.answer(model, method, sent, 1 << 20)
        except errors.OpError as error:
            assert error.error_code not in (errors.INTERNAL, errors.UNKNOWN), (sent, error.message)
    assert services.answer(model, method, message, 1 << 20)
