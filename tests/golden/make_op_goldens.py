"""Ask TensorFlow for the golden values of the op table.

Run with a Python that has TensorFlow 2 (the files in `tests/golden/ops` came from 2.21), naming families or
none for all: `python tests/golden/make_op_goldens.py elementwise reductions`. Each case becomes a TensorFlow
1 graph that holds its op three times, on constants, on placeholders of the full shape and on placeholders of
unknown rank. The second is run and differentiated, and all three tell their static shapes; of a case of an
error all three are run. `tests/ops/golden_values.py` says what is kept.

Ends with status 1, naming them, if cases did not go as their table says.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "ops"))

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import op_def_library, op_def_registry

import golden_values
import op_cases
from op_cases import Case, Input

VARIANTS = ("constants", "placeholders", "unknown")
LAYOUT_LISTS = ("strides", "ksize", "dilations", "explicit_paddings")


class Mismatch(Exception):
    """The oracle did not answer as the table expects."""


class Question:
    """One case as a graph.

    `given` maps an input's position to its placeholder or variable, `built` a variant to its operation and
    `failures` to what was raised instead.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.definition = op_def_registry.get(case.op)
        if self.definition is None:
            raise Mismatch("TensorFlow has no such op")
        self.graph = tf.Graph()
        self.inputs = [transposed_input(case, i, one) for i, one in enumerate(case.inputs())]
        self.given: dict[str, Any] = {}
        self.feed: dict[Any, np.ndarray] = {}
        self.built: dict[str, Any] = {}
        self.failures: dict[str, Exception] = {}
        with self.graph.as_default():
            self._make_as_old_as_needed()
            self._make_variables()
            for variant in VARIANTS:
                try:
                    self.built[variant] = self._build(variant)
                except Exception as error:
                    self.failures[variant] = error

    def _make_as_old_as_needed(self) -> None:
        """Makes the graph one of a version that still has the op."""
        removed_in = self.definition.deprecation.version
        if removed_in:
            old = tf.GraphDef()
            old.versions.producer = removed_in - 1
            old.node.add(name="old", op="NoOp")
            tf.import_graph_def(old)

    def _make_variables(self) -> None:
        for position, one in positions(self.inputs):
            if one.role != "tensor":
                self.given[position] = tf.Variable(one.value, use_resource=one.role == "resource")

    def _build(self, variant: str) -> Any:
        arguments: dict[str, Any] = {}
        for index, (definition, one) in enumerate(zip(self.definition.input_arg, self.inputs, strict=True)):
            if isinstance(one, list):
                arguments[definition.name] = [
                    self._argument(variant, f"{index}.{item}", part) for item, part in enumerate(one)
                ]
            else:
                arguments[definition.name] = self._argument(variant, str(index), one)
        arguments |= self._attributes()
        result = op_def_library.apply_op(self.case.op, **arguments)
        while isinstance(result, (list, tuple)):
            result = result[0]
        return getattr(result, "op", result)

    def _argument(self, variant: str, position: str, one: Input) -> Any:
        if one.role == "variable":
            return self.given[position]._ref()
        if one.role == "resource":
            return self.given[position].handle
        if variant == "constants":
            return tf.constant(one.value, dtype=one.dtype)
        holder = tf.placeholder(one.dtype, one.value.shape if variant == "placeholders" else None)
        if variant == "placeholders":
            self.given[position] = holder
        self.feed[holder] = one.value
        return holder

    def _attributes(self) -> dict[str, Any]:
        """The attributes that the inputs do not imply: the case's, else the defaults of the definition."""
        implied = {
            name
            for one in self.definition.input_arg
            for name in (one.type_attr, one.number_attr, one.type_list_attr)
        }
        given = self.case.attributes
        if self.case.channels_last:
            given = channels_last_attributes(given)
        if unknown := given.keys() - {attribute.name for attribute in self.definition.attr}:
            raise Mismatch(f"TensorFlow's op has no attribute {unknown}")
        attributes = {}
        for attribute in self.definition.attr:
            if attribute.name in given and attribute.name not in implied:
                attributes[attribute.name] = attribute_value(attribute.type, given[attribute.name])
            elif attribute.HasField("default_value") and attribute.name not in implied:
                attributes[attribute.name] = default_value(attribute.type, attribute.default_value)
        return attributes

    def start(self) -> tf.Session:
        """A session whose variables hold their first values."""
        session = tf.Session(graph=self.graph)
        for position, one in positions(self.inputs):
            if one.role != "tensor" and one.initialized:
                session.run(self.given[position].initializer)
        return session

    def ask(self) -> dict[str, Any]:
        """The entries of the golden file."""
        entries: dict[str, Any] = {}
        if self.case.error:
            return {"error": self.errors()}
        if "placeholders" in self.failures:
            raise self.failures["placeholders"]
        for variant, operation in self.built.items():
            entries[f"shape/{variant}"] = [
                self._shape(index, output.shape) for index, output in enumerate(operation.outputs)
            ]
        operation = self.built["placeholders"]
        entries["dtypes"] = [output.dtype.base_dtype.name for output in operation.outputs]
        with self.graph.as_default(), self.start() as session:
            values = session.run(operation.outputs or operation, self.feed)
            for index, value in enumerate(values or []):
                if self.case.compares(index):
                    entries[f"out/{index}"] = self._output(index, np.asarray(value))
            for position, one in positions(self.inputs):
                if one.role != "tensor":
                    after = self._read(session, position)
                    entries |= {} if after is None else {f"after/{position}": after}
        with self.graph.as_default(), self.start() as session:
            entries |= self._gradients(session, operation, values or [])
        return entries

    def _read(self, session: tf.Session, position: str) -> np.ndarray | None:
        try:
            return np.asarray(session.run(self.given[position].read_value()))
        except tf.errors.FailedPreconditionError:
            return None

    def _shape(self, index: int, shape: Any) -> list[int | None] | None:
        if shape.rank is None:
            return None
        sizes = shape.as_list()
        if self.case.channels_last and index in self.case.channels_last[1]:
            return channels_first(sizes)
        return sizes

    def _output(self, index: int, value: np.ndarray) -> np.ndarray:
        if self.case.channels_last and index in self.case.channels_last[1]:
            return channels_first_array(value)
        return value

    def errors(self) -> dict[str, list[str]]:
        """How each variant fails: its stage and class. Raises Mismatch if none does as the case says."""
        found = {}
        for variant in VARIANTS:
            failure, stage = self.failures.get(variant), "build"
            if failure is None:
                stage = "run"
                operation = self.built[variant]
                with self.start() as session:
                    try:
                        session.run(operation.outputs or operation, self.feed)
                    except Exception as error:
                        failure = error
            found[variant] = [stage if failure else "none", type(failure).__name__ if failure else ""]
        if self.case.error not in {name for _, name in found.values()}:
            raise Mismatch(f"expected {self.case.error}, got {found}")
        return found

    def _gradients(self, session: tf.Session, operation: Any, values: Sequence[np.ndarray]) -> dict[str, Any]:
        case = self.case
        outputs, flows = [], []
        for index, (output, value) in enumerate(zip(operation.outputs, values, strict=True)):
            dtype = output.dtype.base_dtype.name
            if op_cases.is_differentiable(dtype) and case.compares(index):
                outputs.append(output)
                shape = self._output(index, np.asarray(value)).shape
                flow = case.output_gradient(index, shape, dtype)
                if case.channels_last and index in case.channels_last[1]:
                    flow = channels_last_array(flow)
                flows.append(tf.constant(flow, dtype))
        wanted = {position: one for position, one in positions(self.inputs) if case.differentiable(one)}
        if not wanted or not outputs:
            return {}
        try:
            found = tf.gradients(outputs, [self.given[position] for position in wanted], flows)
        except LookupError:
            if case.gradient:
                raise Mismatch("no gradient is defined") from None
            return {"nograd": "not defined"}
        if case.gradient and not any(gradient is not None for gradient in found):
            raise Mismatch("all gradients are None")
        entries: dict[str, Any] = {}
        for position, gradient in zip(wanted, found, strict=True):
            if gradient is None:
                entries[f"grad/{position}"] = None
                continue
            value = session.run(tf.convert_to_tensor(gradient), self.feed)
            if case.channels_last and int(position.split(".")[0]) in case.channels_last[0]:
                value = channels_first_array(value)
            entries[f"grad/{position}"] = np.asarray(value)
        return entries


