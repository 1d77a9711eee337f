"""Inputs of a signature as the command line of `saved_model_cli` writes them.

`--inputs`          KEY=FILE or KEY=FILE[NAME]: files of NumPy (.npy, .npz) or pickles
`--input_exprs`     KEY=EXPRESSION of Python, in which `np` is NumPy
`--input_examples`  KEY=[{"feature": values}]: tf.Examples, serialised

Several of a kind are separated by semicolons.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import numpy as np

from flowstone.io.file_system import read_bytes
from flowstone.io.proto.example_pb2 import Example

__all__ = [
    "load_inputs_from_input_arg_string",
    "preprocess_input_examples_arg_string",
    "preprocess_input_exprs_arg_string",
    "preprocess_inputs_arg_string",
]

_FILE_OF_NAME = re.compile(r"([^=]+)=([^\[\]]+)\[([^\[\]]+)\]$")
_FILE = re.compile(r"([^=]+)=([^\[\]]+)$")


def _parts(text: str) -> Iterator[str]:
    return (part for part in text.split(";") if part)


def preprocess_inputs_arg_string(inputs_str: str) -> dict[str, tuple[str, str | None]]:
    """The file of each key and the name of what to take from it, or None. RuntimeError for other forms."""
    found: dict[str, tuple[str, str | None]] = {}
    for part in _parts(inputs_str):
        named, whole = _FILE_OF_NAME.match(part), _FILE.match(part)
        if named:
            found[named[1]] = named[2], named[3]
        elif whole:
            found[whole[1]] = whole[2], None
        else:
            raise RuntimeError(
                f'--inputs "{part}" format is incorrect. Please follow "<input_key>=<filename>", or '
                '"<input_key>=<filename>[<variable_name>]"'
            )
    return found


def preprocess_input_exprs_arg_string(input_exprs_str: str) -> dict[str, Any]:
    """The value of each key. RuntimeError where there is none; errors of the expression pass through."""
    found: dict[str, Any] = {}
    for part in _parts(input_exprs_str):
        if "=" not in part:
            raise RuntimeError(
                f'--input_exprs "{part}" format is incorrect. Please follow "<input_key>=<python expression>"'
            )
        key, _, expression = part.partition("=")
        found[key] = eval(expression, {"np": np, "numpy": np})
    return found


def preprocess_input_examples_arg_string(input_examples_str: str) -> dict[str, list[bytes]]:
    """The serialised examples of each key. ValueError or TypeError for what makes none."""
    found: dict[str, list[bytes]] = {}
    for key, examples in preprocess_input_exprs_arg_string(input_examples_str).items():
        if not isinstance(examples, list):
            raise ValueError(
                f'tf.Example input must be a list of dictionaries, but "{examples}" is {type(examples)}'
            )
        found[key] = [_example(each) for each in examples]
    return found


def _example(features: dict[str, list[Any]]) -> bytes:
    """The bytes of an Example; the type of a feature is that of its first value."""
    made = Example()
    for name, values in features.items():
        if not isinstance(values, list):
            raise ValueError(f'feature value must be a list, but {name}: "{values}" is {type(values)}')
        if not values:
            raise ValueError(f"feature value must not be empty, but {name} is []")
        feature = made.features.feature[name]
        if isinstance(values[0], float):
            feature.float_list.value.extend(values)
        elif isinstance(values[0], (str, bytes)):
            feature.bytes_list.value.extend(x.encode() if isinstance(x, str) else x for x in values)
        elif isinstance(values[0], int):
            feature.int64_list.value.extend(values)
        else:
            raise ValueError(
                f"Type {type(values[0])} for value {values[0]} is not supported for tf.train.Feature."
            )
    serialised: bytes = made.SerializeToString()
    return serialised


def load_inputs_from_input_arg_string(
    inputs_str: str, input_exprs_str: str, input_examples_str: str
) -> dict[str, Any]:
    """The values of all keys; expressions win over files, and examples over both.

    Raises RuntimeError for a file of several arrays where none is named, for a name that it lacks, and for
    what has another form.
    """
    found = {
        key: _loaded(key, *source) for key, source in preprocess_inputs_arg_string(inputs_str or "").items()
    }
    expressions = preprocess_input_exprs_arg_string(input_exprs_str or "")
    examples = preprocess_input_examples_arg_string(input_examples_str or "")
    for given, option in ((expressions, "input_exprs"), (examples, "input_examples")):
        for key, value in given.items():
            if key in found:
                print(
                    f"input_key {key} has been specified with both --inputs and --{option} options. "
                    f"Value in --{option} will be used."
                )
            found[key] = value
    return found


def _loaded(key: str, path: str, name: str | None) -> Any:
    try:
        data = np.load(BytesIO(read_bytes(path)), allow_pickle=True)
    except (EOFError, pickle.UnpicklingError) as error:
        raise OSError(f"Failed to interpret file {path} as a pickle") from error
    if not isinstance(data, np.lib.npyio.NpzFile):
        if name:
            print(f'Input file {path} contains a single ndarray. Name key "{name}" ignored.')
        return data
    if name:
        if name not in data:
            raise RuntimeError(f'Input file {path} does not contain variable with name "{name}".')
        return data[name]
    if len(data.files) != 1:
        raise RuntimeError(
            f"Input file {path} contains more than one ndarrays. Please specify the name of ndarray to use."
        )
    return data[data.files[0]]
