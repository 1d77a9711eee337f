"""Asks `flowstone serve` by TensorFlow Serving's own stubs, for a model that TensorFlow saved.

    $TF_PYTHON -m pip install --no-deps --target /tmp/serving_api tensorflow-serving-api
    PYTHONPATH=/tmp/serving_api $TF_PYTHON tests/serving/serving_api_client.py .venv/bin/python

TF_PYTHON has TensorFlow 2 and grpcio; the argument is the Python that has flowstone. Prints what each method
answers; an AssertionError or RpcError tells what does not fit.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import tensorflow.compat.v1 as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

ROOT = Path(__file__).parents[2]


def save(folder: str) -> None:
    """A model that halves x and adds 2: of floats, and of Examples."""
    signatures = tf.saved_model.signature_def_utils
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], name="x")
        half = tf.Variable(0.5)
        serialized = tf.placeholder(tf.string, [None], name="serialized")
        parsed = tf.parse_example(serialized, {"x": tf.FixedLenFeature([], tf.float32)})["x"] * half + 2.0
        scores = tf.stack([1.0 - parsed, parsed], axis=1)
        labels = tf.tile([["low", "high"]], [tf.size(serialized), 1])
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {
                "serving_default": signatures.predict_signature_def({"x": x}, {"y": x * half + 2.0}),
                "classify": signatures.classification_signature_def(serialized, labels, scores),
                "regress": signatures.regression_signature_def(serialized, parsed),
            },
        )
        builder.save()


@contextlib.contextmanager
def serving(python: str, folder: str) -> Iterator[tuple[str, str]]:
    """The addresses of REST and gRPC of a server."""
    command = [python, "-m", "flowstone", "serve", folder, "--name=half", "--rest-port=0", "--grpc-port=0"]
    environment = {**os.environ, "PYTHONPATH": os.environ.get("FLOWSTONE_PATH", str(ROOT / "src"))}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            lines = "".join(process.stderr.readline() for _ in range(3))
            yield re.findall(r"REST on (\S+)", lines)[0], re.findall(r"gRPC on (\S+)", lines)[0]
        finally:
            process.terminate()


def ask_predictions(channel: Any) -> None:
    """Every method of PredictionService."""
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "half"
    request.inputs["x"].CopyFrom(tf.make_tensor_proto([1.0, 2.0]))
    response = stub.Predict(request, timeout=10)
    assert tf.make_ndarray(response.outputs["y"]).tolist() == [2.5, 3.0]
    assert response.model_spec.version.value == 1
    print("Predict:", response)

    example = tf.train.Example()
    example.features.feature["x"].float_list.value.append(1.0)

    def of(kind: Any, key: str) -> Any:
        made = kind()
        made.model_spec.name, made.model_spec.signature_name = "half", key
        made.input.example_list.examples.append(example)
        return made

    classified = stub.Classify(of(classification_pb2.ClassificationRequest, "classify"), timeout=10)
    assert [c.label for c in classified.result.classifications[0].classes] == ["low", "high"]
    print("Classify:", classified)
    regressed = stub.Regress(of(regression_pb2.RegressionRequest, "regress"), timeout=10)
    assert regressed.result.regressions[0].value == 2.5
    print("Regress:", regressed)

    several = inference_pb2.MultiInferenceRequest()
    several.input.example_list.examples.append(example)
    for key in ("classify", "regress"):
        task = several.tasks.add(method_name=f"tensorflow/serving/{key}")
        task.model_spec.name, task.model_spec.signature_name = "half", key
    answers = stub.MultiInference(several, timeout=10).results
    assert [each.WhichOneof("result") for each in answers] == ["classification_result", "regression_result"]
    print("MultiInference:", answers)

    metadata = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    metadata.model_spec.name = "half"
    signatures = get_model_metadata_pb2.SignatureDefMap()
    packed = stub.GetModelMetadata(metadata, timeout=10).metadata["signature_def"]
    assert packed.Unpack(signatures)
    print("GetModelMetadata:", sorted(signatures.signature_def), signatures.signature_def["serving_default"])


def ask_status_and_errors(channel: Any) -> None:
    """ModelService, and the codes of what is refused."""
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "half"
    status = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(request, timeout=10)
    assert status.model_version_status[0].state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
    print("GetModelStatus:", status)
    stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
    for name, signature, value in (("other", "", [1.0]), ("half", "none", [1.0]), ("half", "", [1])):
        bad = predict_pb2.PredictRequest()
        bad.model_spec.name, bad.model_spec.signature_name = name, signature
        bad.inputs["x"].CopyFrom(tf.make_tensor_proto(value))
        try:
            stub.Predict(bad, timeout=10)
        except grpc.RpcError as error:
            print("refused:", error.code(), error.details())
        else:
            raise AssertionError(bad)


def main() -> None:
    with tempfile.TemporaryDirectory() as below:
        save(f"{below}/half/1")
        with serving(sys.argv[1], f"{below}/half") as (rest, address):
            with grpc.insecure_channel(address) as channel:
                ask_predictions(channel)
                ask_status_and_errors(channel)
            with urllib.request.urlopen(f"{rest}:predict", b'{"instances": [1.0, 2.0]}') as response:
                print("REST:", json.loads(response.read()))


if __name__ == "__main__":
    main()
