"""The ops that make readers and use them, on references and on resources."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from flowstone.framework.declarations.kernel import CPU, AsyncCall, Environment, Value
from flowstone.framework.declarations.operation import OpDeclaration, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.shape import Dims
from flowstone.ops.arrays.arrays import boxed, invalid
from flowstone.ops.queues.queue_ops import find_resource
from flowstone.ops.readers import record_streams
from flowstone.ops.readers.reader_state import Reader, Records

_SHARING = "container: string = '' ; shared_name: string = ''"
_LENGTHS = "header_bytes: int = 0 ; record_bytes: int ; footer_bytes: int = 0 ; hop_bytes: int = 0"
_Opener = Callable[[bytes], Records]


# ---- making readers


def _lines(node: Node) -> _Opener:
    return partial(record_streams.keyed_lines, skipped=node.attributes["skip_header_lines"])


def _fixed(node: Node) -> _Opener:
    attributes = node.attributes
    header, record, footer, hop = (
        attributes[f"{part}_bytes"] for part in ("header", "record", "footer", "hop")
    )
    for name, size in (("header_bytes", header), ("footer_bytes", footer), ("hop_bytes", hop)):
        if size < 0:
            raise invalid(f"{name} must be >= 0 got {size}")
    if record <= 0:
        raise invalid(f"record_bytes must be > 0 got {record}")
    encoding = attributes.get("encoding", "")
    if encoding not in ("", "ZLIB", "GZIP"):
        raise invalid(f"encoding must be ZLIB or GZIP, not {encoding!r}")
    sizes = (header, record, footer, hop or record)
    return partial(record_streams.keyed_fixed_records, sizes=sizes, compression=encoding)


def _records(node: Node) -> _Opener:
    return partial(record_streams.keyed_records, compression=node.attributes["compression_type"])


def _handle_dims(dims: tuple[int, ...], node: Node) -> Dims:
    return dims


def _declare_reader(
    kind: str,
    attributes: str,
    opener: Callable[[Node], _Opener],
    supports_serialize: bool = False,
    more: str = "",
    forms: str = "both",
) -> None:
    def kernel(node: Node, env: Environment) -> Value:
        open_work = opener(node)

        def make(name: str) -> Reader:
            return Reader(kind, name, open_work, env.run_blocking, supports_serialize)

        reader = find_resource(node, env, "reader", make)
        if reader.kind != kind:
            raise invalid(f"Expected {reader.kind}, found {node.type}")
        return Value(reader)

    found = [(kind, "Ref(string)", (2,), attributes), (f"{kind}V2", "resource", (), f"{attributes}{more}")]
    for name, output, dims, text in found[: 2 if forms == "both" else 1]:
        declaration = op(name, f"-> reader_handle: {output}", text, stateful=True)
        declaration.infer(partial(_handle_dims, dims))
        declaration.kernel(CPU)(kernel)
        declaration.not_differentiable()


_declare_reader("WholeFileReader", _SHARING, lambda node: record_streams.whole_file, True)
_declare_reader("IdentityReader", _SHARING, lambda node: record_streams.itself, True)
_declare_reader("TextLineReader", f"skip_header_lines: int = 0 ; {_SHARING}", _lines)
_declare_reader("TFRecordReader", f"{_SHARING} ; compression_type: string = ''", _records)
_declare_reader(
    "FixedLengthRecordReader", f"{_LENGTHS} ; {_SHARING}", _fixed, more=" ; encoding: string = ''"
)
_declare_reader("LMDBReader", _SHARING, lambda node: record_streams.entries, forms="reference")


# ---- using them


def _declare(
    name: str, signature: str, infer: Any, kernel: Any, **traits: Any
) -> tuple[OpDeclaration, OpDeclaration]:
    """The op on references, and the one on resources."""
    both = []
    for suffix, kind, effects in (
        ("", "Ref(string)", {"mutates": [0]}),
        ("V2", "resource", {"stateful": True}),
    ):
        text = signature.format(reader=f"reader_handle: {kind}", queue=f"queue_handle: {kind}")
        declaration = op(f"{name}{suffix}", text, "", **effects, **traits)
        declaration.infer(infer)
        declaration.kernel(CPU)(kernel)
        both.append(declaration.not_differentiable())
    return both[0], both[1]


def _read_kernel(node: Node, env: Environment) -> AsyncCall:
    return AsyncCall(lambda step, done, reader, queue: reader.read(step, done, queue))


def _read_up_to_kernel(node: Node, env: Environment) -> AsyncCall:
    return AsyncCall(lambda step, done, reader, queue, count: reader.read(step, done, queue, int(count)))


def _restore_kernel(node: Node, env: Environment) -> Callable[..., None]:
    def restore(reader: Reader, state: Any) -> None:
        if state.ndim:
            raise invalid(f"Reader state must be scalar, but had shape: {list(state.shape)}")
        reader.restore(state.item())

    return restore


reader_read, reader_read_v2 = _declare(
    "ReaderRead", "{reader}, {queue} -> key: string, value: string", lambda node: [(), ()], _read_kernel,
    asynchronous=True,
)  # fmt: skip
reader_read_up_to, reader_read_up_to_v2 = _declare(
    "ReaderReadUpTo", "{reader}, {queue}, num_records: int64 -> keys: string, values: string",
    lambda node: [(None,), (None,)], _read_up_to_kernel, asynchronous=True,
)  # fmt: skip
reader_num_records_produced, reader_num_records_produced_v2 = _declare(
    "ReaderNumRecordsProduced", "{reader} -> records_produced: int64", lambda node: (),
    lambda node, env: lambda reader: torch.tensor(reader.records_produced),
)  # fmt: skip
reader_num_work_units_completed, reader_num_work_units_completed_v2 = _declare(
    "ReaderNumWorkUnitsCompleted", "{reader} -> units_completed: int64", lambda node: (),
    lambda node, env: lambda reader: torch.tensor(reader.units_completed),
)  # fmt: skip
reader_serialize_state, reader_serialize_state_v2 = _declare(
    "ReaderSerializeState", "{reader} -> state: string", lambda node: (),
    lambda node, env: lambda reader: boxed(reader.serialized()),
)  # fmt: skip
reader_restore_state, reader_restore_state_v2 = _declare(
    "ReaderRestoreState", "{reader}, state: string ->", lambda node: None, _restore_kernel
)
reader_reset, reader_reset_v2 = _declare(
    "ReaderReset", "{reader} ->", lambda node: None, lambda node, env: lambda reader: reader.reset()
)
