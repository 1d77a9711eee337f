"""The REST API: what each request is told."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.serving.json_tensors import array_of, value_of
from flowstone.serving.rest import Request, answer

PATH = "/v1/models/half"


def ask(model: Any, what: str, body: Any, status: int = 200) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = answer(model, Request("POST", f"{PATH}{what}", content))
    assert response.status == status, response.body
    return json.loads(response.body)


def get(model: Any, path: str, status: int = 200) -> Any:
    response = answer(model, Request("GET", path))
    assert response.status == status
    return json.loads(response.body)


# ---- predict


@pytest.mark.parametrize("what", [":predict", "/versions/3:predict"])
def test_rows_of_the_only_input(model: Any, what: str) -> None:
    assert ask(model, what, {"instances": [1.0, 2, 5.0]}) == {"predictions": [2.5, 3.0, 4.5]}
    assert ask(model, what, {"instances": [{"x": 1.0}]}) == {"predictions": [2.5]}


def test_columns_of_the_only_input(model: Any) -> None:
    assert ask(model, ":predict", {"inputs": [1.0, 2.0]}) == {"outputs": [2.5, 3.0]}
    assert ask(model, ":predict", {"inputs": {"x": [1.0]}}) == {"outputs": [2.5]}


def test_several_inputs_and_outputs(model: Any) -> None:
    rows = [{"a": [1, 2], "b": 3}, {"a": [0.5, 0], "b": -1}]
    found = ask(model, ":predict", {"signature_name": "pair", "instances": rows})
    assert found == {"predictions": [{"double": 6, "total": 6.0}, {"double": -2, "total": -0.5}]}
    columns = {"a": [[1, 2], [0.5, 0]], "b": [3, -1]}
    found = ask(model, ":predict", {"signature_name": "pair", "inputs": columns})
    assert found == {"outputs": {"double": [6, -2], "total": [6.0, -0.5]}}


def test_an_output_without_rows_is_a_column(model: Any) -> None:
    body = {"signature_name": "mean", "inputs": [1.0, 2.0]}
    assert ask(model, ":predict", body) == {"outputs": 1.5}
    body = {"signature_name": "mean", "instances": [1.0, 2.0]}
    assert "no common first axis" in ask(model, ":predict", body, 400)["error"]


def test_strings_and_bytes(model: Any) -> None:
    raw = {"b64": base64.b64encode(b"\xff\x00").decode()}
    found = ask(model, ":predict", {"signature_name": "words", "instances": ["é", raw]})
    again = {"b64": base64.b64encode(b"\xff\x00!").decode()}
    assert found["predictions"] == [
        {"again": "é!", "raw_bytes": {"b64": "w6k="}},
        {"again": again, "raw_bytes": raw},
    ]


def test_one_string(model: Any) -> None:
    sent = {"b64": base64.b64encode(b"a\x00").decode()}
    assert ask(model, ":predict", {"signature_name": "first", "inputs": [sent]}) == {"outputs": sent}


def test_numbers_that_json_lacks(model: Any) -> None:
    found = ask(model, ":predict", b'{"instances": [NaN, Infinity, -Infinity]}')["predictions"]
    np.testing.assert_array_equal(found, [np.nan, np.inf, -np.inf])


# ---- classify and regress


def test_classification(model: Any) -> None:
    body = {"signature_name": "classify", "examples": [{"x": 1.0}, {"x": 2.0}]}
    assert ask(model, ":classify", body) == {
        "result": [[["low", -1.5], ["high", 2.5]], [["low", -2.0], ["high", 3.0]]]
    }
    body["signature_name"] = "scores"
    assert ask(model, ":classify", body)["result"][0] == [["", -1.5], ["", 2.5]]


def test_regression_with_a_context(model: Any) -> None:
    body = {
        "signature_name": "regress",
        "context": {"x": 4.0},
        "examples": [{}, {"x": [1.0]}, {"other": "é"}],
    }
    assert ask(model, ":regress", body) == {"result": [4.0, 2.5, 4.0]}


def test_examples_may_be_predicted(model: Any) -> None:
    found = ask(model, ":predict", {"signature_name": "regress", "instances": [{"b64": ""}]})
    assert found == {"predictions": [2.0]}


# ---- what there is


def test_status(model: Any) -> None:
    status = {"error_code": "OK", "error_message": ""}
    expected = {"model_version_status": [{"version": "3", "state": "AVAILABLE", "status": status}]}
    assert get(model, PATH) == expected
    assert get(model, f"{PATH}/versions/3") == expected
    assert "Could not find" in get(model, f"{PATH}/versions/4", 404)["error"]
    assert get(model, "/healthz") == {"status": "ok"}


def test_metadata(model: Any) -> None:
    found = get(model, f"{PATH}/metadata")
    assert found["model_spec"] == {"name": "half", "signature_name": "", "version": "3"}
    signature = found["metadata"]["signature_def"]["signature_def"]["serving_default"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert signature["inputs"] == {"x": {"dtype": "DT_FLOAT", "tensor_shape": shape, "name": "x:0"}}


# ---- what is refused


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "JSON Parse error"),
        (b"{", 400, "JSON Parse error"),
        (b"[1]", 400, "must be an object"),
        (b"\xff\xfe", 400, "JSON Parse error"),
        (b"[" * 100_000, 400, "too deep"),
        (b'{"instances": [' + b"9" * 6000 + b"]}", 400, ""),
        ({}, 400, "either 'instances' or 'inputs'"),
        ({"instances": [1.0], "inputs": [1.0]}, 400, "either 'instances' or 'inputs'"),
        ({"instances": []}, 400, "must be a list that is not empty"),
        ({"instances": 3}, 400, "must be a list that is not empty"),
        ({"instances": ["a"]}, 400, "'x' is expected to hold float32 values, but has a string"),
        ({"instances": [True]}, 400, "a truth value"),
        ({"instances": [None]}, 400, "null"),
        ({"instances": [[1.0]]}, 400, "'x' has the shape [1,1], which does not fit [?]"),
        ({"instances": [[1.0], [1.0, 2.0]]}, 400, "differ in length at depth 1"),
        ({"instances": [1.0, [1.0]]}, 400, "a list beside a value"),
        ({"instances": [{"x": 1.0}, 2.0]}, 400, "either all objects or all values"),
        ({"instances": [{"x": 1.0}, {"y": 2.0}]}, 400, "Instance 1 has the inputs ['y']"),
        ({"instances": [{"y": 1.0}]}, 400, "Sent extra: {y}. Missing but required: {x}."),
        ({"inputs": {}}, 400, "Missing but required: {x}"),
        ({"inputs": 1.0}, 400, "has the shape []"),
        ({"signature_name": "none", "instances": [1.0]}, 400, 'signature key "none" not found'),
        ({"signature_name": 3, "instances": [1.0]}, 400, "must be a string"),
        ({"signature_name": "pair", "instances": [1.0]}, 400, "must name the inputs"),
        ({"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [1.0]}}, 400, "a decimal number"),
        (
            {"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [2**31]}},
            400,
            "out of the range of int32",
        ),
        ({"signature_name": "words", "instances": [{"b64": "*"}]}, 400, "not base64"),
        ({"signature_name": "words", "inputs": [{"b32": "a"}]}, 400, "not of the form"),
    ],
)
def test_bad_predictions(model: Any, body: Any, status: int, message: str) -> None:
    assert message in ask(model, ":predict", body, status)["error"]
    assert ask(model, ":predict", {"instances": [1.0]}) == {"predictions": [2.5]}


@pytest.mark.parametrize(
    ("what", "body", "message"),
    [
        (":classify", {"examples": [{"x": 1.0}]}, "Expected classify signature method_name"),
        (
            ":regress",
            {"signature_name": "classify", "examples": [{}]},
            "Expected regress signature method_name",
        ),
        (":regress", {"signature_name": "regress"}, "'examples' must be a list"),
        (":regress", {"signature_name": "regress", "examples": [3]}, "example 0 must be an object"),
        (":regress", {"signature_name": "regress", "examples": [{"x": None}]}, "feature 'x' must be"),
        (":regress", {"signature_name": "regress", "examples": [{"x": [1, "a"]}]}, "feature 'x' must be"),
        (":regress", {"signature_name": "regress", "examples": [{"x": 2**63}]}, "out of range"),
        (":regress", {"signature_name": "regress", "examples": [{"x": 2}]}, "x"),
        (":regress", {"signature_name": "regress", "context": 1, "examples": [{}]}, "the context must be"),
    ],
)
def test_bad_examples(model: Any, what: str, body: Any, message: str) -> None:
    assert message in ask(model, what, body, 400)["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "/v1/models/other:predict", 404),
        ("POST", "/v1/models/half/versions/2:predict", 404),
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/other/metadata", 404),
        ("GET", "/v1/models/half:predict", 400),
        ("POST", "/v1/models/half", 400),
        ("POST", "/v1/models/half:guess", 400),
        ("GET", "/", 400),
        ("POST", "/healthz", 400),
    ],
)
def test_bad_paths(model: Any, method: str, path: str, status: int) -> None:
    response = answer(model, Request(method, path, b'{"instances": [1.0]}'))
    assert response.status == status
    assert set(json.loads(response.body)) == {"error"}


# ---- tensors in JSON


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (dtypes.float16, [[0.1, 2.0]]),
        (dtypes.bfloat16, [1.5]),
        (dtypes.float32, 0.1),
        (dtypes.float64, [0.1, 1e300]),
        (dtypes.bool, [True, False]),
        (dtypes.uint8, [0, 255]),
        (dtypes.int64, [-(2**63), 2**63 - 1]),
        (dtypes.uint64, [2**64 - 1]),
        (dtypes.float32, [[], []]),
        (dtypes.string, [["a"], ["b"]]),
    ],
)
def test_values_come_back(dtype: Any, value: Any) -> None:
    array = array_of("x", value, dtype)
    assert array.dtype == np.dtype(dtype.as_numpy_dtype)
    found = value_of("x", array, dtype)
    if dtype is dtypes.float16:
        np.testing.assert_allclose(found, value, rtol=1e-3)
    else:
        assert found == value


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        (dtypes.uint8, [256], "out of the range of uint8: 256"),
        (dtypes.uint8, [-1], "out of the range of uint8: -1"),
        (dtypes.float32, [10**400], "out of the range of float32"),
        (dtypes.complex64, [1.0], "which JSON cannot express"),
        (dtypes.float32, json.loads("[" * 40 + "]" * 40), "more than 32 dimensions"),
    ],
)
def test_values_that_are_refused(dtype: Any, value: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        array_of("x", value, dtype)
