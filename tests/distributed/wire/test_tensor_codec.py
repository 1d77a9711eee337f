from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest
import torch

from flowstone.distributed.wire import tensor_codec
from flowstone.distributed.wire.tensor_codec import (
    decode_received,
    decode_tensor,
    encode_received,
    encode_tensor,
    pack,
    proto_of_value,
    unpack,
    value_of_proto,
)
from flowstone.framework import errors
from flowstone.framework.types import dtypes
from flowstone.framework.types.tensor_proto import make_ndarray, messages
from flowstone.framework.types.values import to_runtime
from flowstone.runtime.execution.executor import DEAD

VALUES: list[Any] = [
    torch.tensor(1.5), torch.arange(6).reshape(2, 3), torch.zeros(0, 4), torch.tensor([True, False]),
    torch.ones(3, dtype=torch.bfloat16), torch.tensor([1 + 2j]), torch.tensor([1.0], dtype=torch.float16),
    torch.arange(12.0).reshape(3, 4).t(), torch.tensor([7], dtype=torch.uint8),
    torch.tensor(-5, dtype=torch.int64),
    np.array([b"a", b"", b"\x00\xff"], object), np.array(b"one", object),
]  # fmt: skip


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return (
            isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())
        )
    return isinstance(b, np.ndarray) and a.shape == b.shape and a.tolist() == b.tolist()


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_come_back(value: Any) -> None:
    assert same(value, decode_tensor(encode_tensor(value)))
    assert same(value, decode_received(encode_received(value)))
    (back,) = unpack(memoryview(b"".join(pack([value]))))
    assert same(value, back)


def test_several_values_and_the_dead_one() -> None:
    back = unpack(memoryview(b"".join(pack([*VALUES, DEAD, VALUES[1]]))))
    assert all(same(a, b) for a, b in zip(VALUES, back)) and back[-2] is DEAD and same(VALUES[1], back[-1])
    assert unpack(memoryview(b"".join(pack([])))) == []
    assert decode_received(encode_received(DEAD)) is DEAD


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_bytes_are_a_tensor_proto(value: Any) -> None:
    proto = messages("tensor_pb2").TensorProto.FromString(encode_tensor(value))
    dtype = dtypes.as_dtype(proto.dtype)
    assert same(value, to_runtime(make_ndarray(proto), dtype))
    assert same(value, value_of_proto(proto_of_value(value, dtype)))


def test_a_proto_with_a_list_of_values_is_read() -> None:
    proto = messages("tensor_pb2").TensorProto(dtype=1, float_val=[2.5])
    proto.tensor_shape.dim.add(size=3)
    assert same(torch.full((3,), 2.5), decode_tensor(proto.SerializeToString()))


def test_what_is_read_shares_the_memory_of_the_message() -> None:
    message = np.frombuffer(b"".join(pack([torch.zeros(1000)])), np.uint8).copy()
    (value,) = unpack(message.data)
    message[-4:] = np.float32([5.0]).view(np.uint8)
    assert value[-1] == 5.0


def test_contents_are_aligned() -> None:
    buffers = pack([torch.zeros(3, dtype=torch.uint8), torch.zeros(5)])
    at = 0
    for buffer in buffers:
        if isinstance(buffer, memoryview):
            assert at % 64 == 0
        at += len(buffer)


@pytest.mark.parametrize("dtype", [dtypes.resource, dtypes.variant])
def test_handles_stay_in_their_process(dtype: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="belongs to its process"):
        proto_of_value(object(), dtype)
    with pytest.raises(errors.InvalidArgumentError, match="belongs to its process"):
        encode_tensor(object())


@pytest.mark.parametrize("seed", range(200))
def test_damaged_messages_are_errors(seed: int) -> None:
    choose = random.Random(seed)
    whole = [
        encode_received(VALUES[seed % len(VALUES)]),
        b"".join(pack(VALUES[:3])),
        encode_tensor(VALUES[1]),
    ]
    which = seed % 3
    damaged = bytearray(whole[which])
    for _ in range(choose.randint(1, 4)):
        damaged[choose.randrange(len(damaged))] = choose.randrange(256)
    if choose.random() < 0.5:
        del damaged[choose.randrange(len(damaged)) :]
    read = [decode_received, lambda m: unpack(memoryview(m)), decode_tensor][which]
    with contextlib.suppress(errors.DataLossError, errors.InvalidArgumentError):
        read(bytes(damaged))


def test_large_sizes_take_no_memory() -> None:
    entry = tensor_codec._ENTRY.pack(1, 0, 1, 1, 1 << 60) + (1 << 58).to_bytes(8, "little")
    with pytest.raises(errors.DataLossError):
        unpack(memoryview((1).to_bytes(4, "little") + entry))
    with pytest.raises(errors.DataLossError):
        unpack(memoryview(b"\xff\xff\xff\xff"))
