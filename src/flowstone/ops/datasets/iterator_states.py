"""The state of a pass over a dataset as bytes, which a checkpoint keeps, and back.

A state is a tuple, list or dict of such, a number, text, bytes or None, or a value: a tensor or an array. The
bytes are JSON. What JSON has no form for is an object of one key, which says what it is:

    {"t": [...]}     a tuple              {"b": "..."}    bytes, in base64
    {"d": [[k, v]]}  a dict               {"v": "..."}    a value, as the bytes of a TensorProto in base64
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import array_proto, make_ndarray, messages
from flowstone.framework.types.values import to_numpy, to_runtime

__all__ = ["decode_state", "encode_state"]


def encode_state(state: Any) -> bytes:
    """The bytes of a state. UnimplementedError for a state that holds anything else than the above."""
    return json.dumps(_encoded(state)).encode()


def decode_state(data: bytes) -> Any:
    """The state that `encode_state` gave `data` for. DataLossError for other bytes."""
    try:
        return _decoded(json.loads(data))
    except errors.OpError:
        raise
    except Exception as error:
        raise errors.DataLossError(
            None, None, f"These bytes are not the state of an iterator: {error}"
        ) from error


def _encoded(state: Any) -> Any:
    if state is None or isinstance(state, (bool, int, float, str)):
        return state
    if isinstance(state, bytes):
        return {"b": base64.b64encode(state).decode()}
    if isinstance(state, tuple):
        return {"t": [_encoded(item) for item in state]}
    if isinstance(state, list):
        return [_encoded(item) for item in state]
    if isinstance(state, dict):
        return {"d": [[_encoded(key), _encoded(value)] for key, value in state.items()]}
    if isinstance(state, np.generic):
        return _encoded(state.item())
    if isinstance(state, (torch.Tensor, np.ndarray)):
        return {"v": base64.b64encode(_message(state)).decode()}
    raise errors.UnimplementedError(
        None, None, f"The state of this iterator cannot be saved: it holds a {type(state).__name__}"
    )


def _message(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        dtype = dtypes.string if value.dtype == object else dtypes.as_dtype(value.dtype)
    else:
        dtype = dtypes.as_dtype(value.dtype)
        value = to_numpy(value, dtype)
    found: bytes = array_proto(value, dtype).SerializeToString()
    return found


def _decoded(form: Any) -> Any:
    if isinstance(form, list):
        return [_decoded(item) for item in form]
    if not isinstance(form, dict):
        return form
    ((kind, content),) = form.items()
    if kind == "t":
        return tuple(_decoded(item) for item in content)
    if kind == "d":
        return {_decoded(key): _decoded(value) for key, value in content}
    data = base64.b64decode(content, validate=True)
    if kind == "b":
        return data
    message = messages("tensor_pb2").TensorProto()
    message.ParseFromString(data)
    return to_runtime(make_ndarray(message), dtypes.as_dtype(message.dtype))
