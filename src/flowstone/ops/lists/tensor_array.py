"""`TensorArray`: a list of tensors whose elements a graph writes once and reads, mostly inside loops.

>>> import flowstone as tf
>>> with tf.Graph().as_default(), tf.Session() as session:
...     squares = tf.TensorArray(tf.float32, size=2).write(0, 1.0).write(1, 4.0)
...     session.run(squares.stack())
array([1., 4.], dtype=float32)

An array in the graph is a *handle* and a *flow* (`tensor_array_ops.py`); a method that writes returns a new
`TensorArray` with the flow after the write, which is the one to go on with. A loop carries the flow.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from flowstone.framework.declarations.operation import F
from flowstone.framework.graphs.graph import Operation
from flowstone.framework.tensors.node import static_value
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import Dims, TensorShape, as_shape, is_compatible, merge
from flowstone.ops.arrays.constants import range as sequence
from flowstone.ops.arrays.identities import identity
from flowstone.ops.arrays.shapes import shape
from flowstone.ops.numbers.casts import cast

__all__ = ["TensorArray"]


class TensorArray:
    """A list of tensors of one type, written once a slot.

    Writing the same slot twice, reading one that was never written (unless the element shape is known: zeros)
    or, with `clear_after_read`, reading one twice is an InvalidArgumentError in the step.
    """

    _is_tensor_array = True  # what carries it through a loop takes its flow

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Any = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """An array of `size` (int32 scalar) slots, or, with `handle` and `flow`, one that exists.

        `dynamic_size`: a write past the end makes it longer. `clear_after_read` (default True): an element
        can be read once, and is freed then. `infer_shape`: all elements have one static shape,
        `element_shape` or that of the first write, and are checked for it. `colocate_with_first_write_call`:
        the array lives where the first value that is written does.

        Raises ValueError for a handle together with arguments of a new array, or neither.
        """
        self._dtype = dtypes.as_dtype(dtype).base_dtype
        self._dynamic_size = dynamic_size or False
        self._infer_shape = infer_shape
        self._shape: list[Dims] = [None if element_shape is None else as_shape(element_shape).dims_tuple]
        self._colocates = colocate_with_first_write_call
        self._home: list[Any] = []  # what the array is placed with; shared by all that write to it
        if handle is None:
            self._create(size, dynamic_size, clear_after_read, tensor_array_name, name)
            return
        if flow is None:
            raise ValueError("flow must not be None if handle is not None.")
        new = {
            "size": size,
            "dynamic_size": dynamic_size,
            "clear_after_read": clear_after_read,
            "tensor_array_name": tensor_array_name,
        }
        for argument, value in new.items():
            if value is not None:
                some = "a `handle` and `size`" if argument == "size" else f"`handle` and `{argument}`"
                raise ValueError(f"Cannot provide both {some} arguments at the same time.")
        if not isinstance(handle, Tensor):
            raise TypeError(
                f"Expected `handle` to be a Tensor, but got `{handle}` of type `{type(handle)}` instead."
            )
        self._handle, self._flow = handle, convert_to_tensor(flow, dtypes.float32)

    def _create(
        self, size: Any, dynamic: bool | None, clears: bool | None, array_name: str | None, name: str | None
    ) -> None:
        if size is None:
            raise ValueError("Argument `size` must be provided if handle is not provided.")
        graph = get_default_graph()
        with contextlib.ExitStack() as stack:
            scope = stack.enter_context(graph.name_scope(name or "TensorArray"))
            if self._colocates:  # it gets its place with the first write
                stack.enter_context(graph.device(None))
                stack.enter_context(graph.colocate_with(None, ignore_existing=True))
            self._handle, self._flow = F.TensorArrayV3(
                size,
                dtype=self._dtype,
                element_shape=self._shape[0],
                identical_element_shapes=self._infer_shape,
                dynamic_size=self._dynamic_size,
                clear_after_read=True if clears is None else clears,
                tensor_array_name=array_name or "",
                name=scope,
            )

    # ---- what it is

    @property
    def dtype(self) -> dtypes.DType:
        """The type of the elements."""
        return self._dtype

    @property
    def dynamic_size(self) -> bool:
        """Whether it was made to grow."""
        return self._dynamic_size

    @property
    def element_shape(self) -> TensorShape:
        """The static shape of an element, as far as it is known."""
        return TensorShape.from_dims(self._shape[0])

    @property
    def handle(self) -> Tensor:
        """The resource that stands for the array."""
        return self._handle

    @property
    def flow(self) -> Tensor:
        """The float32 scalar that orders what happens to the array."""
        return self._flow

    def _with_flow(self, flow: Any) -> TensorArray:
        """The same array after `flow`."""
        array = TensorArray.__new__(TensorArray)
        array.__dict__.update(self.__dict__)
        array._flow = flow
        return array

    def identity(self) -> TensorArray:
        """The same array; inside ``control_dependencies`` one whose contents wait for them."""
        return self._with_flow(identity(self._flow))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32 scalar."""
        return F.TensorArraySizeV3(self._handle, self._flow, name=name)

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """The array of gradients of this one that the computation named `source` fills.

        It has this one's size, which is fixed from then on. Several writes to one slot add up.
        """
        flow = self._flow if flow is None else flow
        graph = flow.graph
        with graph.name_scope(name or "TensorArrayGrad"), graph.colocate_with(self._handle):
            handle, _ = F.TensorArrayGradV3(self._handle, flow, source=source, name=name)
            with graph.control_dependencies([handle]):
                flow = identity(flow, name="gradient_flow")
            return TensorArray(
                self._dtype,
                handle=handle,
                flow=flow,
                infer_shape=self._infer_shape,
                element_shape=self._shape[0] if self._shape[0] is None else self.element_shape,
                colocate_with_first_write_call=False,
            )

    def close(self, name: str | None = None) -> Operation:
        """An operation that drops the elements, in the middle of a step."""
        return F.TensorArrayCloseV3.operation(self._handle, name=name)

    # ---- one element

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`, an int32 scalar."""
        value = F.TensorArrayReadV3(self._handle, index, self._flow, dtype=self._dtype, name=name)
        return self._told(value, self._shape[0])

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Puts `value` into slot `index` (int32 scalar); use the returned array from then on.

        ValueError for a static shape that contradicts the elements'.
        """
        with get_default_graph().name_scope(name or "TensorArrayWrite"):
            value = self._converted(value)
            self._note_element(value.dims)
            with self._where_written(value):
                flow = F.TensorArrayWriteV3(self._handle, index, value, self._flow, name=name)
        return self._with_flow(flow)

    # ---- many elements

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, which must be of one shape, joined along a new first axis."""
        graph = self._handle.graph
        with graph.colocate_with(self._handle), graph.name_scope(name or "TensorArrayStack"):
            return self.gather(sequence(0, self.size()), name=name)

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices` (int32 vector), joined along a new first axis."""
        dims = self._shape[0]
        value = F.TensorArrayGatherV3(
            self._handle, indices, self._flow, dtype=self._dtype, element_shape=dims, name=name
        )
        return self._told(value, None if dims is None else (None, *dims))

    def concat(self, name: str | None = None) -> Tensor:
        """All elements joined along their first axis, in which alone they may differ."""
        known = self._shape[0]
        rest = None if known is None else known[1:]
        value: Tensor = F.TensorArrayConcatV3.several(
            self._handle, self._flow, dtype=self._dtype, element_shape_except0=rest, name=name
        )[0]
        if not known:  # scalars, of which the step says that they cannot be joined, if there are any
            return value
        creation, length = self._handle.op, known[0]
        is_fixed = creation.type == "TensorArrayV3" and not self._dynamic_size
        count = static_value(creation.inputs[0]) if is_fixed else None
        first = None if count is None or length is None else int(count) * length
        return self._told(value, (first, *known[1:]))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """Writes the rows of `value`, [size, ...], to the slots; use the returned array from then on."""
        with get_default_graph().name_scope(name or "TensorArrayUnstack"):
            count = shape(value)[0]
            return self.scatter(sequence(0, count), value, name=name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """Writes the rows of `value` to the slots `indices` (int32 vector); use the returned array from then
        on.
        """
        with get_default_graph().name_scope(name or "TensorArrayScatter"):
            value = self._converted(value)
            self._note_element(None if value.dims is None else value.dims[1:])
            with self._where_written(value):
                flow = F.TensorArrayScatterV3(self._handle, indices, value, self._flow, name=name)
        return self._with_flow(flow)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Writes as many rows of `value` as `lengths` (integer vector, [size]) says to each slot, in order;
        use the returned array from then on.
        """
        with get_default_graph().name_scope(name or "TensorArraySplit"):
            value = self._converted(value)
            with self._where_written(value):
                lengths = cast(lengths, dtypes.int64)
                if self._infer_shape:
                    self._note_element(_part_dims(value.dims, static_value(lengths)))
                flow = F.TensorArraySplitV3(self._handle, value, lengths, self._flow, name=name)
        return self._with_flow(flow)

    # ---- what the methods share

    def _converted(self, value: Any) -> Tensor:
        return convert_to_tensor(value, name="value", preferred_dtype=self._dtype)

    def _note_element(self, dims: Dims) -> None:
        """Learns the element shape from a value that is written. ValueError if it contradicts."""
        known = self._shape[0]
        if not is_compatible(known, dims):
            raise ValueError(
                f"Inconsistent shapes: saw {TensorShape.from_dims(dims)} but expected "
                f"{TensorShape.from_dims(known)} "
            )
        if self._infer_shape:
            self._shape[0] = merge(known, dims)

    def _where_written(self, value: Tensor) -> contextlib.AbstractContextManager[None]:
        if not self._colocates:
            return contextlib.nullcontext()
        if not self._home:
            self._home.append(value)
        return value.graph.colocate_with(self._home[0])

    @staticmethod
    def _told(value: Tensor, dims: Dims) -> Tensor:
        value.set_shape(TensorShape.from_dims(dims))
        return value


def _part_dims(dims: Dims, lengths: np.ndarray[Any, Any] | None) -> Dims:
    """The shape of each part of a value of static shape `dims` that is cut into `lengths`."""
    if dims is None:
        return None
    if lengths is not None and lengths.size > 0 and lengths.min() == lengths.max():
        return (int(lengths[0]), *dims[1:])
    return (None, *dims[1:])
