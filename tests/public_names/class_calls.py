"""Calls of every public member of a class, and their answers as JSON.

A `ClassCalls` is a class (or a module): its public name, a program that makes an instance called `it`,
and for every public member an expression on it. `answers` runs them in one graph and session and describes
the results; the same text runs with TensorFlow, which gives the golden answers, and with Flowstone.
"""

import json
import os
from typing import Any, NamedTuple

DIGITS = 5


def table_modules(folder: str) -> list:
    """The names of the modules in the folder that have tables, in order."""
    found = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(("_classes.py", "_calls.py")):
            with open(os.path.join(folder, file)) as text:
                if "\nTABLES = " in text.read():
                    found.append(file[:-3])
    return found


class ClassCalls(NamedTuple):
    """A class's public name, the program that makes `it`, each member's call, and whose answers count."""

    name: str
    setup: str
    calls: dict
    oracle: str = "1.15.5"

    def names(self) -> list:
        """The public names that are called: the class and its members."""
        return [self.name] + [f"{self.name}.{member}" for member in self.calls]


def product(prefix: str, setups: dict, members: dict, special: dict, oracle: str = "1.15.5") -> list:
    """Each class with all members; `special` has the calls of `Class.member` that are others or more."""
    tables = []
    for name, setup in setups.items():
        own = {key.partition(".")[2]: call for key, call in special.items() if key.partition(".")[0] == name}
        tables.append(ClassCalls(f"{prefix}.{name}", setup, {**members, **own}, oracle))
    return tables


def answers(table: ClassCalls, tf: Any, np: Any) -> dict:
    """What each member's call gives, ready for JSON."""
    with tf.Graph().as_default():
        scope: dict = {"tf": tf, "np": np, "run": lambda *steps: run_in_order(tf, steps)}
        exec(table.setup, scope)
        fetches: list = []
        described = {
            member: caught(lambda call=call: described_as(tf, np, eval(call, scope), fetches))
            for member, call in table.calls.items()
        }
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            values = fetched(tf, session, fetches)
    return {member: filled(answer, values, np) for member, answer in described.items()}


def run_in_order(tf: Any, steps: tuple) -> Any:
    """The last of the steps' results, in a session of their own whose variables have their first values."""
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return [session.run(each) for each in steps][-1]


def caught(call: Any) -> Any:
    """The call's result, or the class of the error that it raises."""
    try:
        return call()
    except Exception as error:
        return {"error": type(error).__name__}


def fetched(tf: Any, session: Any, fetches: list) -> list:
    """The values of the fetches in one step, or each in its own if one of them fails."""
    try:
        return list(session.run(fetches))
    except tf.errors.OpError:
        return [caught(lambda each=each: session.run(each)) for each in fetches]


def described_as(tf: Any, np: Any, value: Any, fetches: list) -> Any:
    """A value as JSON; a tensor is the index of its fetch."""

    def inner(each: Any) -> Any:
        return described_as(tf, np, each, fetches)

    if isinstance(value, tf.Variable):
        return {"variable": value.op.name, "value": inner(value.value())}
    if isinstance(value, tf.Tensor):
        fetches.append(value)
        return {"fetch": len(fetches) - 1, "dtype": value.dtype.base_dtype.name}
    if isinstance(value, tf.Operation):
        return {"op": value.type}
    if isinstance(value, tf.TensorShape):
        return {"shape": None if value.ndims is None else value.as_list()}
    if isinstance(value, tf.DType):
        return {"dtype": value.name}
    if isinstance(value, dict):
        return {str(key): inner(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return {"tuple": type(value).__name__, **{key: inner(each) for key, each in value._asdict().items()}}
    if isinstance(value, (list, tuple)):
        return [inner(each) for each in value]
    return plain(value, np)


def plain(value: Any, np: Any) -> Any:
    """A Python or NumPy value as JSON."""
    if isinstance(value, (np.ndarray, np.generic)):
        return {"dtype": value.dtype.name, "value": rounded(value.tolist())}
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, type):
        return {"class": value.__name__}
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return rounded(value)
    return {"instance": type(value).__name__}


def rounded(value: Any) -> Any:
    """Nested lists with floats of few digits; bytes become text, complex numbers become pairs."""
    if isinstance(value, list):
        return [rounded(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, complex):
        return [rounded(value.real), rounded(value.imag)]
    return value.decode() if isinstance(value, bytes) else value


def filled(answer: Any, values: list, np: Any) -> Any:
    """The answer with the fetches' values."""
    if isinstance(answer, dict) and "fetch" in answer:
        value = values[answer["fetch"]]
        if isinstance(value, dict):
            return value
        return {"dtype": answer["dtype"], "value": rounded(np.asarray(value).tolist())}
    if isinstance(answer, dict):
        return {key: filled(each, values, np) for key, each in answer.items()}
    return [filled(each, values, np) for each in answer] if isinstance(answer, list) else answer


def differs(found: Any, expected: Any) -> bool:
    """Whether two answers differ by more than rounding."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() != expected.keys() or any(differs(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) != len(expected) or any(map(differs, found, expected))
    if isinstance(found, float) and isinstance(expected, float):
        both_nan = found != found and expected != expected
        return not (both_nan or found == expected or abs(found - expected) <= 1e-5 + 1e-4 * abs(expected))
    return type(found) is not type(expected) or bool(found != expected)


def as_lines(answers_of_members: dict) -> str:
    """JSON with a line for each name."""
    rows = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in answers_of_members.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"