def attribute_value(kind: str, value: Any) -> Any:
    """A case's attribute as TensorFlow wants it."""
    if kind == "type":
        return tf.as_dtype(value)
    if kind == "list(type)":
        return [tf.as_dtype(name) for name in value]
    return tf.make_tensor_proto(value) if kind == "tensor" else value


def default_value(kind: str, value: Any) -> Any:
    """The default in an op's definition, as a Python value."""
    fields = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape"}
    if kind.startswith("list("):
        return list(getattr(value.list, fields[kind[5:-1]]))
    return getattr(value, fields[kind])


def positions(inputs: Sequence[Input | list[Input]]) -> Iterator[tuple[str, Input]]:
    """Every tensor input with its position: "1", or "1.0" in a list argument."""
    for index, one in enumerate(inputs):
        if isinstance(one, list):
            yield from ((f"{index}.{item}", part) for item, part in enumerate(one))
        else:
            yield str(index), one


def transposed_input(case: Case, index: int, one: Input | list[Input]) -> Input | list[Input]:
    """The input as the oracle gets it: channels last, if the case says so."""
    if isinstance(one, list) or not case.channels_last or index not in case.channels_last[0]:
        return one
    return Input(one.role, one.dtype, channels_last_array(one.value), one.initialized)


def channels_last_array(value: np.ndarray) -> np.ndarray:
    """N C spatial to N spatial C; a vector is a shape, so its elements move."""
    return np.moveaxis(value, 1, -1) if value.ndim > 1 else np.array(channels_last(list(value)), value.dtype)


