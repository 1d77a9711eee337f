"""Converted Python functions: values and errors are those of TensorFlow 1.15.5, where it has them.

Where TensorFlow 1.15 fails and a value is asked for here, the test says so.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.functions.initialised import run

import flowstone as tf
from flowstone.framework.names.refusals import NotInGraphModeError

pytestmark = pytest.mark.usefixtures("graph")
Feature = tf.autograph.experimental.Feature


def value(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of a traced function of constants, as nested Python values."""
    result = run(tf.function(function, **options)(*[tf.constant(x) for x in args]))
    return tf.nest.map_structure(lambda x: x.tolist() if hasattr(x, "tolist") else x, result)


# ---- if


def if_only(x: Any) -> Any:
    if x > 0:
        y = x * 2
    return y


def if_return(x: Any) -> Any:
    if x > 0:
        return x * 2
    return x * 3


def if_without_else(x: Any) -> Any:
    if x > 0:
        return x * 2


def if_types(x: Any) -> Any:
    if x > 0:
        y = 1
    else:
        y = 2.0
    return y


def if_structures(x: Any) -> Any:
    if x > 0:
        y = [1.0, 2.0]
    else:
        y = 2.0
    return y


def if_none_in_both(x: Any) -> Any:
    y, z = None, x
    if x > 0:
        z = x + 1.0
    else:
        y = None
    return z if y is None else y


def elif_(x: Any) -> Any:
    if x > 10:
        r = 1
    elif x > 5:
        r = 2
    else:
        r = 3
    return r


def if_local(x: Any) -> Any:
    if x > 0:
        only_here = x * 2
        y = only_here + 1
    else:
        y = x
    return y


def if_of_python(x: Any, flag: bool = True) -> Any:
    if flag:
        y = x
    return y


def attributes(x: Any) -> Any:
    class Holder:
        v = x

    holder, items = Holder(), {"a": x}
    if x > 0:
        holder.v = x * 2
        items["a"] = x * 3
    return holder.v, items["a"]


def try_and_with(x: Any) -> Any:
    try:
        with tf.name_scope("a"):
            if x > 0:
                return x
            else:
                return -x
    finally:
        pass


