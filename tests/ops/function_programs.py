"""Programs with functions, run alike by flowstone and, for the golden files, by TensorFlow.

Each takes the module ``tf``, the module with ``Defun`` and the module with ``If``, ``While``, ``For`` and
``Gradient``, builds a graph and returns tensors. `run` gives their values, `node_lines` the graph's nodes and
functions. `MISTAKES` are programs that both must refuse with the same class of error; the words are what both
messages have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Program = Callable[[Any, Any, Any], Any]
PROGRAMS: dict[str, Program] = {}
NAMED: list[str] = []
"""Those of which nodes and functions are compared."""
MISTAKES: dict[str, tuple[str, Program]] = {}


def program(named: bool = False) -> Callable[[Program], Program]:
    """Adds a program to the table."""

    def add(function: Program) -> Program:
        PROGRAMS[function.__name__] = function
        if named:
            NAMED.append(function.__name__)
        return function

    return add


def mistake(words: str) -> Callable[[Program], Program]:
    """Adds a program that is refused with a message that contains `words`."""

    def add(function: Program) -> Program:
        MISTAKES[function.__name__] = words, function
        return function

    return add


def x(tf: Any) -> Any:
    return tf.constant([0.5, -1.5, 2.0], name="x")


# ---- Defun


@program(named=True)
def one_call(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.float32, func_name="Swapped")
    def swapped(a: Any, b: Any) -> Any:
        return b - a

    return swapped(x(tf), tf.constant(1.0))


@program(named=True)
def several_results(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.int32, func_name="Two", out_names=["total", "count"])
    def two(a: Any, n: Any) -> Any:
        return tf.reduce_sum(a), n + 1

    total, count = two(x(tf), 3, name="first")
    return [total, count, *two(x(tf) * 2.0, count)]


@program(named=True)
def nested(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, func_name="Inner")
    def inner(a: Any) -> Any:
        return a * a

    @functions.Defun(tf.float32, func_name="Outer")
    def outer(a: Any) -> Any:
        return inner(a) + inner(inner(a))

    return outer(x(tf))


@program(named=True)
def captured(tf: Any, functions: Any, forms: Any) -> Any:
    w = tf.constant(3.0, name="w")

    @functions.Defun(tf.float32, func_name="Captures")
    def captures(a: Any) -> Any:
        return a * w + tf.stop_gradient(w)

    y = captures(x(tf))
    return [y, *tf.gradients(y, [w])]


@program()
def captured_through_two(tf: Any, functions: Any, forms: Any) -> Any:
    w = tf.constant(3.0, name="w")

    @functions.Defun(tf.float32, func_name="Deep")
    def deep(a: Any) -> Any:
        return a * w

    @functions.Defun(tf.float32, func_name="Shallow")
    def shallow(a: Any) -> Any:
        return deep(a) + w

    y = shallow(x(tf))
    return [y, *tf.gradients(y, [w])]


@program(named=True)
def types_by_call(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(func_name="Any")
    def any_type(a: Any, b: Any) -> Any:
        return a + b

    return [any_type(x(tf), 1.0), any_type(tf.constant(1), tf.constant(2)), any_type(x(tf), x(tf))]


@program()
def no_arguments(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(func_name="Nothing")
    def constant() -> Any:
        return tf.constant([1, 2])

    return constant()


@program()
def variable_arguments(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.float32, tf.float32, func_name="AddAll")
    def add_all(*args: Any) -> Any:
        return tf.add_n(list(args))

    return add_all(x(tf), x(tf), x(tf))


@program()
def shape_function(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, func_name="Shaped", shape_func=lambda op: [op.inputs[0].shape])
    def shaped(a: Any) -> Any:
        return a * 2.0

    y = shaped(x(tf))
    return [y, tf.constant(y.shape.as_list())]


@program()
def branches_and_loops_inside(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.int32, func_name="Looping")
    def looping(a: Any, n: Any) -> Any:
        def body(i: Any, y: Any) -> Any:
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: y * a, lambda: y + 1.0)

        return tf.while_loop(lambda i, y: i < n, body, [0, a], [tf.TensorShape([]), tf.TensorShape(None)])[1]

    return [looping(x(tf), 3), looping(x(tf), 0)]


@program()
def call_in_a_loop_and_a_branch(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, func_name="Step")
    def step(a: Any) -> Any:
        return a * 0.5 + 1.0

    y = tf.while_loop(
        lambda i, y: i < 3,
        lambda i, y: (i + 1, step(y)),
        [0, x(tf)],
        [tf.TensorShape([]), tf.TensorShape(None)],
    )[1]
    p = tf.placeholder_with_default(False, [])
    z = tf.cond(p, lambda: step(y), lambda: step(step(y)))
    return [y, z, *tf.gradients(z, [y])]


@program()
def variables_outside(tf: Any, functions: Any, forms: Any) -> Any:
    v = tf.get_variable("v", initializer=[1.0, 2.0, 3.0], use_resource=True)

    @functions.Defun(tf.float32, func_name="Reads")
    def reads(a: Any) -> Any:
        return a * v

    y = reads(x(tf))
    return [y, *tf.gradients(y, [v])]


@program()
def random_numbers_are_drawn_by_every_call(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(func_name="Draw")
    def draw() -> Any:
        return tf.random_uniform([4])

    return tf.reduce_all(tf.not_equal(draw(), draw()))


# ---- gradients


@program()
def gradient_of_the_body(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.float32, func_name="Product")
    def product(a: Any, b: Any) -> Any:
        return tf.sin(a) * b

    a, b = x(tf), x(tf) + 1.0
    return tf.gradients(product(a, b), [a, b])


@program()
def gradient_of_one_result(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.float32, func_name="Both")
    def both(a: Any, b: Any) -> Any:
        return a * b, a + b

    a, b = x(tf), x(tf) + 1.0
    first, second = both(a, b)
    return [tf.gradients(first, [a, b]), tf.gradients(second * second, [a, b])]


@program(named=True)
def gradient_function(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.float32, func_name="TwiceGrad")
    def twice_gradient(a: Any, dy: Any) -> Any:
        return dy * 100.0

    @functions.Defun(tf.float32, func_name="Twice", grad_func=twice_gradient)
    def twice(a: Any) -> Any:
        return a * 2.0

    a = x(tf)
    y = twice(a)
    return [y, *tf.gradients(y, a)]


@program()
def python_gradient_function(tf: Any, functions: Any, forms: Any) -> Any:
    def gradient(op: Any, dy: Any) -> Any:
        return dy * op.outputs[0] * 10.0

    @functions.Defun(tf.float32, func_name="Tenfold", python_grad_func=gradient)
    def twice(a: Any) -> Any:
        return a * 2.0

    a = x(tf)
    return tf.gradients(twice(a), a)


@program()
def integer_arguments_have_no_gradient(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.int32, func_name="Scaled")
    def scaled(a: Any, n: Any) -> Any:
        return a * tf.cast(n, tf.float32)

    a, n = x(tf), tf.constant(3)
    return tf.gradients(scaled(a, n), a)


@program()
def symbolic_gradient(tf: Any, functions: Any, forms: Any) -> Any:
    @functions.Defun(tf.float32, tf.float32, func_name="Power")
    def power(a: Any, b: Any) -> Any:
        return a * a * b

    return forms.Gradient([x(tf), tf.constant(2.0), tf.ones([3])], power)


# ---- functional forms


def defined(tf: Any, functions: Any, *types: Any, name: str) -> Callable[[Any], Any]:
    return lambda function: functions.Defun(*types, func_name=name)(function)


@program(named=True)
def conditional(tf: Any, functions: Any, forms: Any) -> Any:
    then = defined(tf, functions, tf.float32, tf.float32, name="Then")(lambda a, b: (a + b, b))
    other = defined(tf, functions, tf.float32, tf.float32, name="Else")(lambda a, b: (a * b, a))
    a, b = x(tf), tf.constant(2.0)
    found = []
    for value in (True, False):
        p = tf.placeholder_with_default(value, [])
        found += forms.If(p, [a, b], then, other)
    return found


@program()
def predicates_of_other_types(tf: Any, functions: Any, forms: Any) -> Any:
    then = defined(tf, functions, tf.float32, name="Then")(lambda a: a + 1.0)
    other = defined(tf, functions, tf.float32, name="Else")(lambda a: a - 1.0)
    values = [0, 3, 0.0, 0.5, "", "text", [], [0], [[], []]]
    chosen = [tf.placeholder_with_default(tf.constant(v), None) for v in values]
    return [forms.If(p, [tf.constant(0.0)], then, other)[0] for p in chosen]


@program(named=True)
def loop(tf: Any, functions: Any, forms: Any) -> Any:
    types = tf.int32, tf.float32
    goes_on = defined(tf, functions, *types, name="GoesOn")(lambda i, a: i < 4)
    body = defined(tf, functions, *types, name="Body")(lambda i, a: (i + 1, a * 2.0))
    return forms.While([0, x(tf)], goes_on, body)


@program()
def counting_loop(tf: Any, functions: Any, forms: Any) -> Any:
    body = defined(tf, functions, tf.int32, tf.float32, name="Step")(
        lambda i, a: a * 2.0 + tf.cast(i, tf.float32)
    )
    ranges = [(0, 3, 1), (5, 0, -2), (3, 3, 1), (0, 7, 3)]
    return [forms.For(*bounds, [tf.constant(1.0)], body)[0] for bounds in ranges]


@program()
def loop_with_captured_values(tf: Any, functions: Any, forms: Any) -> Any:
    w = tf.constant(3.0)
    goes_on = defined(tf, functions, tf.float32, tf.float32, name="GoesOn")(lambda a, w: a < 100.0)
    body = defined(tf, functions, tf.float32, tf.float32, name="Body")(lambda a, w: (a * w, w))
    return forms.While([tf.constant(1.0), w], goes_on, body)


# ---- refused


def squared(tf: Any, functions: Any) -> Any:
    @functions.Defun(tf.float32, func_name="Squared")
    def function(a: Any) -> Any:
        return a * a

    return function


@mistake("Expected 1 arguments, got 2")
def too_many_arguments(tf: Any, functions: Any, forms: Any) -> Any:
    return squared(tf, functions)(x(tf), x(tf))


@mistake("Expected 1 arguments, got 0")
def too_few_arguments(tf: Any, functions: Any, forms: Any) -> Any:
    return squared(tf, functions)()


@mistake("passed int32 expected float")
def argument_of_another_type(tf: Any, functions: Any, forms: Any) -> Any:
    return squared(tf, functions)(tf.constant(1))


@mistake("Unknown keyword arguments")
def unknown_keyword(tf: Any, functions: Any, forms: Any) -> Any:
    return squared(tf, functions)(x(tf), device="a")


@mistake("input types")
def types_that_do_not_match(tf: Any, functions: Any, forms: Any) -> Any:
    return functions.Defun(tf.float32)(lambda a, b: a)


@mistake("defaults")
def function_with_defaults(tf: Any, functions: Any, forms: Any) -> Any:
    return functions.Defun(tf.float32)(lambda a=1: a)


@mistake("callable")
def no_function(tf: Any, functions: Any, forms: Any) -> Any:
    return functions.Defun(tf.float32)(3)


@mistake("can not return None")
def function_that_returns_none(tf: Any, functions: Any, forms: Any) -> Any:
    return functions.Defun(tf.float32)(lambda a: (a, None))(x(tf))


@mistake("")
def two_functions_of_one_name(tf: Any, functions: Any, forms: Any) -> Any:
    squared(tf, functions)(x(tf))
    return functions.Defun(tf.float32, func_name="Squared")(lambda a: a + 1.0)(x(tf))


@mistake("an op with the same name already exists")
def function_with_the_name_of_an_op(tf: Any, functions: Any, forms: Any) -> Any:
    return functions.Defun(tf.float32, func_name="Square")(lambda a: a + 1.0)(x(tf))


# ---- running


def flat(structure: Any) -> list[Any]:
    """The leaves of nested lists."""
    if isinstance(structure, (list, tuple)):
        return [leaf for item in structure for leaf in flat(item)]
    return [structure]


def run(modules: tuple[Any, Any, Any], name: str) -> list[Any]:
    """The values of the results, as lists; "None" for None."""
    tf = modules[0]
    with tf.Graph().as_default():
        found = flat(PROGRAMS[name](*modules))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = iter(session.run([leaf for leaf in found if leaf is not None]))
    return ["None" if leaf is None else np.asarray(next(values)).tolist() for leaf in found]


def node_lines(modules: tuple[Any, Any, Any], name: str) -> list[str]:
    """``NAME TYPE INPUTS`` for all nodes, and of each function a line with its signature and its nodes."""
    with modules[0].Graph().as_default() as graph:
        PROGRAMS[name](*modules)
        message = graph.as_graph_def()
    lines = sorted(" ".join([node.name, node.op, *node.input]) for node in message.node)
    for function in sorted(message.library.function, key=lambda f: f.signature.name):
        lines += [signature_line(function), *(f"  {node.name} {node.op}" for node in function.node_def)]
    return lines + [f"gradient {g.function_name} {g.gradient_func}" for g in message.library.gradient]


def signature_line(function: Any) -> str:
    """Name, arguments, results and what they are of a FunctionDef."""
    signature = function.signature
    arguments = " ".join(f"{a.name}:{a.type}" for a in signature.input_arg)
    results = " ".join(f"{a.name}:{a.type}" for a in signature.output_arg)
    return f"function {signature.name} ({arguments}) -> ({results}) stateful={signature.is_stateful}"


def refusal(modules: tuple[Any, Any, Any], name: str) -> tuple[str, str]:
    """Class and message of the error that a program meets."""
    with modules[0].Graph().as_default():
        try:
            MISTAKES[name][1](*modules)
        except Exception as error:
            return type(error).__name__, str(error)
    return "no error", ""
