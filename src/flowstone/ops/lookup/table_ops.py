"""The operations of look-up tables: one that makes each kind, and those that use any.

Both generations are here, as of queues: a table of TensorFlow 1.3 and before hands a reference along
(``HashTable``), later ones a resource (``HashTableV2``); either is the `table_state.Table` itself. Tables are
in host memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, cast

import numpy as np
import torch

from flowstone.framework.declarations.kernel import CPU, Environment, Value
from flowstone.framework.declarations.operation import OpDeclaration, Shapes, op
from flowstone.framework.tensors.node import Node
from flowstone.framework.types.dtypes import DType
from flowstone.framework.types.shape import Dims, format_dims, is_compatible, merge
from flowstone.framework.types.values import to_numpy, to_runtime
from flowstone.ops.arrays.arrays import invalid
from flowstone.ops.lookup.table_files import TextFile, check_types
from flowstone.ops.lookup.table_state import DenseTable, MutableTable, StaticTable, Table
from flowstone.ops.queues.queue_ops import type_names
from flowstone.ops.strings.elementwise_strings import attribute_bytes

_SHARING = "container: string = '' ; shared_name: string = '' ; use_node_name_sharing: bool = false"
_SHAPE = "value_shape: shape = []"
# `deleted_key` stands for the input that TensorFlow later added: a list of the one key, or of none.
_DENSE = f"{_SHAPE} ; initial_num_buckets: int = 131072 ; max_load_factor: float = 0.8"
_TYPES = "key_dtype: type ; value_dtype: type"
_numbers = count()

Make = Callable[..., Table]  # make(node, name, *keys)


# ---- making tables


def _make_static(node: Node, name: str) -> Table:
    return StaticTable(name, node.attributes["key_dtype"], node.attributes["value_dtype"])


def _make_mutable(node: Node, name: str) -> Table:
    return MutableTable(name, node.attributes["key_dtype"], node.attributes["value_dtype"])


def _make_of_tensors(node: Node, name: str) -> Table:
    shape = node.attributes["value_shape"]
    if shape is None or None in shape:
        raise invalid(f"Shape {format_dims(shape)} is not fully defined")
    if len(shape) != 1:
        raise invalid(f"Default value must be a vector, got shape {format_dims(shape)}")
    return MutableTable(name, node.attributes["key_dtype"], node.attributes["value_dtype"], shape)


def _make_dense(node: Node, name: str, empty_key: Any, deleted_key: Any = None) -> Table:
    attributes = node.attributes
    shape, buckets, most = (attributes[a] for a in ("value_shape", "initial_num_buckets", "max_load_factor"))
    if shape is None or None in shape:
        raise invalid(f"Shape {format_dims(shape)} is not fully defined")
    if buckets < 4 or buckets & (buckets - 1):
        raise invalid(f"Number of buckets must be at least 4 and a power of 2, got: {buckets}")
    if not 0 < most < 1:
        raise invalid(f"max_load_factor must be between 0 and 1, got: {most:g}")
    key_dtype = attributes["key_dtype"]
    empty = np.array(to_numpy(empty_key, key_dtype))
    if deleted_key is None:
        deleted = next(iter(attributes.get("deleted_key", ())), None)
    else:
        deleted = np.array(to_numpy(deleted_key, key_dtype))
    if deleted is not None:
        if deleted.shape != empty.shape:
            raise invalid(
                "Empty and deleted keys must have same shape, got shapes: "
                f"{format_dims(empty.shape)} and {format_dims(deleted.shape)}"
            )
        if np.array_equal(deleted, empty):
            raise invalid("Empty and deleted keys cannot be equal")
    return DenseTable(name, attributes["value_dtype"], shape, empty, key_dtype, deleted, buckets, most)


def _checked(node: Node, table: Table) -> Table:
    """The table that was found by its name, if it has the types that `node` means."""
    wanted = node.attributes["key_dtype"], node.attributes["value_dtype"]
    if (table.key_dtype, table.value_dtype) != wanted:
        raise invalid(
            f"Conflicting key/value dtypes {wanted[0].name}->{wanted[1].name} with "
            f"{table.key_dtype.name}-{table.value_dtype.name} for table {table.name}"
        )
    return table


def _finder(node: Node, env: Environment, make: Make) -> Callable[..., Table]:
    """What finds the table that a node stands for, or makes it, given the keys that are its inputs."""
    attributes, resources = node.attributes, env.resources
    assert resources is not None  # making a table is not folded
    shared = attributes["shared_name"] or (node.name if attributes["use_node_name_sharing"] else "")
    if shared:
        container = attributes["container"]
        return lambda *keys: _checked(
            node, resources.look_up_or_create(container, ("table", shared), lambda: make(node, shared, *keys))
        )
    return lambda *keys: cast(
        Table, env.state(node, lambda: make(node, f"_{next(_numbers)}_{node.name}", *keys))
    )


def _handle_dims(dims: Dims, node: Node) -> Dims:
    return dims


def _declare_table(kind: str, inputs: str, attributes: str, make: Make) -> None:
    def kernel(node: Node, env: Environment) -> Any:
        find = _finder(node, env, make)
        return find if inputs else Value(find())

    for name, output, dims in ((kind, "Ref(string)", (2,)), (f"{kind}V2", "resource", ())):
        declaration = op(
            name, f"{inputs} -> table_handle: {output}", f"{_TYPES} ; {attributes}", stateful=True
        )
        declaration.infer(partial(_handle_dims, dims))
        declaration.kernel(CPU)(kernel)  # in host memory
        declaration.not_differentiable()


def _declare_anonymous(kind: str, inputs: str, attributes: str, make: Make) -> None:
    """A table without a name, which lives as long as the step."""
    declaration = op(f"Anonymous{kind}", f"{inputs} -> table_handle: resource", attributes, stateful=True)
    declaration.infer(partial(_handle_dims, ()))
    declaration.kernel(CPU)(lambda node, env: lambda *keys: make(node, f"_{next(_numbers)}", *keys))
    declaration.no_gradient()


_declare_table("HashTable", "", _SHARING, _make_static)
_declare_table("MutableHashTable", "", _SHARING, _make_mutable)
_declare_table("MutableHashTableOfTensors", "", f"{_SHARING} ; {_SHAPE}", _make_of_tensors)
_declare_table(
    "MutableDenseHashTable",
    "empty_key: key_dtype",
    f"{_SHARING} ; {_DENSE} ; deleted_key: list(tensor) = []",
    _make_dense,
)
_declare_anonymous("HashTable", "", _TYPES, _make_static)
_declare_anonymous("MutableHashTable", "", _TYPES, _make_mutable)
_declare_anonymous("MutableHashTableOfTensors", "", f"{_TYPES} ; {_SHAPE}", _make_of_tensors)
_declare_anonymous(
    "MutableDenseHashTable",
    "empty_key: key_dtype, deleted_key: key_dtype",
    f"{_TYPES} ; {_DENSE}",
    _make_dense,
)


# ---- what is known of a table before a step


class _Known:
    """What the node that makes a table says: types, the shapes of a key and a value (None: unknown)."""

    def __init__(self, node: Node) -> None:
        maker = node.inputs[0].op
        self.is_known = "HashTable" in maker.type
        self.is_mutable = self.is_known and "Mutable" in maker.type
        self.attributes = maker.attributes
        self.value_shape: Dims = maker.attributes.get("value_shape", ()) if self.is_known else None
        self.key_shape: Dims = () if self.is_known else None
        if self.is_known and "Dense" in maker.type:
            self.key_shape = maker.dims(0)

    def check(self, key: DType, value: DType) -> None:
        """ValueError if a mutable table has other types; others say so in a step."""
        for dtype, own in ((key, "key_dtype"), (value, "value_dtype")):
            if self.is_mutable and dtype is not self.attributes[own]:
                raise ValueError(
                    f"Trying to read value with wrong dtype. Expected {self.attributes[own].name} got "
                    f"{dtype.name}"
                )

    def values_of(self, keys: Dims) -> Dims:
        """The shape of the values of such keys."""
        if keys is None or self.key_shape is None or self.value_shape is None:
            return None
        rank = len(self.key_shape)
        if len(keys) < rank or not is_compatible(keys[len(keys) - rank :], self.key_shape):
            raise ValueError(
                f"Input key shape {format_dims(keys)} must end with the table's key shape "
                f"{format_dims(self.key_shape)}"
            )
        return (*keys[: len(keys) - rank], *self.value_shape)


def _infer_find(node: Node) -> Dims:
    known = _Known(node)
    known.check(node.dtype(1), node.dtype(2))
    return known.values_of(node.dims(1))


def _infer_change(node: Node) -> None:
    expected = _Known(node).values_of(node.dims(1))
    if expected is not None:
        merge(expected, node.dims(2))


def _infer_export(node: Node) -> Shapes:
    return [None if node.type.endswith("V2") else (None,), None]


# ---- using them


def _declare(
    name: str, signature: str, attributes: str, infer: Any, kernel: Any
) -> tuple[OpDeclaration, OpDeclaration]:
    """The op on references, and the one on resources."""
    both = []
    for suffix, handle, effects in (
        ("", "Ref(string)", {"mutates": [0]}),
        ("V2", "resource", {"stateful": True}),
    ):
        declaration = op(
            f"{name}{suffix}", signature.format(handle=f"table_handle: {handle}"), attributes, **effects
        )
        declaration.infer(infer)
        declaration.kernel(CPU)(kernel)  # tables are in host memory
        both.append(declaration.not_differentiable())
    return both[0], both[1]


def _check_types(table: Any, node: Node, key: DType, value: DType | None, result: bool) -> None:
    """InvalidArgumentError if the table has other types; `result`: its values come out."""
    if not isinstance(table, Table):
        raise invalid(f"Trying to access a handle's resource as a look-up table, but it is {table!r}")
    if key is table.key_dtype and value in (None, table.value_dtype):
        return
    have, own = ("" if value is None else type_names((each,)) for each in (value, table.value_dtype))
    tail, own_tail = (f", {each}->{each if result else ''}" if each else "->" for each in (have, own))
    raise invalid(
        f"Signature mismatch, have: resource, {type_names((key,))}{tail} expected: resource, "
        f"{type_names((table.key_dtype,))}{own_tail}"
    )


def _as_value(array: np.ndarray[Any, Any], dtype: DType) -> Any:
    """A runtime value; strings are there as bytes already."""
    return array if array.dtype == object else to_runtime(array, dtype)


def _find_kernel(node: Node, env: Environment) -> Callable[..., Any]:
    key, value = node.dtype(1), node.dtype(2)

    def find(table: Table, keys: Any, default: Any) -> Any:
        _check_types(table, node, key, value, True)
        return _as_value(table.find(to_numpy(keys, key), to_numpy(default, value)), value)

    return find


def _change_kernel(method: str) -> Callable[[Node, Environment], Callable[..., None]]:
    """Of what calls `method` of the table with keys and values."""

    def kernel(node: Node, env: Environment) -> Callable[..., None]:
        key, value = node.dtype(1), node.dtype(2)

        def change(table: Table, keys: Any, values: Any) -> None:
            _check_types(table, node, key, value, False)
            getattr(table, method)(to_numpy(keys, key), to_numpy(values, value))

        return change

    return kernel


def _export_kernel(node: Node, env: Environment) -> Callable[[Table], tuple[Any, Any]]:
    key, value = node.attributes["Tkeys"], node.attributes["Tvalues"]

    def export(table: Table) -> tuple[Any, Any]:
        _check_types(table, node, key, value, True)
        keys, values = table.export()
        return _as_value(keys, key), _as_value(values, value)

    return export


def _file_kernel(node: Node, env: Environment) -> Callable[..., None]:
    attributes = node.attributes
    key, value = attributes["key_index"], attributes["value_index"]
    delimiter = attribute_bytes(node, "delimiter")

    def initialize(table: Table, filename: Any) -> None:
        if filename.size != 1 or filename.ndim:
            raise invalid(f"filename should be a single string, but got {format_dims(filename.shape)}")
        if not isinstance(table, StaticTable):
            raise invalid(f"Table localhost {table.name} is not initializable")
        if table.is_initialized:
            return
        check_types(key, value, table.key_dtype, table.value_dtype)
        file = TextFile(filename.item().decode(), delimiter, attributes["vocab_size"])
        file.check_columns(key, value)
        values = file.read(value, table.value_dtype, attributes["offset"])
        table.initialize(file.read(key, table.key_dtype), values)

    return initialize


def _size_kernel(node: Node, env: Environment) -> Callable[[Table], torch.Tensor]:
    return lambda table: torch.tensor(table.size)


_KEYS_AND_VALUES = "Tin: type ; Tout: type"
_FILE = (
    "key_index: int >= -2 ; value_index: int >= -2 ; vocab_size: int >= -1 = -1 ; "
    "delimiter: string = '\\t' ; offset: int = 0"
)


def _infer_initialize(node: Node) -> None:
    for i in (1, 2):
        dims = node.dims(i)
        if dims is not None and len(dims) != 1:
            raise ValueError(f"Shape must be rank 1 but is rank {len(dims)}")
    merge(node.dims(1), node.dims(2))


def _infer_file(node: Node) -> None:
    dims = node.dims(1)
    if dims:
        raise ValueError(f"Shape must be rank 0 but is rank {len(dims)}")


lookup_table_find, lookup_table_find_v2 = _declare(
    "LookupTableFind",
    "{handle}, keys: Tin, default_value: Tout -> values: Tout",
    _KEYS_AND_VALUES,
    _infer_find,
    _find_kernel,
)
lookup_table_insert, lookup_table_insert_v2 = _declare(
    "LookupTableInsert",
    "{handle}, keys: Tin, values: Tout ->",
    _KEYS_AND_VALUES,
    _infer_change,
    _change_kernel("insert"),
)
lookup_table_import, lookup_table_import_v2 = _declare(
    "LookupTableImport",
    "{handle}, keys: Tin, values: Tout ->",
    _KEYS_AND_VALUES,
    _infer_change,
    _change_kernel("import_"),
)
initialize_table, initialize_table_v2 = _declare(
    "InitializeTable",
    "{handle}, keys: Tkey, values: Tval ->",
    "Tkey: type ; Tval: type",
    _infer_initialize,
    _change_kernel("initialize"),
)
initialize_table_from_text_file, initialize_table_from_text_file_v2 = _declare(
    "InitializeTableFromTextFile", "{handle}, filename: string ->", _FILE, _infer_file, _file_kernel
)
lookup_table_export, lookup_table_export_v2 = _declare(
    "LookupTableExport",
    "{handle} -> keys: Tkeys, values: Tvalues",
    "Tkeys: type ; Tvalues: type",
    _infer_export,
    _export_kernel,
)
lookup_table_size, lookup_table_size_v2 = _declare(
    "LookupTableSize", "{handle} -> size: int64", "", lambda node: (), _size_kernel
)
for _each in (lookup_table_export, lookup_table_export_v2, lookup_table_import, lookup_table_import_v2):
    _each.no_gradient()

lookup_table_remove_v2 = op(
    "LookupTableRemoveV2", "table_handle: resource, keys: Tin ->", stateful=True, Tin=None
)
lookup_table_remove_v2.no_gradient()


lookup_table_remove_v2.infer(lambda node: None)


@lookup_table_remove_v2.kernel(CPU)  # tables are in host memory
def _(node: Node, env: Environment) -> Callable[[Table, Any], None]:
    key = node.dtype(1)

    def remove(table: Table, keys: Any) -> None:
        _check_types(table, node, key, None, False)
        table.remove(to_numpy(keys, key))

    return remove
