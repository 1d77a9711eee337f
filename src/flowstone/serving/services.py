"""TensorFlow Serving's gRPC services without sockets: `answer(model, method, request)` gives the response's
bytes.

`METHODS` has, by the full name of a method (``/tensorflow.serving.PredictionService/Predict``), the message
of its request and the function that answers it. What goes wrong is an error of `flowstone.errors`, whose
code is gRPC's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flowstone.framework import errors
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
from flowstone.saved_model import signature_constants as constants
from flowstone.serving.inference import classify, invalid, predict, regress
from flowstone.serving.model import Lease, Model
from flowstone.serving.proto_tensors import array_of_proto, proto_of_array

__all__ = ["METHODS", "answer"]

_PREDICTION = "tensorflow.serving.PredictionService"
_MODEL = "tensorflow.serving.ModelService"
_HEALTH = "grpc.health.v1.Health"


class Method(NamedTuple):
    """The class of a method's request, and what answers it: (model, request, most bytes of a tensor)."""

    request: Any
    answer: Callable[[Model, Any, int], Any]


def answer(model: Model, method: str, request: bytes, max_bytes: int) -> bytes:
    """The response to a request. Raises OpError, and nothing else."""
    try:
        if method not in METHODS:
            raise errors.UnimplementedError(None, None, f"There is no method {method}.")
        try:
            message = METHODS[method].request.FromString(request)
        except Exception as error:  # protobuf's DecodeError, whose module depends on its implementation
            raise invalid(f"The request cannot be parsed: {error}") from None
        return bytes(METHODS[method].answer(model, message, max_bytes).SerializeToString())
    except errors.OpError:
        raise
    except MemoryError:
        raise errors.ResourceExhaustedError(None, None, "The request needs too much memory.") from None
    except Exception as error:  # a fault of ours must not end the server
        raise errors.InternalError(None, None, f"{type(error).__name__}: {error}") from error


# ---- which model


def _lease(model: Model, spec: Any) -> Any:
    """The version that a ModelSpec means, as a context."""
    return model.lease(_name(spec), _version(spec))


def _name(spec: Any) -> str:
    if not spec.name:
        raise invalid("Missing ModelSpec")
    return str(spec.name)


def _version(spec: Any) -> int | None:
    if spec.WhichOneof("version_choice") == "version_label":
        raise errors.NotFoundError(None, None, f"Unrecognized servable version label: {spec.version_label}")
    return int(spec.version.value) if spec.HasField("version") else None


def _signature(model: Model, lease: Lease, spec: Any) -> Any:
    return lease.servable.signature(spec.signature_name or model.signature_name)


def _describe(spec: Any, model: Model, lease: Lease, signature: str) -> None:
    """Fills the ModelSpec of a response."""
    spec.name, spec.signature_name = model.name, signature
    spec.version.value = lease.number


# ---- PredictionService


def _predict(model: Model, request: Any, max_bytes: int) -> Any:
    with _lease(model, request.model_spec) as lease:
        signature = _signature(model, lease, request.model_spec)
        inputs = {name: array_of_proto(name, each, max_bytes) for name, each in request.inputs.items()}
        outputs = predict(lease.servable, signature, inputs, list(request.output_filter))
        response = predict_pb2.PredictResponse()
        _describe(response.model_spec, model, lease, signature.key)
        for name, array in outputs.items():
            response.outputs[name].CopyFrom(proto_of_array(array, signature.outputs[name].dtype))
        return response


def _examples(given: Any) -> list[bytes]:
    kind = given.WhichOneof("kind")
    if kind is None:
        raise invalid("Input is empty.")
    examples = getattr(given, kind).examples
    if kind == "example_list":
        return [each.SerializeToString() for each in examples]
    # One message after the other is their union; what is said later counts.
    context = given.example_list_with_context.context.SerializeToString()
    return [context + each.SerializeToString() for each in examples]


def _classification(lease: Lease, signature: Any, examples: list[bytes]) -> Any:
    labels, scores = classify(lease.servable, signature, examples)
    result = classification_pb2.ClassificationResult()
    for row in range(len(examples)):
        classes = result.classifications.add().classes
        count = len((labels if labels is not None else scores)[row])  # type: ignore[index]
        for column in range(count):
            each = classes.add()
            if labels is not None:
                each.label = labels[row, column].decode("utf-8", "replace")
            if scores is not None:
                each.score = float(scores[row, column])
    return result


