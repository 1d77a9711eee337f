"""`tensorflow.python.ops.list_ops`: lists of tensors, whose shapes may be given as TensorFlow's shapes."""

from __future__ import annotations

from typing import Any

import flowstone as tf

__all__ = [
    "empty_tensor_list",
    "tensor_list_concat",
    "tensor_list_from_tensor",
    "tensor_list_gather",
    "tensor_list_get_item",
    "tensor_list_pop_back",
    "tensor_list_reserve",
    "tensor_list_scatter",
    "tensor_list_set_item",
    "tensor_list_split",
    "tensor_list_stack",
]


def _sizes(shape: Any) -> Any:
    """An `element_shape` of the ops: a tensor as it is, otherwise sizes, -1 where they are not known."""
    if isinstance(shape, tf.Tensor):
        return shape
    known = tf.TensorShape(shape)
    if known.rank is None:
        return tf.constant(-1, tf.int32)
    sizes = [-1 if size is None else size for size in known.as_list()]
    return tf.constant(sizes, tf.int32, [len(sizes)])


def empty_tensor_list(
    element_shape: Any, element_dtype: Any, max_num_elements: Any = None, name: str | None = None
) -> Any:
    """A list without elements; with `max_num_elements` it cannot get more."""
    limit = -1 if max_num_elements is None else max_num_elements
    return tf.raw_ops.EmptyTensorList(
        element_shape=_sizes(element_shape), max_num_elements=limit, element_dtype=element_dtype, name=name
    )


def tensor_list_reserve(
    element_shape: Any, num_elements: Any, element_dtype: Any, name: str | None = None
) -> Any:
    """A list of `num_elements` elements without values."""
    return tf.raw_ops.TensorListReserve(
        element_shape=_sizes(element_shape), num_elements=num_elements, element_dtype=element_dtype, name=name
    )


def tensor_list_from_tensor(tensor: Any, element_shape: Any, name: str | None = None) -> Any:
    """The list of a tensor's rows."""
    return tf.raw_ops.TensorListFromTensor(tensor=tensor, element_shape=_sizes(element_shape), name=name)


def tensor_list_get_item(
    input_handle: Any, index: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Any:
    """The element at `index`; zeros of `element_shape` if it has no value."""
    return tf.raw_ops.TensorListGetItem(
        input_handle=input_handle,
        index=index,
        element_shape=_sizes(element_shape),
        element_dtype=element_dtype,
        name=name,
    )


def tensor_list_pop_back(input_handle: Any, element_dtype: Any, name: str | None = None) -> Any:
    """The list without its last element, and that element."""
    return tf.raw_ops.TensorListPopBack(
        input_handle=input_handle, element_shape=_sizes(None), element_dtype=element_dtype, name=name
    )


def tensor_list_gather(
    input_handle: Any, indices: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Any:
    """The elements at `indices`, as the rows of a tensor."""
    return tf.raw_ops.TensorListGather(
        input_handle=input_handle,
        indices=indices,
        element_shape=_sizes(element_shape),
        element_dtype=element_dtype,
        name=name,
    )


def tensor_list_scatter(
    tensor: Any, indices: Any, element_shape: Any = None, input_handle: Any = None, name: str | None = None
) -> Any:
    """The list that has a tensor's rows at `indices`: `input_handle` with these, otherwise a new one."""
    if input_handle is not None:
        return tf.raw_ops.TensorListScatterIntoExistingList(
            input_handle=input_handle, tensor=tensor, indices=indices, name=name
        )
    return tf.raw_ops.TensorListScatterV2(
        tensor=tensor, indices=indices, element_shape=_sizes(element_shape), num_elements=-1, name=name
    )


def tensor_list_stack(
    input_handle: Any,
    element_dtype: Any,
    num_elements: int = -1,
    element_shape: Any = None,
    name: str | None = None,
) -> Any:
    """All elements as the rows of a tensor; their number is checked unless `num_elements` is -1."""
    return tf.raw_ops.TensorListStack(
        input_handle=input_handle,
        element_shape=_sizes(element_shape),
        element_dtype=element_dtype,
        num_elements=num_elements,
        name=name,
    )


def tensor_list_concat(
    input_handle: Any, element_dtype: Any, element_shape: Any = None, name: str | None = None
) -> Any:
    """All elements joined along their first axis."""
    return tf.raw_ops.TensorListConcatV2(
        input_handle=input_handle,
        element_shape=_sizes(element_shape),
        leading_dims=tf.constant([], tf.int64),
        element_dtype=element_dtype,
        name=name,
    )[0]


def tensor_list_split(tensor: Any, element_shape: Any, lengths: Any, name: str | None = None) -> Any:
    """The list of a tensor's parts along its first axis, which have these lengths."""
    return tf.raw_ops.TensorListSplit(
        tensor=tensor, element_shape=_sizes(element_shape), lengths=lengths, name=name
    )


def tensor_list_set_item(
    input_handle: Any,
    index: Any,
    item: Any,
    resize_if_index_out_of_bounds: bool = False,
    name: str | None = None,
) -> Any:
    """The list with `item` at `index`; with `resize_if_index_out_of_bounds` it grows to have that place."""
    if resize_if_index_out_of_bounds:
        size = tf.raw_ops.TensorListLength(input_handle=input_handle)
        input_handle = tf.cond(
            index >= size,
            lambda: tf.raw_ops.TensorListResize(input_handle=input_handle, size=index + 1),
            lambda: input_handle,
        )
    return tf.raw_ops.TensorListSetItem(input_handle=input_handle, index=index, item=item, name=name)
