"""`Servable`: a version of a model in a session, and what its signatures take and give.

    servable = Servable("/models/half/1", ["serve"])
    signature = servable.signature("serving_default")
    servable.run(signature, {"x": np.ones([2])}, ["y"])     # {"y": array([...])}

Many threads may run it at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowstone.client.session import Session
from flowstone.framework import errors
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.types import dtypes
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims
from flowstone.saved_model.loader import load
from flowstone.serving.batching import Batches, BatchOptions

__all__ = ["Servable", "Signature", "TensorSpec"]

Array = np.ndarray[Any, Any]


class TensorSpec(NamedTuple):
    """A tensor of a signature: its name in the graph, its type, its static shape."""

    name: str
    dtype: DType
    dims: Dims


class Signature(NamedTuple):
    """What a signature takes and gives, by its own names."""

    key: str
    method: str
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]

    @property
    def is_batched(self) -> bool:
        """Whether the first axis of everything counts examples, as far as the shapes tell."""
        specs = [*self.inputs.values(), *self.outputs.values()]
        return all(spec.dims is None or (len(spec.dims) > 0 and spec.dims[0] is None) for spec in specs)


class Servable:
    """A SavedModel's graph with these tags, loaded and ready. Raises what `loader.load` raises."""

    def __init__(self, folder: str, tags: Iterable[str], batching: BatchOptions | None = None) -> None:
        self._graph = Graph()
        with self._graph.as_default():
            self._session = Session(graph=self._graph)
            try:
                meta = load(self._session, tags, folder, clear_devices=True)
            except BaseException:
                self._session.close()
                raise
        self.signature_defs: dict[str, Any] = dict(meta.signature_def)
        self._batching = batching or BatchOptions()
        self._lock = threading.Lock()
        self._signatures: dict[str, Signature] = {}
        self._runners: dict[tuple[Any, ...], Callable[..., list[Array]]] = {}

    def signature(self, key: str) -> Signature:
        """The signature of this key. FailedPreconditionError if there is none, UnimplementedError if one of
        its tensors is not a dense one."""
        found = self._signatures.get(key)
        if found is None:
            if key not in self.signature_defs:
                known = ", ".join(sorted(self.signature_defs)) or "none"
                message = f'Serving signature key "{key}" not found. The model has: {known}.'
                raise errors.FailedPreconditionError(None, None, message)
            found = self._signatures[key] = _signature(key, self.signature_defs[key])
        return found

    def run(
        self, signature: Signature, inputs: Mapping[str, Array], outputs: Sequence[str]
    ) -> dict[str, Array]:
        """The outputs of a signature for inputs that fit it. Raises the errors of the step."""
        names = tuple(sorted(inputs))
        key = (signature.key, names, tuple(outputs))
        run = self._runners.get(key)
        if run is None:
            run = self._runner(key, signature)
        return dict(zip(outputs, run([inputs[name] for name in names]), strict=True))

    def _runner(self, key: tuple[Any, ...], signature: Signature) -> Callable[..., list[Array]]:
        _, inputs, outputs = key
        with self._lock:
            if key in self._runners:
                return self._runners[key]
            step = self._session.make_callable(
                [signature.outputs[name].name for name in outputs],
                [self._graph.as_graph_element(signature.inputs[name].name) for name in inputs],
            )

            def run(arrays: Sequence[Array]) -> list[Array]:
                return [_as_array(value) for value in step(*arrays)]

            batched = self._batching.max_batch_size > 1 and signature.is_batched
            self._runners[key] = Batches(run, self._batching) if batched else run
            return self._runners[key]

    def close(self) -> None:
        """Ends the session."""
        self._session.close()


def _as_array(value: Any) -> Array:
    if isinstance(value, bytes):  # NumPy's own strings of bytes end before the first zero from behind
        array = np.empty((), dtype=object)
        array[()] = value
        return array
    return np.asarray(value)


def _signature(key: str, message: Any) -> Signature:
    return Signature(
        key,
        message.method_name,
        {name: _spec(key, name, info) for name, info in message.inputs.items()},
        {name: _spec(key, name, info) for name, info in message.outputs.items()},
    )


def _spec(key: str, name: str, info: Any) -> TensorSpec:
    if info.WhichOneof("encoding") not in ("name", None):
        message = f"'{name}' of the signature '{key}' is not a dense tensor; only those can be served."
        raise errors.UnimplementedError(None, None, message)
    shape = info.tensor_shape
    dims = (
        None if shape.unknown_rank else tuple([None if dim.size < 0 else int(dim.size) for dim in shape.dim])
    )
    return TensorSpec(info.name, dtypes.as_dtype(info.dtype or dtypes.float32.as_datatype_enum), dims)