def channels_first_array(value: np.ndarray) -> np.ndarray:
    """The inverse of `channels_last_array`."""
    return np.moveaxis(value, -1, 1) if value.ndim > 1 else np.array(channels_first(list(value)), value.dtype)


def channels_last(sizes: list[Any]) -> list[Any]:
    """One entry a dimension, from N C spatial to N spatial C."""
    return [sizes[0], *sizes[2:], sizes[1]]


def channels_first(sizes: list[Any]) -> list[Any]:
    """One entry a dimension, from N spatial C to N C spatial."""
    return [sizes[0], sizes[-1], *sizes[1:-1]]


def channels_last_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a convolution or pooling in NCHW, for NHWC."""
    moved = {**attributes, "data_format": {"NCHW": "NHWC", "NCDHW": "NDHWC"}[attributes["data_format"]]}
    for name in LAYOUT_LISTS:
        sizes = list(moved.get(name, ()))
        if name == "explicit_paddings" and sizes:
            pairs = channels_last([sizes[i : i + 2] for i in range(0, len(sizes), 2)])
            moved[name] = [size for pair in pairs for size in pair]
        elif sizes:
            moved[name] = channels_last(sizes)
    return moved


def make(family: str) -> list[str]:
    """Write the golden file of a family; the complaints, one a case that did not go as its table says."""
    entries, complaints = {}, []
    for case in op_cases.load(family):
        try:
            entries[case.id] = Question(case).ask()
        except Exception as error:
            reason = "no CPU kernel" if "No OpKernel" in str(error) else str(error)[:300]
            complaints.append(f"{case.id}: {type(error).__name__}: {reason}")
    golden_values.DIRECTORY.mkdir(exist_ok=True)
    path = golden_values.DIRECTORY / f"{family}.npz"
    golden_values.write(path, entries)
    print(f"{family}: {len(entries)} cases, {path.stat().st_size / 1024:.0f} kB")
    return complaints


def main(names: Sequence[str]) -> int:
    """Make the named families, or all; the exit status."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity("FATAL")
    complaints = [complaint for family in names or op_cases.families() for complaint in make(family)]
    print(*complaints, sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
