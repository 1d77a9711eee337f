"""Random programs that ask for gradients, built alike of flowstone and, for the golden file, of TensorFlow.

`Program(tf, seed)` draws a program: vectors of two doubles go through smooth functions, gathers, branches,
loops, arrays, scans and derivatives inside the program, nested; variables of both kinds are made outside and
in bodies. Then it draws a call of ``tf.gradients`` for some of the values and inputs, with all its options;
`Program.differentiate_again` sometimes a second one for what the first gave. `answer` has what both gave:
kind, type, static shape and value of each gradient, or the class of the error. Nothing is drawn by what a
``tf`` answers, so both build the same.

`quotients` computes the same derivatives by differences: what `stop_gradient` and ``stop_gradients`` hold is
fed as it was. Programs that hold something inside a branch or a loop, where nothing can be fed, have none
(`exact`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

AT = (0.4, -0.6)  # the value of the program's input
DELTA = 1e-5
AGAIN = " in the second call"

SMOOTH: list[Callable[[Any, Any, Any], Any]] = [
    lambda tf, a, b: tf.sin(a) + b,
    lambda tf, a, b: tf.tanh(a) * b,
    lambda tf, a, b: a * 0.5 - tf.cos(b),
    lambda tf, a, b: tf.exp(-tf.square(a)) * b,
    lambda tf, a, b: tf.sqrt(tf.square(a) + 1.0) - b,
    lambda tf, a, b: tf.reduce_sum(a) * 0.2 + b,
    lambda tf, a, b: tf.concat([a[1:], b[:1]], 0),
    lambda tf, a, b: tf.add_n([a, b, a]) * 0.3,
    lambda tf, a, b: tf.reshape(tf.matmul(tf.reshape(a, [2, 1]), tf.reshape(b, [1, 2])), [4])[1:3],
    lambda tf, a, b: tf.identity(a) / (2.0 + tf.square(b)),
    lambda tf, a, b: tf.reverse(a, [0]) * 0.7 + tf.zeros_like(b),
    lambda tf, a, b: tf.stack(tf.unstack(tf.stack([a, b]), axis=0)[::-1])[0] - a * 0.1,
    lambda tf, a, b: tf.where(tf.constant([True, False]), a, b) * 0.9,
]


class Program:
    """One program. `slopes`: what ``tf.gradients`` gave; `xs`: by what; `total`: the scalar that is
    differentiated, as a tensor; `held`: tensors that count as constants; `exact`: whether all that do are
    there; `around`: what is being built, branches and loops, from the outside in.
    """

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf, self.random = tf, random.Random(seed)
        self.held: list[Any] = []
        self.exact = True
        self.around: list[str] = []
        self.made: list[Any] = []
        shape = self.random.choice([[2], [2], [2], [None], None])
        self.x = tf.placeholder(tf.float64, shape, name="x")
        self.variables = [self.variable(f"v{i}", [2]) for i in range(self.random.randint(1, 2))]
        self.tables = [self.variable(f"table{i}", [3, 2]) for i in range(self.random.randint(1, 2))]
        if self.random.random() < 0.3:
            self.tables.append(tf.constant([[0.3, -0.4], [0.9, 0.2], [-0.5, 0.7]], tf.float64, name="rows"))
        self.count = tf.placeholder_with_default(np.int32(self.random.randint(0, 5)), [], name="count")
        values = [tf.reshape(self.x, [2]) if self.random.random() < 0.5 else tf.tanh(self.x) * 1.0]
        values.append(tf.constant([0.3, -0.7], tf.float64))
        self.values = self.statements(
            values, self.count, self.random.randint(2, 4), self.random.choice([1, 2, 2, 3])
        )
        self.differentiate()

    def variable(self, name: str, shape: list[int]) -> Any:
        start = np.cos(1.0 + np.arange(np.prod(shape), dtype=np.float64)).reshape(shape)
        return self.tf.get_variable(
            name,
            shape,
            self.tf.float64,
            initializer=self.tf.constant_initializer(start),
            use_resource=self.random.random() < 0.5,
        )

    # ---- statements

    def statements(self, values: list[Any], count: Any, size: int, depth: int) -> list[Any]:
        """The values, and `size` more; `count`, an integer tensor, decides what branches are taken."""
        values = list(values)
        for _ in range(size):
            values.append(self.statement(values, count, depth))
        return values

    def last(self, kind: str, values: list[Any], count: Any, depth: int) -> Any:
        """The last of a few more values, inside a branch or a loop's body."""
        self.around.append(kind)
        found = self.statements(values, count, self.random.randint(1, 3), depth - 1)[-1]
        self.around.pop()
        return found

    def statement(self, values: list[Any], count: Any, depth: int) -> Any:
        a, b = (self.random.choice(values[-4:]) for _ in range(2))
        plain = [self.operation] * 4 + [self.rows, self.rows, self.weighted, self.stopped, self.derivative]
        nested = [
            self.branches,
            self.branches,
            self.cases,
            self.loop,
            self.loop,
            self.array,
            self.scan,
            self.mapped,
        ]
        kind = self.random.choice(plain + nested if depth else plain)
        return kind(values, a, b, count, depth)

    def operation(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        return self.random.choice(SMOOTH)(self.tf, a, b)

    def rows(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        """Rows of a table, added up."""
        tf, table = self.tf, self.random.choice(self.tables)
        kind = self.random.choice([tf.int32, tf.int64])
        ids = tf.constant([self.random.randrange(3) for _ in range(self.random.randint(1, 3))], kind)
        if self.random.random() < 0.3:
            ids = tf.cast(tf.stack([count % 3, (count + 1) % 3]), kind)
        how = self.random.choice(["gather", "gather", "embedding", "nd", "whole"])
        if "branch" in self.around and ("loop" in self.around or how == "nd") and self.random.random() < 0.9:
            how = "whole"  # TensorFlow mostly fails here: see `compare_gradients.py`
        if how == "gather":
            found = tf.gather(table, ids)
        elif how == "embedding":
            found = tf.nn.embedding_lookup(table, ids)
        elif how == "nd":
            found = tf.gather_nd(table, tf.expand_dims(ids, 1))
        else:
            found = tf.gather(table * 0.5, ids)
        return tf.reduce_sum(found, 0) * 0.4 + a

    def weighted(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        """Something times a variable, which is new sometimes."""
        if self.random.random() < 0.5:
            self.made.append(self.variable(f"made{len(self.made)}", [2]))
            return a * self.made[-1]
        return a * self.random.choice(self.variables) + b

    def stopped(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        held = self.tf.stop_gradient(self.random.choice([a, b, a * b]))
        if self.around:
            self.exact = False
        else:
            self.held.append(held)
        return held * a if self.random.random() < 0.7 else b - held

    def derivative(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        """A derivative as a value; outside of branches and loops, of all that was computed sometimes."""
        tf, inner = self.tf, tf_square(self.tf, a)
        if self.around or self.random.random() < 0.5:
            (slope,) = tf.gradients(self.random.choice(SMOOTH)(tf, inner, inner), inner)
            return b if slope is None else slope * 0.3 + b
        (slope,) = tf.gradients(values[-1], self.random.choice([values[0], a]))
        if slope is None:
            return b
        if self.random.random() < 0.7:
            slope = tf.stop_gradient(slope)
            self.held.append(slope)
        return tf.convert_to_tensor(slope) * 0.1 + b

    def branches(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        tf = self.tf
        taken = tf.equal(count % self.random.randint(2, 3), 0)
        return tf.cond(
            taken,
            lambda: self.last("branch", [*values, a], count, depth),
            lambda: self.last("branch", [*values, b], count, depth) if self.random.random() < 0.8 else b,
        )

    def cases(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        tf = self.tf
        pairs = [
            (tf.equal(count % 3, k), lambda value=value: self.last("branch", [*values, value], count, depth))
            for k, value in enumerate((a, b))
        ]
        return tf.case(pairs, default=lambda: self.operation(values, a, b, count, depth))

    def loop(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        """A loop of two values, of which one or both are used, or one twice."""
        tf, times = self.tf, self.random.choice([0, 1, 2, 3])
        options: dict[str, Any] = {"parallel_iterations": self.random.choice([1, 10])}
        if self.random.random() < 0.2:
            options["maximum_iterations"] = self.random.choice([1, 2])
        if self.random.random() < 0.2:
            options["swap_memory"] = True
        if self.random.random() < 0.07:
            options["back_prop"], self.exact = False, False
        form = self.random.choice(["ring", "ring", "swap", "keep", "reset"])

        def body(i: Any, x: Any, y: Any) -> Any:
            found = self.last("loop", [*values, y, x], i, depth)
            following = {"ring": y * 0.9, "swap": x * 0.9, "keep": y, "reset": tf.ones_like(y) * 0.5}[form]
            return [i + 1, found, following]

        bound = tf.minimum(count, times) if self.random.random() < 0.3 else times
        start = [tf.constant(0), a, b]
        _, x, y = tf.while_loop(lambda i, x, y: i < bound, body, start, **options)
        return self.random.choice([lambda: x + y, lambda: x, lambda: y * x, lambda: tf.sin(x) + x * y])()

    def array(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        tf, times = self.tf, self.random.choice([1, 2, 3])
        array = tf.TensorArray(tf.float64, times + 1, clear_after_read=False, element_shape=[2]).write(0, a)

        def body(i: Any, written: Any) -> Any:
            return i + 1, written.write(i + 1, self.last("loop", [*values, written.read(i)], i, depth))

        _, written = tf.while_loop(lambda i, _: i < times, body, [tf.constant(0), array])
        how = self.random.choice(["stack", "gather", "concat", "read"])
        if how == "gather":
            return tf.reduce_sum(written.gather([times, 0]), 0) + b * 0.1
        if how == "concat":
            return tf.reduce_sum(tf.reshape(written.concat(), [-1, 2]), 0)
        return written.read(times) if how == "read" else tf.reduce_sum(written.stack(), 0) + b * 0.1

    def scan(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        tf = self.tf
        rows = tf.stack([a, b, self.values_of_table()])
        function = lambda sofar, row: self.last("loop", [*values[-2:], sofar, row], count, depth)  # noqa: E731
        last = self.random.random() < 0.5
        found = (
            tf.scan(function, rows, initializer=a) if self.random.random() < 0.7 else tf.scan(function, rows)
        )
        return found[-1] if last else tf.reduce_sum(found, 0) * 0.3

    def mapped(self, values: list[Any], a: Any, b: Any, count: Any, depth: int) -> Any:
        tf = self.tf
        rows = tf.stack([a, self.values_of_table()])
        if self.random.random() < 0.5:
            function, items = (lambda row: self.last("loop", [*values[-2:], row], count, depth)), rows
        else:
            function = lambda pair: self.last("loop", [*values[-1:], pair[0], pair[1]], count, depth)  # noqa: E731
            items = (rows, tf.stack([b, a]))
        return tf.reduce_sum(tf.map_fn(function, items, dtype=tf.float64), 0) * 0.5

    def values_of_table(self) -> Any:
        return self.tf.gather(self.random.choice(self.tables), self.random.randrange(3))

    # ---- the gradients

    def differentiate(self) -> None:
        tf, values = self.tf, self.values
        ys = [values[-1]] + self.random.sample(values[2:], self.random.choice([0, 0, 1]))
        self.xs = [self.x] if self.random.random() < 0.8 else [values[0]]
        self.xs += self.random.sample([*self.variables, *self.tables], 2) + self.made
        if self.random.random() < 0.3:
            self.xs.append(self.random.choice(values[1:-1]))
        flows = [self.flow() for _ in ys]
        stops = [self.random.choice(values[1:-1])] if self.random.random() < 0.15 else []
        self.lasting = list(self.held)
        self.held += [*stops, *(flow for flow in flows if flow is not None)]
        self.total = tf.add_n(
            [
                tf.reduce_sum(y if flow is None else y * tf.convert_to_tensor(flow))
                for y, flow in zip(ys, flows)
            ]
        )
        options: dict[str, Any] = {}
        if any(flow is not None for flow in flows):
            options["grad_ys"] = flows
        if stops:
            options["stop_gradients"] = stops
        if self.random.random() < 0.2:
            options["unconnected_gradients"] = tf.UnconnectedGradients.ZERO
        if self.random.random() < 0.3:
            options["aggregation_method"] = self.random.choice([0, 1, 2])
        if self.random.random() < 0.2:
            options["colocate_gradients_with_ops"] = True
        if self.random.random() < 0.2:
            options["gate_gradients"] = True
        self.slopes = tf.gradients(ys, self.xs, **options)

    def differentiate_again(self) -> None:
        """Sometimes the gradients become those of sines of the gradients."""
        tf = self.tf
        if self.random.random() < 0.25:
            first = [
                tf.reduce_sum(tf.sin(slope)) for slope in map(self.dense, self.slopes) if slope is not None
            ]
            if first:
                self.held = self.lasting  # what only the first call took for constant
                self.total = tf.add_n(first)
                self.slopes = tf.gradients(first, self.xs)

    def flow(self) -> Any:
        """A gradient with respect to a y: none is given, a constant, or a value of the program."""
        kind = self.random.choice(["none", "none", "constant", "value"])
        if kind == "none":
            return None
        if kind == "constant":
            return self.tf.constant([0.5, -2.0], self.tf.float64)
        return self.tf.identity(self.random.choice(self.values[1:]))

    def dense(self, slope: Any) -> Any:
        return None if slope is None else self.tf.convert_to_tensor(slope)


def tf_square(tf: Any, a: Any) -> Any:
    return tf.square(a) + a


# ---- answers


def answer(tf: Any, seed: int, config: Any = None) -> Any:
    """Of each gradient its kind, type, static shapes and dense value, None for none; or an error's class,
    with `AGAIN` for one of `Program.differentiate_again`.
    """
    with tf.Graph().as_default():
        call = ""
        try:
            program, call = Program(tf, seed), AGAIN
            program.differentiate_again()
            call = ""
            found = [x for x in program.slopes if x is not None]
            with tf.Session(config=config) as session:
                session.run(tf.global_variables_initializer())
                values = iter(
                    session.run([program.dense(x) for x in found], {program.x: AT}) if found else ()
                )
            return [None if x is None else [*facts(tf, x), rounded(next(values))] for x in program.slopes]
        except Exception as error:
            return type(error).__name__ + call


def facts(tf: Any, slope: Any) -> list[str]:
    """What is known of a gradient before it is computed."""
    if isinstance(slope, tf.IndexedSlices):
        parts = (slope.values, slope.indices, slope.dense_shape)
        return ["slices", " ".join(f"{x.dtype.name}{static(x)}" for x in parts)]
    return ["tensor", f"{slope.dtype.name}{static(slope)}"]


def static(tensor: Any) -> str:
    dims = tensor.shape.as_list() if tensor.shape.ndims is not None else None
    return "<unknown>" if dims is None else str(dims).replace("None", "?")


def rounded(value: Any) -> list[float]:
    return [float(f"{x:.10g}") for x in np.asarray(value).ravel().tolist()]


# ---- quotients


def quotients(tf: Any, seed: int, again: bool = True) -> tuple[list[Any], list[Any]] | None:
    """The gradients (those of the first call, if not `again`) and the difference quotients, flat, of those
    that are not None; None if a difference quotient says nothing here.
    """
    with tf.Graph().as_default():
        program = Program(tf, seed)
        if again:
            program.differentiate_again()
        if not program.exact:
            return None
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            slopes = [program.dense(x) for x in program.slopes]
            given = {program.x: np.array(AT)}
            held = session.run(program.held, given)
            given.update(zip(program.held, held))
            found, expected = [], []
            for x, slope in zip(program.xs, slopes):
                if slope is None or x in program.held:
                    continue
                found.append(session.run(slope, given))
                expected.append(_differences(session, program, x, given))
        return found, expected


def _differences(session: Any, program: Program, x: Any, given: dict[Any, Any]) -> Any:
    """The derivative of the program's total by each element of `x`, a tensor or variable."""
    is_tensor = isinstance(x, program.tf.Tensor)
    at = np.array(session.run(x, given))
    slopes = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        totals = []
        for step in (DELTA, -DELTA):
            moved = at.copy()
            moved[index] += step
            if not is_tensor:
                x.load(moved, session)
            totals.append(session.run(program.total, {**given, x: moved} if is_tensor else given))
        slopes[index] = (totals[0] - totals[1]) / (2 * DELTA)
    if not is_tensor:
        x.load(at, session)
    return slopes
