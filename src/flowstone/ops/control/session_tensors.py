"""Tensors that stay in a session: stored by one step, fetched as a handle, used by later steps.

A session keeps them in its `SessionTensors`, each under a text that names the node, a number and the device.
In a step a handle is that text, as a `StoredHandle`, which knows where its tensor is; who fetches it gets a
`TensorHandle`. A tensor is freed by `delete`, by a `DeleteSessionTensor` node, with its TensorHandle, or with
the session.

>>> tensors = SessionTensors()
>>> kept = tensors.add("Kept", "/device:CPU:0", dtypes.float32, torch.tensor([1.0, 2.0])).fetched()
>>> kept.handle, kept.eval()
('Kept;0;/device:CPU:0', array([1., 2.], dtype=float32))
>>> del kept
>>> len(tensors)
0
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

import numpy as np
import torch

from flowstone.framework import errors
from flowstone.framework.declarations.kernel import CPU, GPU, Environment, Kernel
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.graphs.graph_operation import Operation
from flowstone.framework.tensors.node import Node
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.values import to_numpy
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.arrays.constants import placeholder

__all__ = ["delete_session_tensor", "get_session_handle", "get_session_tensor"]

_STATE = "session tensors"  # among the objects that a session's kernels share


class StoredHandle(bytes):
    """The text of a handle, with the place where its tensor is."""

    tensors: SessionTensors
    dtype: DType

    def fetched(self) -> TensorHandle:
        """The one TensorHandle that users have of it."""
        return self.tensors.handle_of(self)


class SessionTensors:
    """The tensors that one session keeps, by the texts of their handles; safe for concurrent use."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._tensors: dict[bytes, Any] = {}
        self._handles: weakref.WeakValueDictionary[bytes, TensorHandle] = weakref.WeakValueDictionary()
        self._lock = threading.RLock()  # a collection may free a handle meanwhile
        self._released = False

    def __len__(self) -> int:
        return len(self._tensors)

    def add(self, name: str, device: str, dtype: DType, value: Any) -> StoredHandle:
        """Keeps `value`, which nobody changes any more; returns its handle."""
        handle = StoredHandle(f"{name};{next(self._numbers)};{device}".encode())
        handle.tensors, handle.dtype = self, dtype
        with self._lock:
            if not self._released:
                self._tensors[handle] = value
        return handle

    def get(self, handle: bytes) -> Any:
        """The tensor. InvalidArgumentError for another handle, RuntimeError after the session's end."""
        if self._released:
            raise RuntimeError("Attempted to use a closed Session.")
        try:
            return self._tensors[handle]
        except KeyError:
            raise invalid(f"The tensor with handle '{_text(handle)}' is not in the session store.") from None

    def delete(self, handle: bytes) -> None:
        """Frees the tensor. InvalidArgumentError for another handle."""
        if self._tensors.pop(handle, self) is self:
            raise invalid(f"Failed to delete a tensor with handle '{_text(handle)}' in the session store.")

    def discard(self, handle: bytes) -> None:
        """Frees the tensor if it is there."""
        self._tensors.pop(handle, None)

    def handle_of(self, handle: StoredHandle) -> TensorHandle:
        """The user's object for this handle, the same while it lives."""
        with self._lock:
            found = self._handles.get(handle)
            if found is None:
                found = self._handles[handle] = TensorHandle(handle)
            return found

    def release(self) -> None:
        """Frees all: the session ends."""
        with self._lock:
            self._released = True
            self._tensors.clear()


class NoSessionTensors(SessionTensors):
    """A cluster's sessions keep none, as TensorFlow's: FailedPreconditionError for any use."""

    def add(self, name: str, device: str, dtype: DType, value: Any) -> StoredHandle:
        raise _no_state("GetSessionHandle")

    def get(self, handle: bytes) -> Any:
        raise _no_state("GetSessionTensor")

    def delete(self, handle: bytes) -> None:
        raise _no_state("DeleteSessionTensor")


def _no_state(what: str) -> errors.FailedPreconditionError:
    return errors.FailedPreconditionError(None, None, f"{what} called on null session state")


def refuse_session_tensors(states: dict[str, Any]) -> None:
    """The session whose kernels share `states` is to keep no tensors."""
    states[_STATE] = NoSessionTensors()


class TensorHandle:
    """A tensor that stays in its session: what `run` returns for `tf.get_session_handle`.

    It can be fed in place of the tensor's value. The tensor is freed when this object is collected, unless
    `get_raw_handle` has been called, or by `delete`.
    """

    def __init__(self, handle: StoredHandle) -> None:
        self._handle = handle
        self._owns = True

    def __del__(self) -> None:
        if self._owns:
            self._handle.tensors.discard(self._handle)

    def __str__(self) -> str:
        return self.handle

    @property
    def handle(self) -> str:
        """The text that names the tensor, for `tf.get_session_tensor`."""
        return self._handle.decode()

    @property
    def dtype(self) -> DType:
        """The tensor's type."""
        return self._handle.dtype

    def get_raw_handle(self) -> str:
        """The text that names the tensor; from now on only a `tf.delete_session_tensor` node frees it."""
        self._owns = False
        return self.handle

    def eval(self) -> Any:
        """The tensor's value as an array. TypeError after `delete` or `get_raw_handle`, InvalidArgumentError
        if a step has deleted it.
        """
        self._check_owned()
        return self.to_numpy_array()[()]

    def to_numpy_array(self) -> Any:
        """The tensor's value as a NumPy array of its own, also where a step is fed with this handle."""
        return np.array(self._as_feed_value(self.dtype))

    def delete(self) -> None:
        """Frees the tensor. TypeError the second time."""
        self._check_owned()
        self._owns = False
        self._handle.tensors.delete(self._handle)

    def _check_owned(self) -> None:
        if not self._owns:
            raise TypeError(f"Persistent tensor {self.handle} may have already been deleted.")

    def _as_feed_value(self, dtype: DType) -> Any:
        """The array that is fed to a tensor of type `dtype`. InvalidArgumentError for another type."""
        value = self._handle.tensors.get(self._handle)
        if dtype is not self.dtype:
            raise invalid(f"Expected a tensor of {dtype.name}, but {self.handle} is one of {self.dtype.name}")
        return to_numpy(value.cpu() if isinstance(value, torch.Tensor) else value, dtype)