def _regression(lease: Lease, signature: Any, examples: list[bytes]) -> Any:
    result = regression_pb2.RegressionResult()
    for value in regress(lease.servable, signature, examples).tolist():
        result.regressions.add().value = value
    return result


def _classify(model: Model, request: Any, max_bytes: int) -> Any:
    with _lease(model, request.model_spec) as lease:
        signature = _signature(model, lease, request.model_spec)
        found = _classification(lease, signature, _examples(request.input))
        response = classification_pb2.ClassificationResponse(result=found)
        _describe(response.model_spec, model, lease, signature.key)
        return response


def _regress(model: Model, request: Any, max_bytes: int) -> Any:
    with _lease(model, request.model_spec) as lease:
        signature = _signature(model, lease, request.model_spec)
        found = _regression(lease, signature, _examples(request.input))
        response = regression_pb2.RegressionResponse(result=found)
        _describe(response.model_spec, model, lease, signature.key)
        return response


def _multi_inference(model: Model, request: Any, max_bytes: int) -> Any:
    if not request.tasks:
        raise invalid("Inference request must have at least one task.")
    examples = _examples(request.input)
    response = inference_pb2.MultiInferenceResponse()
    for task in request.tasks:
        with _lease(model, task.model_spec) as lease:
            signature = _signature(model, lease, task.model_spec)
            result = response.results.add()
            if task.method_name == constants.CLASSIFY_METHOD_NAME:
                result.classification_result.CopyFrom(_classification(lease, signature, examples))
            elif task.method_name == constants.REGRESS_METHOD_NAME:
                result.regression_result.CopyFrom(_regression(lease, signature, examples))
            else:
                raise errors.UnimplementedError(
                    None, None, f"Unsupported signature method_name: {task.method_name}"
                )
            _describe(result.model_spec, model, lease, signature.key)
    return response


def _metadata(model: Model, request: Any, max_bytes: int) -> Any:
    fields = list(request.metadata_field)
    if fields != ["signature_def"]:
        raise invalid(f"Metadata field must be signature_def, got: {', '.join(fields) or 'none'}")
    with _lease(model, request.model_spec) as lease:
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for key, each in lease.servable.signature_defs.items():
            signatures.signature_def[key].CopyFrom(each)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        _describe(response.model_spec, model, lease, "")
        response.metadata["signature_def"].CopyFrom(any_messages.pack(signatures))
        return response


# ---- ModelService and Health


def _status(model: Model, request: Any, max_bytes: int) -> Any:
    response = get_model_status_pb2.GetModelStatusResponse()
    for status in model.statuses(_name(request.model_spec), _version(request.model_spec)):
        each = response.model_version_status.add(version=status.number, state=int(status.state))
        each.status.SetInParent()
        if status.error is not None:
            each.status.error_code = status.error.error_code
            each.status.error_message = status.error.message
    return response


def _check(model: Model, request: Any, max_bytes: int) -> Any:
    if request.service not in ("", _PREDICTION, _MODEL):
        raise errors.NotFoundError(None, None, f"unknown service {request.service}")
    kinds = health_pb2.HealthCheckResponse
    return kinds(status=kinds.SERVING if model.is_available else kinds.NOT_SERVING)


METHODS = {
    f"/{_PREDICTION}/Predict": Method(predict_pb2.PredictRequest, _predict),
    f"/{_PREDICTION}/Classify": Method(classification_pb2.ClassificationRequest, _classify),
    f"/{_PREDICTION}/Regress": Method(regression_pb2.RegressionRequest, _regress),
    f"/{_PREDICTION}/MultiInference": Method(inference_pb2.MultiInferenceRequest, _multi_inference),
    f"/{_PREDICTION}/GetModelMetadata": Method(get_model_metadata_pb2.GetModelMetadataRequest, _metadata),
    f"/{_MODEL}/GetModelStatus": Method(get_model_status_pb2.GetModelStatusRequest, _status),
    f"/{_HEALTH}/Check": Method(health_pb2.HealthCheckRequest, _check),
}
