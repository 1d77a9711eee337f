"""TensorFlow Serving's REST API without sockets: `answer(model, request)` gives the status and the JSON.

    POST /v1/models/NAME[/versions/N]:predict     :classify     :regress
    GET  /v1/models/NAME[/versions/N]             the states of the versions
    GET  /v1/models/NAME[/versions/N]/metadata    the signatures
    GET  /healthz                                 200 while a version is served, else 503

Whatever goes wrong is ``{"error": "…"}`` with HTTP's status for the error's code.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import messages
from flowstone.serving.inference import classify, invalid, predict, regress
from flowstone.serving.json_examples import examples_of
from flowstone.serving.json_tensors import (
    column_outputs,
    inputs_of_columns,
    inputs_of_rows,
    row_outputs,
    value_of,
)
from flowstone.serving.model import Lease, Model

__all__ = ["Request", "Response", "answer", "error_response"]

_PATH = re.compile(
    r"/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[0-9]{1,19}))?"
    r"(?:(?P<get>/metadata)?|:(?P<post>predict|classify|regress))"
)
_HTTP_STATUS = {
    errors.CANCELLED: 499,
    errors.INVALID_ARGUMENT: 400,
    errors.DEADLINE_EXCEEDED: 504,
    errors.NOT_FOUND: 404,
    errors.ALREADY_EXISTS: 409,
    errors.PERMISSION_DENIED: 403,
    errors.RESOURCE_EXHAUSTED: 429,
    errors.FAILED_PRECONDITION: 400,
    errors.ABORTED: 409,
    errors.OUT_OF_RANGE: 400,
    errors.UNIMPLEMENTED: 501,
    errors.UNAVAILABLE: 503,
    errors.UNAUTHENTICATED: 401,
}


class Request(NamedTuple):
    """What a client asks; the path is without query."""

    method: str
    path: str
    body: bytes = b""


class Response(NamedTuple):
    """What it is told, always JSON; `failure` is what the server itself did wrong, for its log."""

    status: int
    body: bytes
    failure: str = ""


def answer(model: Model, request: Request) -> Response:
    """The response to a request. Raises nothing."""
    try:
        if request.path == "/healthz" and request.method == "GET":
            available = model.is_available
            return _json({"status": "ok" if available else "no version is served"}, 200 if available else 503)
        return _json(_answered(model, request))
    except errors.OpError as error:
        return error_response(error)
    except MemoryError:
        return error_response(errors.ResourceExhaustedError(None, None, "The request needs too much memory."))
    except Exception as error:  # a fault of ours must not end the server
        return error_response(errors.InternalError(None, None, f"{type(error).__name__}: {error}"))


def error_response(error: errors.OpError) -> Response:
    """The response that tells a client of an error."""
    status = _HTTP_STATUS.get(error.error_code, 500)
    body = json.dumps({"error": error.message}).encode()
    return Response(status, body, error.message if status == 500 else "")


def _json(value: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(value, separators=(",", ":")).encode())


def _answered(model: Model, request: Request) -> Any:
    match = _PATH.fullmatch(request.path)
    if match is None or request.method != ("POST" if match["post"] else "GET"):
        raise invalid(f"Malformed request: {request.method} {request.path}")
    name = match["name"]
    version = int(match["version"]) if match["version"] else None
    if match["post"]:
        with model.lease(name, version) as lease:
            return _INFERENCES[match["post"]](model, lease, _body(request.body))
    if match["get"]:
        with model.lease(name, version) as lease:
            return _metadata(name, lease)
    return _status(model, name, version)


# ---- inference


def _body(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except RecursionError:
        raise invalid("JSON Parse error: the lists are too deep.") from None
    except ValueError as error:  # no UTF-8, no JSON, or an integer of thousands of digits
        raise invalid(f"JSON Parse error: {error}") from None
    if not isinstance(parsed, dict):
        raise invalid("JSON Parse error: the request must be an object.")
    return parsed


def _signature(model: Model, lease: Lease, body: dict[str, Any]) -> Any:
    name = body.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid("'signature_name' must be a string.")
    return lease.servable.signature(name or model.signature_name)


def _predict(model: Model, lease: Lease, body: dict[str, Any]) -> Any:
    if ("instances" in body) == ("inputs" in body):
        raise invalid("The request must have either 'instances' or 'inputs'.")
    signature = _signature(model, lease, body)
    if "instances" in body:
        outputs = predict(lease.servable, signature, inputs_of_rows(body["instances"], signature))
        return {"predictions": row_outputs(outputs, signature)}
    outputs = predict(lease.servable, signature, inputs_of_columns(body["inputs"], signature))
    return {"outputs": column_outputs(outputs, signature)}


def _classify(model: Model, lease: Lease, body: dict[str, Any]) -> Any:
    examples = examples_of(body)
    labels, scores = classify(lease.servable, _signature(model, lease, body), examples)
    shape = next(found.shape for found in (labels, scores) if found is not None)
    rows, count = shape
    texts = [[""] * count] * rows if labels is None else value_of("classes", labels, dtypes.string)
    numbers = [[0.0] * count] * rows if scores is None else value_of("scores", scores, dtypes.float32)
    pairs = zip(texts, numbers, strict=True)
    return {"result": [[list(pair) for pair in zip(*row, strict=True)] for row in pairs]}


def _regress(model: Model, lease: Lease, body: dict[str, Any]) -> Any:
    examples = examples_of(body)
    values = regress(lease.servable, _signature(model, lease, body), examples)
    return {"result": value_of("outputs", values, dtypes.float32)}


_INFERENCES = {"predict": _predict, "classify": _classify, "regress": _regress}


# ---- what there is


def _status(model: Model, name: str, version: int | None) -> Any:
    return {
        "model_version_status": [
            {
                "version": str(status.number),
                "state": status.state.name,
                "status": {
                    "error_code": _code_name(status.error.error_code) if status.error else "OK",
                    "error_message": status.error.message if status.error else "",
                },
            }
            for status in model.statuses(name, version)
        ]
    }


def _code_name(code: int) -> str:
    words = re.findall("[A-Z][a-z]*", errors.exception_type_from_error_code(code).__name__)
    return "_".join(words[:-1]).upper()


def _metadata(name: str, lease: Lease) -> Any:
    signatures = {key: _signature_json(each) for key, each in sorted(lease.servable.signature_defs.items())}
    return {
        "model_spec": {"name": name, "signature_name": "", "version": str(lease.number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _signature_json(signature: Any) -> dict[str, Any]:
    return {
        "inputs": {key: _info_json(info) for key, info in sorted(signature.inputs.items())},
        "outputs": {key: _info_json(info) for key, info in sorted(signature.outputs.items())},
        "method_name": signature.method_name,
    }


def _info_json(info: Any) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in info.tensor_shape.dim]
    return {
        "dtype": messages("types_pb2").DataType.Name(info.dtype),
        "tensor_shape": {"dim": dims, "unknown_rank": info.tensor_shape.unknown_rank},
        "name": info.name,
    }
