"""The gRPC services: what each message is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flowstone.framework import errors
from flowstone.framework.types.tensor_proto import make_ndarray, make_tensor_proto
from flowstone.io import any_messages
from flowstone.io.proto.serving import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    health_pb2,
    inference_pb2,
    predict_pb2,
    regression_pb2,
)
from flowstone.serving.services import METHODS, answer

PREDICTION = "/tensorflow.serving.PredictionService/"
LIMIT = 1 << 20


def ask(model: Any, method: str, request: Any, kind: Any) -> Any:
    return kind.FromString(answer(model, method, request.SerializeToString(), LIMIT))


def prediction(signature: str = "", **inputs: Any) -> Any:
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "half", signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(make_tensor_proto(value))
    return request


def predict(model: Any, request: Any) -> Any:
    return ask(model, f"{PREDICTION}Predict", request, predict_pb2.PredictResponse)


def of_examples(kind: Any, signature: str, *values: float) -> Any:
    request = kind()
    request.model_spec.name, request.model_spec.signature_name = "half", signature
    add_examples(request.input, *values)
    return request


def add_examples(given: Any, *values: float) -> None:
    for value in values:
        example = given.example_list.examples.add()
        example.features.feature["x"].float_list.value.append(value)


# ---- PredictionService


def test_predict(model: Any) -> None:
    response = predict(model, prediction(x=np.float32([1, 2])))
    assert response.model_spec.name == "half"
    assert response.model_spec.version.value == 3
    assert response.model_spec.signature_name == "serving_default"
    assert list(response.outputs["y"].float_val) == [2.5, 3.0]  # where clients look
    assert [dim.size for dim in response.outputs["y"].tensor_shape.dim] == [2]


def test_predict_with_a_filter(model: Any) -> None:
    request = prediction("pair", a=np.float32([[1, 2]]), b=np.int32([3]))
    assert set(predict(model, request).outputs) == {"total", "double"}
    request.output_filter.append("double")
    response = predict(model, request)
    assert set(response.outputs) == {"double"}
    np.testing.assert_array_equal(make_ndarray(response.outputs["double"]), [6])


def test_predict_with_strings(model: Any) -> None:
    response = predict(model, prediction("words", words=[b"\xff", b"a"]))
    assert list(response.outputs["again"].string_val) == [b"\xff!", b"a!"]


def test_predict_one_string(model: Any) -> None:
    response = predict(model, prediction("first", words=[b"a\0", b"b"]))
    assert make_ndarray(response.outputs["first_bytes"]).item() == b"a\0"


def test_classify(model: Any) -> None:
    request = of_examples(classification_pb2.ClassificationRequest, "classify", 1.0)
    response = ask(model, f"{PREDICTION}Classify", request, classification_pb2.ClassificationResponse)
    (found,) = response.result.classifications
    assert [(each.label, each.score) for each in found.classes] == [("low", -1.5), ("high", 2.5)]


def test_regress_with_a_context(model: Any) -> None:
    request = of_examples(regression_pb2.RegressionRequest, "regress", 1.0, 2.0)
    response = ask(model, f"{PREDICTION}Regress", request, regression_pb2.RegressionResponse)
    assert [each.value for each in response.result.regressions] == [2.5, 3.0]
    given = request.input.example_list_with_context
    given.examples.add()
    given.context.features.feature["x"].float_list.value.append(4.0)
    response = ask(model, f"{PREDICTION}Regress", request, regression_pb2.RegressionResponse)
    assert [each.value for each in response.result.regressions] == [4.0]


def test_several_inferences_of_one_input(model: Any) -> None:
    request = inference_pb2.MultiInferenceRequest()
    for key, method in (("classify", "classify"), ("regress", "regress")):
        task = request.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = "half", key
    add_examples(request.input, 1.0)
    response = ask(model, f"{PREDICTION}MultiInference", request, inference_pb2.MultiInferenceResponse)
    first, second = response.results
    assert first.classification_result.classifications[0].classes[1].score == 2.5
    assert second.regression_result.regressions[0].value == 2.5
    assert second.model_spec.signature_name == "regress"


def test_metadata(model: Any) -> None:
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = "half"
    kind = get_model_metadata_pb2.GetModelMetadataResponse
    packed = ask(model, f"{PREDICTION}GetModelMetadata", request, kind).metadata["signature_def"]
    assert packed.type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    signatures = any_messages.unpack(packed, get_model_metadata_pb2.SignatureDefMap)
    assert signatures.signature_def["serving_default"].inputs["x"].name == "x:0"


# ---- ModelService, Health


def test_status(model: Any) -> None:
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = "half"
    kind = get_model_status_pb2.GetModelStatusResponse
    (found,) = ask(
        model, "/tensorflow.serving.ModelService/GetModelStatus", request, kind
    ).model_version_status
    assert (found.version, found.state) == (3, get_model_status_pb2.ModelVersionStatus.AVAILABLE)
    assert found.HasField("status")


def test_health(model: Any) -> None:
    def check(service: str) -> Any:
        request = health_pb2.HealthCheckRequest(service=service)
        return ask(model, "/grpc.health.v1.Health/Check", request, health_pb2.HealthCheckResponse).status

    assert (
        check("") == check("tensorflow.serving.PredictionService") == health_pb2.HealthCheckResponse.SERVING
    )
    with pytest.raises(errors.NotFoundError):
        check("other")


# ---- what is refused


def _changed(change: Any) -> Any:
    request = prediction(x=np.float32([1.0]))
    change(request)
    return request


def _as_type(request: Any) -> None:
    request.inputs["x"].CopyFrom(make_tensor_proto(np.float64([1.0])))


def _as_shape(*sizes: int) -> Any:
    def change(request: Any) -> None:
        shape = request.inputs["x"].tensor_shape
        del shape.dim[:]
        for size in sizes:
            shape.dim.add(size=size)

    return change


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda r: r.ClearField("model_spec"), errors.InvalidArgumentError, "Missing ModelSpec"),
        (lambda r: setattr(r.model_spec, "name", "other"), errors.NotFoundError, r"Latest\(other\)"),
        (lambda r: setattr(r.model_spec.version, "value", 7), errors.NotFoundError, r"Specific\(half, 7\)"),
        (lambda r: setattr(r.model_spec, "version_label", "a"), errors.NotFoundError, "version label: a"),
        (
            lambda r: setattr(r.model_spec, "signature_name", "a"),
            errors.FailedPreconditionError,
            '"a" not found',
        ),
        (lambda r: r.inputs.clear(), errors.InvalidArgumentError, "Missing but required: {x}"),
        (lambda r: r.inputs["y"].SetInParent(), errors.InvalidArgumentError, "'y' cannot be read"),
        (lambda r: r.output_filter.append("z"), errors.InvalidArgumentError, "not found in signature: z"),
        (lambda r: r.output_filter.extend("yy"), errors.InvalidArgumentError, "duplicate output"),
        (_as_type, errors.InvalidArgumentError, "'x' is expected to be float32, not float64"),
        (_as_shape(1, 1), errors.InvalidArgumentError, "has the shape"),
        (_as_shape(-1), errors.InvalidArgumentError, "'x' cannot be read"),
        (_as_shape(2**40), errors.ResourceExhaustedError, "the limit is"),
        (_as_shape(*[1] * 40), errors.InvalidArgumentError, "more than 32"),
    ],
)
def test_bad_predictions(model: Any, change: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        predict(model, _changed(change))
    assert list(predict(model, prediction(x=np.float32([1]))).outputs["y"].float_val) == [2.5]


def test_bytes_that_are_no_message(model: Any) -> None:
    for method in METHODS:
        with pytest.raises(errors.InvalidArgumentError, match="cannot be parsed"):
            answer(model, method, b"\x0a\xff", LIMIT)
    with pytest.raises(errors.UnimplementedError):
        answer(model, f"{PREDICTION}Guess", b"", LIMIT)


def test_other_bad_requests(model: Any) -> None:
    empty = of_examples(classification_pb2.ClassificationRequest, "classify")
    with pytest.raises(errors.InvalidArgumentError, match=r"Input is empty\."):
        answer(model, f"{PREDICTION}Classify", empty.SerializeToString(), LIMIT)
    with pytest.raises(errors.InvalidArgumentError, match="at least one task"):
        answer(model, f"{PREDICTION}MultiInference", b"", LIMIT)
    with pytest.raises(errors.InvalidArgumentError, match="must be signature_def, got: none"):
        answer(model, f"{PREDICTION}GetModelMetadata", b"", LIMIT)