def return_in_two_levels(x: Any) -> Any:
    if x > 0:
        if x > 10:
            return x
        else:
            y = x * 2
        return y + 1
    return -x


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (if_return, 1.0, 2.0),
        (if_return, -1.0, -3.0),
        (if_none_in_both, 1.0, 2.0),
        (elif_, 7.0, 2),
        (elif_, 11.0, 1),
        (elif_, 0.0, 3),
        (if_local, 1.0, 3.0),
        (if_of_python, 2.0, 2.0),
        (attributes, 2.0, (4.0, 6.0)),
        (try_and_with, -2.0, 2.0),
        (return_in_two_levels, 11.0, 11.0),
        (return_in_two_levels, 2.0, 5.0),
        (return_in_two_levels, -2.0, 2.0),
    ],
)
def test_if(function: Any, argument: Any, expected: Any) -> None:
    assert value(function, argument) == expected


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (if_only, ValueError, r"must also be initialized in the else branch: \('y',\)"),
        (if_without_else, ValueError, "A value must also be returned from the else branch"),
        (if_types, TypeError, '"y" has dtype int32 in the TRUE branch, but dtype=float32 in the FALSE'),
        (if_structures, TypeError, '"y" does not have the same nested structure in the TRUE and FALSE'),
    ],
)
def test_branches_that_differ(function: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        value(function, 1.0)


# ---- while


def while_(x: Any) -> Any:
    i, s = 0, 0.0
    while s < x:
        s += 2.0
        i += 1
    return i, s


def while_local(x: Any) -> Any:
    while x > 0:
        t = x * 2
        x -= t / 2
    return x


def while_undefined(x: Any) -> Any:
    while x > 0:
        x -= 1.0
        y = x
    return y


def while_shape(x: Any) -> Any:
    y = x
    while tf.reduce_sum(x) > 0:
        y = tf.concat([y, y], 0)
        x -= 1.0
    return y


def while_type(x: Any) -> Any:
    i = 0
    while x > 0:
        i = x
        x -= 1.0
    return i


def while_none(x: Any) -> Any:
    y = None
    while x > 0:
        x -= 1.0
        y = x
    return y


def while_jumps(x: Any) -> Any:
    i = tf.constant(0)
    while i < 100:
        i += 1
        if i * i > x:
            break
        if tf.equal(i, 2):
            continue
        x -= 1
    return i, x


def while_else(x: Any) -> Any:
    while x > 0:
        x -= 1
        if x > 100:
            break
    else:
        x = tf.constant(50)
    return x


def while_structures(x: Any) -> Any:
    s = {"a": x, "b": (x, [x])}
    while s["a"] < 10.0:
        s = {"a": s["a"] * 2, "b": (x, [s["a"]])}
    return s


def while_return(x: Any) -> Any:
    i = 0
    while i < x:
        if x > 1:
            return i
        i += 1
    return -1


def while_of_python(x: Any) -> Any:
    i = 0
    while i < 3:
        i += 1
        if i == 2:
            continue
        if i == 3:
            return x * i
    return x


def with_options(x: Any) -> Any:
    i = tf.constant(0)
    while i < 10:
        tf.autograph.experimental.set_loop_options(maximum_iterations=3)
        i += 1
    return i


def with_invariants(x: Any) -> Any:
    y, i = x, 0
    while i < tf.constant(2):
        tf.autograph.experimental.set_loop_options(shape_invariants=[(y, tf.TensorShape([None]))])
        y = tf.concat([y, y], 0)
        i += 1
    return y


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (while_, 7.0, (4, 8.0)),
        (while_local, 7.0, 0.0),
        (while_jumps, 20, (5, 17)),
        (while_structures, 2.0, {"a": 16.0, "b": (2.0, [8.0])}),
        (while_of_python, 2.0, 6.0),
        (while_else, 3, 50),  # TensorFlow 1.15 leaves `else` out
        (with_options, 0, 3),  # TensorFlow 1.15 leaves it out
        (with_invariants, [1.0], [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_while(function: Any, argument: Any, expected: Any) -> None:
    assert value(function, argument) == expected


@pytest.mark.parametrize(
    ("function", "argument", "kind", "message"),
    [
        (while_undefined, 1.0, ValueError, r"must be defined before the loop: \('y',\)"),
        (while_shape, [1.0], ValueError, r'"y" has shape \(1,\) before the loop, but shape \(2,\) after one'),
        (while_type, 1.0, TypeError, '"i" has dtype int32 before the loop, but dtype float32 after one'),
        (while_none, 1.0, ValueError, "None values not supported"),
        (while_return, 3, ValueError, "value must also be returned|not supported within a TensorFlow loop"),
    ],
)
def test_loops_whose_variables_change(function: Any, argument: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        value(function, argument)


# ---- for


def for_tensor(x: Any) -> Any:
    s = 0.0
    for e in x:
        if e > 2.0:
            continue
        s += e
    return s


def for_range(x: Any) -> Any:
    s = 0
    for i in range(x):
        s += i
    return s


def for_backwards(n: Any) -> Any:
    s = 0
    for i in tf.range(n, 0, -2):
        s = s * 10 + i
    return s


def for_step(n: Any) -> Any:
    s = 0
    for i in tf.range(7, 0, n):
        s = s * 10 + i
    return s


def for_in_for(n: Any) -> Any:
    s = 0
    for i in tf.range(n):
        for j in tf.range(i):
            if j > 2:
                break
            s += j
        while s > 5:
            s -= 1
    return s


def for_rows(n: Any) -> Any:
    s = 0.0
    for a in tf.zeros([n, 2]):
        s += tf.reduce_sum(a) + 1.0
    return s


def for_enumerate(x: Any) -> Any:
    s = 0
    for i, e in enumerate(x):
        s += i * e
    return s


def for_dataset(x: Any) -> Any:
    s = tf.constant(0, tf.int64)
    for e in tf.data.Dataset.range(5):
        s += e
    return s


def for_dataset_with_break(x: Any) -> Any:
    s = tf.constant(0, tf.int64)
    for e in tf.data.Dataset.range(5):
        if tf.equal(e, 3):
            break
        s += e
    return s


def for_array(x: Any) -> Any:
    a = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    for _ in tf.range(3):
        a = a.write(a.size(), x)
    return a.stack()


def for_list(x: Any) -> Any:
    found = []
    for i in range(3):
        found.append(x * i)
    return found


def for_generator(x: Any) -> Any:
    def numbers() -> Any:
        for i in range(3):
            yield x * i

    s = 0.0
    for e in numbers():
        s += e
    return s


def for_target(x: Any) -> Any:
    for e in x:
        x = x + e
    return e


def for_return(x: Any) -> Any:
    for e in x:
        if e > 1.0:
            return e
    return 0.0


@pytest.mark.parametrize(
    ("function", "argument", "expected"),
    [
        (for_tensor, [1.0, 2.0, 3.0], 3.0),
        (for_range, 5, 10),
        (for_backwards, 7, 7531),
        (for_step, -2, 7531),
        (for_step, -3, 741),
        (for_in_for, 6, 5),
        (for_rows, 7, 7.0),
        (for_enumerate, [1, 2, 3], 8),  # TensorFlow 1.15 refuses
        (for_dataset, 2, 10),
        (for_dataset_with_break, 2, 3),  # TensorFlow 1.15 gives 10
        (for_array, 2.0, [2.0, 2.0, 2.0]),
        (for_list, 2, [0, 2, 4]),
        (for_generator, 2.0, 6.0),
    ],
)
def test_for(function: Any, argument: Any, expected: Any) -> None:
    assert value(function, argument) == expected


@pytest.mark.parametrize(
    ("function", "argument", "message"),
    [
        (for_target, [1.0, 2.0], r"must be defined before the loop: \('e',\)"),
        (for_return, [1.0, 2.0], "return statements are not supported within a TensorFlow loop"),
        (for_tensor, 7.0, "scalar"),
    ],
)
def test_loops_over_tensors_that_are_refused(function: Any, argument: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        value(function, argument)


# ---- expressions and functions of Python's


def logic(x: Any) -> Any:
    return (x > 1.0 and x < 3.0), (x > 1.0 or x < 0.0), not x > 1.0, (2.0 if x > 1.0 else 3.0)


def chained(x: Any) -> Any:
    return 1.0 < x < 3.0


def of_python(x: Any) -> Any:
    seen = []

    def note(result: Any) -> Any:
        seen.append(result)
        return result

    found = note(0) and note(1), note("") or note("b"), not note([]), 1 < note(2) < 3, 3 if note(True) else 4
    assert note(len(seen) == 6), "not in order"
    return [str(found), str(seen)]


def equality(x: Any) -> Any:
    return (1 if x == 2.0 else 0), (x != 2.0) is True


def asserted(x: Any) -> Any:
    assert x > 1.0, "bad value"
    return x


def builtins(x: Any) -> Any:
    return len(x), int(x[0]), float(x[0]), abs(x), range(3)[1], max(1, 2)


def test_expressions() -> None:
    assert value(logic, 2.0) == (True, True, False, 2.0)
    assert value(chained, 2.0) is True  # TensorFlow 1.15 refuses
    assert value(builtins, [2, -3]) == (2, 2, 2.0, [2, 3], 1, 2)


def test_python_values_keep_pythons_meaning() -> None:
    found, seen = value(of_python, 1.0)
    assert found == b"(0, 'b', True, True, 3)"
    assert seen == b"[0, '', 'b', [], 2, True, True]"


def test_equality_is_identity_unless_the_feature_is_asked_for() -> None:
    assert value(equality, 2.0) == (0, True)
    features = Feature.EQUALITY_OPERATORS
    assert value(equality, 2.0, experimental_autograph_options=features) == (1, False)
    assert value(equality, 2.0, experimental_autograph_options=(Feature.ALL,)) == (1, False)


def test_assertions() -> None:
    assert value(asserted, 2.0) == 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[bad value\]"):
        value(asserted, 0.0)


def test_print_is_pythons(capsys: Any) -> None:
    def f(x: Any) -> Any:
        print("x is", x)
        return x

    assert value(f, 2.0) == 2.0
    assert capsys.readouterr().out == 'x is Tensor("x:0", shape=(), dtype=float32)\n'


# ---- which functions are converted


class Methods:
    def __init__(self, k: float) -> None:
        self.k = k
        self.total = tf.constant(0.0)

    def m(self, x: Any) -> Any:
        if x > self.k:
            return x
        return self.h(x)

    def h(self, x: Any) -> Any:
        if x > 0.0:
            return x * 10.0
        else:
            return x * 100.0

    def __call__(self, x: Any) -> Any:
        for _ in tf.range(3):
            self.total += x
        return self.total


class Derived(Methods):
    def m(self, x: Any) -> Any:
        if x > 5.0:
            return super().m(x)
        return super().m(-x)


number = 1.0


def with_global(x: Any) -> Any:
    global number
    if x > 0:
        number = x * 2
    else:
        number = x * 3
    return number


def with_nonlocal(x: Any) -> Any:
    y = x

    def inner() -> None:
        nonlocal y
        if x > 0:
            y = x * 2

    inner()
    return y


def chosen(a: Any, x: Any) -> Any:
    if x > a:
        return x
    else:
        return a


def nested(x: Any) -> Any:
    def g(y: Any) -> Any:
        if y > 1.0:
            return y
        else:
            return -y

    return g(x), (lambda z: z if z > 0.0 else -z)(x)


def twice(function: Any) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * 2

    return wrapped


@twice
def decorated(x: Any, *, least: Any = 1.0) -> Any:
    return x if x > least else -x


def test_methods_and_callables() -> None:
    assert [value(Methods(1.0).m, x) for x in (2.0, 0.5, -1.0)] == [2.0, 5.0, -100.0]
    assert [value(Derived(1.0).m, x) for x in (6.0, -0.5, -2.0)] == [6.0, 5.0, 2.0]
    callable_object = Methods(1.0)
    assert value(lambda x: callable_object(x), 2.0) == 6.0


def test_globals_closures_partials_and_nested_functions() -> None:
    assert value(with_global, 2.0) == 4.0
    assert isinstance(number, tf.Tensor)
    assert value(with_nonlocal, 2.0) == 4.0  # TensorFlow 1.15 refuses
    assert value(functools.partial(chosen, 1.0), 0.5) == 1.0
    assert value(nested, -2.0) == (2.0, 2.0)
    assert value(decorated, -2.0) == 4.0
    assert value(lambda x: decorated(x, least=-5.0), -2.0) == -4.0


def lambdas_on_one_line() -> list[Any]:
    """Functions, three a line."""
    y, z = 3.0, 7.0

    def holding(f: Any) -> Any:
        return lambda x: f(x)

    # fmt: off
    operators = (lambda x: x + 2.0), (lambda x: x * 2.0), (lambda x: 2.0 - x)
    values = (lambda x: x * 2), (lambda x: x * 2.5), (lambda x: x * 1.0)
    branches = (lambda x: x if x > 0 else -x), (lambda x: x if x > 1 else -x), (lambda x: x if x < 1 else 5.0)
    captured = (lambda x: x + y), (lambda x: x + z), (lambda x: y - z + x)
    inner = holding(lambda x: x + 1.0), holding(lambda x: x * 3.0), holding(lambda x: (lambda v: v - x)(2.0))
    defaults = (lambda x, k=1.0: x + k), (lambda x, k=2.0: x - k), (lambda x, *k: x + len(k))
    # fmt: on
    return [*operators, *values, *branches, *captured, *inner, *defaults]


@pytest.mark.parametrize("given", [-3.0, 0.5, 4.0])
def test_lambdas_on_one_line_are_told_apart(given: float) -> None:
    for function in lambdas_on_one_line():
        assert value(function, given) == function(given)


at_module_level = (lambda x: x + 2.0), (lambda x: x * 2.0)


def test_lambdas_of_a_module_are_told_apart() -> None:
    assert [value(each, 5.0) for each in at_module_level] == [7.0, 10.0]


def test_a_lambda_that_no_source_is_like_is_called_as_it_is() -> None:
    both = (lambda x: x + 2.0), (lambda x: x * 2.0)
    changed = both[0].__code__.replace(co_consts=(None, 9.0))
    assert value(type(both[0])(changed, {}), 1.0) == 10.0


def test_what_is_not_to_be_converted() -> None:
    @tf.autograph.experimental.do_not_convert
    def as_it_is(x: Any) -> Any:
        if x > 0:
            return x
        return -x

    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        value(lambda x: as_it_is(x), 2.0)
    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        value(if_return, 1.0, autograph=False)


def test_a_function_without_source_is_called_as_it_is(caplog: Any) -> None:
    function = eval("lambda x: 0 if x is None else x * 2")
    assert value(function, 2.0) == 4.0
    assert "could not be transformed and will be executed as-is" in caplog.text


def test_tracebacks_name_the_users_line() -> None:
    def f(x: Any) -> Any:
        if x > 0:
            raise KeyError("abc")
        return x

    with pytest.raises(KeyError, match="abc") as info:
        value(f, 1.0)
    frames = [frame for frame in traceback.extract_tb(info.tb) if frame.filename == __file__]
    assert frames[-1].line == 'raise KeyError("abc")'


def test_effects_in_branches_and_loops() -> None:
    v = tf.Variable(1.0, use_resource=True)

    @tf.function
    def f(x: Any) -> Any:
        if x > 0:
            v.assign_add(x)
        else:
            v.assign(100.0)
        for _ in tf.range(3):
            v.assign_add(1.0)
            if v.read_value() > 5.0:
                v.assign(0.0)
        return v.read_value()

    assert run(f(tf.constant(2.0))) == 0.0
    assert run(f(tf.constant(-2.0))) == 2.0
    assert run(f(tf.constant(0.5))) == 4.5


def test_a_branch_that_only_keeps_flags() -> None:
    v = tf.Variable([1.0, 2.0, 3.0], use_resource=True)

    @tf.function
    def f(x: Any) -> Any:
        s = 0.0
        for e in x:
            if e > 1.5:
                v.assign_add(x)
                s += e
            elif e < 0.0:
                break
        i = 0
        while s < 20.0 and i < 5:
            s *= 2.0
            i += 1
        return s + tf.reduce_sum(v.read_value())

    assert run(f(tf.constant([1.0, 2.0, 3.0]))) == 38.0  # TensorFlow 1.15.5 and 2.21.0 run the same GraphDef
    assert run(f(tf.constant([2.0, -1.0, 3.0]))) == 42.0


def test_gradients_go_through_converted_statements() -> None:
    @tf.function
    def f(x: Any) -> Any:
        y = x
        for i in tf.range(3):
            if i > 0:
                y = y * x
            else:
                y = y * 2.0
        return y

    x = tf.constant(3.0)
    y = f(x)
    assert run([y, tf.gradients(y, x)[0]]) == [54.0, 54.0]


# ---- to_graph and its kin


def test_to_graph() -> None:
    g = tf.autograph.to_graph(if_return)
    assert g.__name__ == "tf__if_return"
    assert run(g(tf.constant(-1.0))) == -3.0
    assert g(-1.0) == -3.0
    assert run(tf.autograph.to_graph(Methods(1.0).m)(tf.constant(0.5))) == 5.0
    kind = tf.autograph.to_graph(Methods)
    assert (kind.__name__, run(kind(1.0).m(tf.constant(0.5)))) == ("TfMethods", 5.0)
    with pytest.raises(NotImplementedError, match='cannot convert entity "3": object conversion'):
        tf.autograph.to_graph(3)
    with pytest.raises(NotImplementedError, match="object conversion is not yet supported"):
        tf.autograph.to_graph(len)
    assert not issubclass(NotImplementedError, NotInGraphModeError)


def test_to_graph_without_recursion() -> None:
    with pytest.raises(TypeError, match="as a Python `bool` is not allowed"):
        tf.autograph.to_graph(lambda x: if_return(x), recursive=False)(tf.constant(1.0))


def test_effects_of_to_graph_happen_in_order() -> None:
    v = tf.Variable(1.0, use_resource=True)

    def f(x: Any) -> Any:
        if x > 0:
            v.assign_add(x)
        else:
            v.assign(100.0)
        return v.read_value()

    g = tf.autograph.to_graph(f)
    assert run(g(tf.constant(1.0))) == 2.0
    assert run(g(tf.constant(-1.0))) == 100.0


def test_to_code() -> None:
    code = tf.autograph.to_code(if_return)
    assert code.startswith("def tf__if_return(x: Any) -> Any:")
    assert "ag__.if_stmt(x > 0, ag__body_1, ag__orelse_1, " in code


# ---- datasets


def mapped(x: Any) -> Any:
    if x > 2:
        y = x * 10
    else:
        y = -x
    return y


def below_three(x: Any) -> Any:
    if x < 3:
        below = True
    else:
        below = False
    return below


def reduced(state: Any, x: Any) -> Any:
    if x > 2:
        state += x
    return state


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda d: d.map(mapped), [0, -1, -2, 30, 40]),
        (lambda d: d.map(lambda x: x if x > 2 else -x), [0, -1, -2, 3, 4]),
        (lambda d: d.filter(lambda x: x > 1 and x < 4), [2, 3]),
        (lambda d: d.flat_map(lambda x: tf.data.Dataset.from_tensors(mapped(x))), [0, -1, -2, 30, 40]),
        (lambda d: d.interleave(lambda x: tf.data.Dataset.from_tensors(mapped(x)), 2), [0, -1, -2, 30, 40]),
        (lambda d: tf.data.Dataset.from_tensors(d.reduce(tf.constant(0, tf.int64), reduced)), [7]),
        (lambda d: d.apply(tf.data.experimental.take_while(below_three)), [0, 1, 2]),
    ],
)
def test_functions_of_datasets_are_converted(make: Any, expected: list[int]) -> None:
    iterator = make(tf.data.Dataset.range(5)).make_initializable_iterator()
    element = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(element))
    np.testing.assert_array_equal(found, expected)


def test_a_function_without_source_and_branches_needs_no_warning(caplog: Any) -> None:
    assert value(eval("lambda x: x * 2"), 2.0) == 4.0
    assert not caplog.text


def leaves_doubled(structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: leaves_doubled(each) for key, each in structure.items()}
    return structure * 2.0


def test_a_global_function_that_calls_itself() -> None:
    assert value(lambda x: leaves_doubled({"a": x, "b": {"c": x}}), 2.0) == {"a": 4.0, "b": {"c": 4.0}}


def test_an_inner_function_that_calls_itself() -> None:
    def power(x: Any, n: int) -> Any:
        if n == 0:
            return tf.ones_like(x)
        return x * power(x, n - 1)

    assert value(lambda x: power(x, 3), 2.0) == 8.0
