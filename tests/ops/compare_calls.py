"""Random calls, answered by flowstone and by TensorFlow, compared.

`python tests/ops/compare_calls.py PYTHON --first 0 --count 5000` takes the Python that has TensorFlow 2. Each
side answers the calls of the seeds in a process of its own, which is started again after a call that ends it.
Prints the differences, the most frequent kinds first, and their number; the exit status is 1 if there are
any.

`--answer PACKAGE` answers only: a line of JSON a seed, to standard output.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from typing import Any

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_ENABLE_ONEDNN_OPTS="0", TF_CPP_MIN_LOG_LEVEL="3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import random_calls  # noqa: E402

SECONDS_A_CALL = 30
PACKAGES = {"flowstone": "flowstone", "tensorflow": "tensorflow.compat.v1"}


def package(name: str) -> tuple[Any, Any]:
    """The module ``tf``, and what adds a raw operation."""
    if name == "flowstone":
        import flowstone
        from flowstone.framework.declarations.operation import registry

        def add(op: str, *inputs: Any, **attributes: Any) -> Any:
            return registry[op](*inputs, **{key: _plain(flowstone, one) for key, one in attributes.items()})

        return flowstone, add
    import tensorflow.compat.v1 as tf
    from tensorflow.python.framework import op_def_library, op_def_registry

    tf.disable_v2_behavior()
    tf.logging.set_verbosity("FATAL")

    def apply(op: str, *inputs: Any, **attributes: Any) -> Any:
        definition = op_def_registry.get(op)
        given = dict(zip((one.name for one in definition.input_arg), inputs, strict=True))
        implied = {
            name
            for one in definition.input_arg
            for name in (one.type_attr, one.number_attr, one.type_list_attr)
        }
        for one in definition.attr:
            if one.name in attributes and one.name not in implied:
                given[one.name] = _plain(tf, attributes[one.name])
            elif one.HasField("default_value") and one.name not in implied:
                given[one.name] = _default(one)
        return op_def_library.apply_op(op, **given)

    return tf, apply


def _default(attribute: Any) -> Any:
    """The default in an op's definition, as a Python value."""
    fields = {"string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape"}
    if attribute.type.startswith("list("):
        return list(getattr(attribute.default_value.list, fields[attribute.type[5:-1]]))
    return getattr(attribute.default_value, fields[attribute.type])


def _plain(tf: Any, value: Any) -> Any:
    return tf.as_dtype(value) if isinstance(value, str) and value in random_calls.DTYPES else value


def write_answers(name: str, first: int, count: int) -> None:
    """A line of JSON for each seed, flushed."""
    tf, op = package(name)
    for seed in range(first, first + count):
        signal.alarm(SECONDS_A_CALL)
        print(json.dumps(random_calls.answer(tf, op, random_calls.random_call(seed))), flush=True)


def answers(python: str, name: str, first: int, count: int) -> list[dict[str, Any]]:
    """The answers of a package to the calls of these seeds; a process that ended is an answer, too."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        start, left = first + len(found), count - len(found)
        command = [python, __file__, python, "--answer", name, "--first", str(start), "--count", str(left)]
        with tempfile.TemporaryFile() as file:
            status = subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL).returncode
            file.seek(0)
            found += [json.loads(line) for line in file if line.endswith(b"\n") and line.startswith(b"{")]
        if len(found) < count:
            if status == 1:
                raise SystemExit(f"{name} cannot answer seed {first + len(found)}")
            found.append({"error": ["died", str(status)]})
    return found


def kind(call: random_calls.Call, text: str) -> str:
    """What differences of one cause have in common: the function and what differs, without numbers."""
    function = re.match(r"op\('\w+'|tf\.[\w.]+|[^(]*", call.expression)
    return f"{function.group() if function else ''}: {re.sub(r'[-0-9.,einaft]+(?=[],])', '#', text)[:90]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", help="the Python that has TensorFlow")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--answer", choices=PACKAGES)
    given = parser.parse_args()
    if given.answer:
        write_answers(given.answer, given.first, given.count)
        return 0
    ours = answers(sys.executable, "flowstone", given.first, given.count)
    theirs = answers(given.python, "tensorflow", given.first, given.count)
    return report(given.first, ours, theirs)


def report(first: int, ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> int:
    """Prints the differences; 1 if there are any."""
    kinds: dict[str, list[str]] = collections.defaultdict(list)
    for seed, (found, expected) in enumerate(zip(ours, theirs, strict=True), first):
        call = random_calls.random_call(seed)
        text = random_calls.difference(found, expected, call)
        if text:
            inputs = {name: [one.spec.dtype, one.spec.shape, one.known] for name, one in call.inputs.items()}
            messages = [one.get("message", "") for one in (found, expected)]
            kinds[kind(call, text)].append(f"{seed} {call.expression} {inputs}\n    {text}\n    {messages}")
    for name, found in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        print(f"{len(found)} x {name}", *found[:3], sep="\n  ")
    print(f"{sum(map(len, kinds.values()))} of {len(ours)} calls differ, in {len(kinds)} kinds")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