def _tensors_of(env: Environment) -> SessionTensors:
    found: SessionTensors = env.states.setdefault(_STATE, SessionTensors())
    return found


# ---- the ops: equal ones are not merged, for each tensor has a life of its own


def _add_kernel(node: Node, env: Environment) -> Kernel:
    tensors, dtype, is_resource = _tensors_of(env), node.dtype(0), node.type.endswith("V2")
    name = node.name.rpartition("/")[2]
    place = f"/job:localhost/replica:0/task:0/device:{env.device_type}:{env.device.index or 0}"

    def add(value: Any) -> Any:
        own = value.clone() if isinstance(value, torch.Tensor) else value.copy()  # of a variable, perhaps
        handle = tensors.add(name, place, dtype, own)
        return handle if is_resource else _scalar(handle)

    return add


def _text(handle: bytes | str) -> str:
    return handle if isinstance(handle, str) else handle.decode()


def _scalar(handle: bytes) -> Any:
    array = np.empty((), object)
    array[()] = handle
    return array


def _declare_handle(name: str, output: str) -> OpDeclaration:
    declaration = op(name, f"value: T -> handle: {output}", T=None, stateful=True, host=["handle"])
    declaration.infer(lambda node: ())
    declaration.kernel(CPU, GPU)(_add_kernel)
    return declaration.not_differentiable()


get_session_handle_op = _declare_handle("GetSessionHandle", "string")
get_session_handle_v2_op = _declare_handle("GetSessionHandleV2", "resource")

get_session_tensor_op = op(
    "GetSessionTensor",
    "handle: string -> value: dtype",
    dtype=None,
    stateful=True,
    overlapping=True,  # others may read the same tensor
    host=["handle"],
)
get_session_tensor_op.not_differentiable()


def _check_scalar(node: Node) -> None:
    dims = node.dims(0)
    if dims:
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")


@get_session_tensor_op.infer
def _(node: Node) -> None:
    _check_scalar(node)


@get_session_tensor_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    tensors, dtype, device = _tensors_of(env), node.attributes["dtype"], env.device

    def get(handle: Any) -> Any:
        value = tensors.get(handle[()])
        if isinstance(value, torch.Tensor):
            if value.dtype is dtype.torch:
                return value.to(device)
            found = str(value.dtype).removeprefix("torch.")
        else:
            found = "string"
            if dtype is dtypes.string:
                return value
        raise errors.InternalError(
            None, None, f"Output 0 of type {found} does not match declared output type {dtype.name}"
        )

    return get


delete_session_tensor_op = op("DeleteSessionTensor", "handle: string ->", stateful=True, host=["handle"])
delete_session_tensor_op.infer(_check_scalar)
delete_session_tensor_op.not_differentiable()


@delete_session_tensor_op.kernel(CPU, GPU)
def _(node: Node, env: Environment) -> Kernel:
    tensors = _tensors_of(env)
    return lambda handle: tensors.delete(handle[()])


# ---- public functions


def get_session_handle(data: Any, name: str | None = None) -> Tensor:
    """A scalar string; who fetches it gets a `TensorHandle`: the value of `data` stays in the session.

    Feeding the handle for a placeholder of that type, or `get_session_tensor`, gives the value to a later
    step without leaving the device's memory where that is possible. Raises TypeError if `data` is no tensor
    and cannot become one.
    """
    value = convert_to_tensor(data)
    with get_default_graph().colocate_with(value):
        return get_session_handle_op(value, name=name)


def get_session_tensor(handle: Any, dtype: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(holder, value): `value` is the tensor of type `dtype` whose handle's text is fed for `holder`.

    `handle`: the text of one such handle (`TensorHandle.handle`), which tells the device. A step raises
    InvalidArgumentError if the text fed is no handle of its session, InternalError for another type.
    """
    with get_default_graph().device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, get_session_tensor_op(holder, dtype=dtypes.as_dtype(dtype), name=name)


def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """(holder, deleter): the operation `deleter` frees the tensor whose handle's text is fed for `holder`.

    `handle`: the text of one such handle, which tells the device. A step raises InvalidArgumentError if the
    text fed is no handle of its session.
    """
    with get_default_graph().device(_device_of(handle)):
        holder = placeholder(dtypes.string)
        return holder, delete_session_tensor_op.operation(holder, name=name)


def _device_of(handle: Any) -> str:
    return _text(handle).rpartition(";")[2]
