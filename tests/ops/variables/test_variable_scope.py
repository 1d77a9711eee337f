"""Variable scopes and `get_variable`: names, sharing, defaults and errors, as TensorFlow's."""

from typing import Any

import numpy as np
import pytest

import flowstone as tf

pytestmark = pytest.mark.usefixtures("graph")

KINDS = pytest.mark.parametrize("resource", [False, True], ids=["reference", "resource"])


@KINDS
def test_a_new_variable_is_initialised_uniformly(graph: tf.Graph, resource: bool) -> None:
    with tf.variable_scope("s"):
        variable = tf.get_variable("v", [2, 3], use_resource=resource)
    assert variable.name == "s/v:0"
    assert variable.initial_value.name == "s/v/Initializer/random_uniform:0"
    with tf.Session() as session:
        session.run(variable.initializer)
        assert np.abs(session.run(variable)).max() <= np.sqrt(6 / 5)


@KINDS
def test_sharing(resource: bool) -> None:
    with tf.variable_scope("s") as scope:
        variable = tf.get_variable("v", [2, 3], use_resource=resource)
        with pytest.raises(
            ValueError, match=r"Variable s/v already exists, disallowed\. Did you mean to set reuse=True"
        ):
            tf.get_variable("v", [2, 3], use_resource=resource)
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v", [2, 3]) is variable and tf.get_variable("v") is variable
        with pytest.raises(
            ValueError, match=r"s/nope does not exist, or was not created with tf.get_variable\(\)"
        ):
            tf.get_variable("nope", [2, 3])
        with pytest.raises(ValueError, match=r"specified shape \(2, 4\) and found shape \(2, 3\)"):
            tf.get_variable("v", [2, 4])
        with pytest.raises(ValueError, match="specified dtype float64 and found dtype float32"):
            tf.get_variable("v", [2, 3], tf.float64)
    with tf.variable_scope(scope, reuse=tf.AUTO_REUSE):
        assert tf.get_variable("v", [2, 3]) is variable
        assert tf.get_variable("new", [1], use_resource=resource).name == "s/new:0"


def test_names_of_scopes_and_operations() -> None:
    with tf.variable_scope("s") as scope:
        assert (scope.name, scope.original_name_scope, scope.reuse) == ("s", "s/", False)
    with tf.variable_scope(scope) as again:
        assert (again.name, again.original_name_scope, tf.constant(1).name) == ("s", "s/", "s_1/Const:0")
        with tf.variable_scope("in") as inner:
            assert (inner.name, inner.original_name_scope) == ("s/in", "s_1/in/")
    with tf.variable_scope("s", auxiliary_name_scope=False) as bare:
        assert (bare.original_name_scope, tf.constant(2).name) == ("", "Const:0")
    with tf.variable_scope("o"), tf.variable_scope(scope, reuse=True) as nested:
        assert (nested.name, nested.reuse, tf.constant(2).name) == ("s", True, "o/s/Const:0")
    with tf.name_scope("ns"), tf.variable_scope("vs") as scope:
        assert (scope.name, scope.original_name_scope) == ("vs", "ns/vs/")
        assert tf.get_variable("x", [1]).name == "vs/x:0"


def test_default_names_are_made_unique() -> None:
    names = []
    for _ in range(2):
        with tf.variable_scope(None, "d") as scope:
            names.append((scope.name, scope.original_name_scope))
    with tf.variable_scope("out"), tf.variable_scope(None, "d") as scope:
        names.append((scope.name, scope.original_name_scope))
    assert names == [("d", "d/"), ("d_1", "d_1/"), ("out/d", "out/d/")]


def test_errors_of_scopes() -> None:
    with pytest.raises(TypeError, match="default_name is None"):
        tf.variable_scope(None)
    with pytest.raises(TypeError, match="must be a string or VariableScope"):
        tf.variable_scope(3)
    with pytest.raises(ValueError, match="reuse parameter"):
        tf.variable_scope("a", reuse=3)
    with pytest.raises(ValueError, match="without a name_or_scope"), tf.variable_scope(None, "d", reuse=True):
        pass
    assert tf.get_variable_scope().name == ""


def test_initialisers_of_all_sorts() -> None:
    made = {
        "value": tf.get_variable("value", initializer=3),
        "tensor": tf.get_variable("tensor", initializer=tf.constant([1.0, 2.0])),
        "class": tf.get_variable("class", [2], initializer=tf.zeros_initializer),
        "function": tf.get_variable("function", initializer=lambda: tf.ones([2])),
        "of a shape": tf.get_variable(
            "shape", [2], initializer=lambda shape, dtype, partition_info: tf.ones(shape, dtype)
        ),
        "keywords": tf.get_variable(
            "keywords", [2], initializer=lambda shape, **more: tf.fill(shape, 7.0 * len(more))
        ),
        "integer": tf.get_variable("integer", [2], tf.int32),
    }
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = {key: session.run(variable).tolist() for key, variable in made.items()}
    assert found == {
        "value": 3,
        "tensor": [1, 2],
        "class": [0, 0],
        "function": [1, 1],
        "of a shape": [1, 1],
        "keywords": [7, 7],  # its type, but no partition
        "integer": [0, 0],
    }
    assert made["value"].dtype.base_dtype == tf.int32


def test_errors_of_get_variable() -> None:
    with pytest.raises(
        ValueError, match="q did not get an initializer, so its `shape` argument must be specified"
    ):
        tf.get_variable("q")
    with pytest.raises(ValueError, match="initializer passed is not valid"):
        tf.get_variable("q", [None, 2])
    with pytest.raises(ValueError, match=r"If initializer is a constant, do not specify shape\."):
        tf.get_variable("q", [2], initializer=tf.constant([1.0, 2.0]))


def test_defaults_are_inherited(graph: tf.Graph) -> None:
    with (
        tf.variable_scope(
            "r",
            regularizer=lambda value: tf.reduce_sum(value),
            initializer=tf.ones_initializer(),
            dtype=tf.float64,
        ),
        tf.variable_scope("n"),
    ):
        variable = tf.get_variable("v", [2])
    assert variable.dtype.base_dtype == tf.float64
    (loss,) = graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.name == "r/n/v/Regularizer/Sum:0"
    with tf.Session() as session:
        session.run(variable.initializer)
        assert session.run(loss) == 2.0


def test_custom_getters_compose() -> None:
    calls: list[tuple[str, str]] = []

    def named(tag: str) -> Any:
        def getter(following: Any, name: str, *arguments: Any, **keywords: Any) -> Any:
            calls.append((tag, name))
            return following(name, *arguments, **keywords)

        return getter

    with (
        tf.variable_scope("g", custom_getter=named("outer")),
        tf.variable_scope("h", custom_getter=named("inner")),
    ):
        tf.get_variable("v", [2])
    assert calls == [("inner", "g/h/v"), ("outer", "g/h/v")]


@pytest.mark.parametrize(("given", "trainable"), [({}, True), ({"trainable": False}, False)])
def test_custom_getters_get_everything_by_name(given: Any, trainable: bool) -> None:
    seen: dict[str, Any] = {}

    def keep(getter: Any, *arguments: Any, **keywords: Any) -> Any:
        seen.update(keywords)
        assert not arguments
        return getter(**keywords)

    with tf.variable_scope("g", custom_getter=keep):
        variable = tf.get_variable("v", [2], **given)
    assert seen["name"] == "g/v" and seen["trainable"] is trainable
    assert (variable in tf.trainable_variables()) == trainable


def test_reuse_variables_stays_within_the_scope() -> None:
    with tf.variable_scope("a") as scope:
        scope.reuse_variables()
        assert scope.reuse is True and tf.get_variable_scope() is scope
    assert tf.get_variable_scope().reuse is False


def test_kinds_of_variables_follow_the_scope() -> None:
    with tf.variable_scope("a", use_resource=True):
        assert tf.get_variable("v", [1]).op.type == "VarHandleOp"
        assert tf.Variable(1.0).op.type == "VarHandleOp"
    assert tf.get_variable("v", [1]).op.type == "VariableV2"


def test_local_variables() -> None:
    variable = tf.get_local_variable("v", [1])
    assert tf.local_variables() == [variable] and tf.global_variables() == [] and not variable.trainable


def test_collections_of_a_scope() -> None:
    with tf.variable_scope("a") as scope:
        inside = tf.get_variable("v", [1])
    tf.get_variable("ab", [1])
    assert scope.global_variables() == [inside] and scope.trainable_variables() == [inside]


def test_templates_share_their_variables() -> None:
    def scale(x: tf.Tensor) -> tf.Tensor:
        return x * tf.get_variable("w", [], initializer=tf.ones_initializer())

    template = tf.make_template("t", scale)
    assert template(tf.constant(1.0)).name == "t/mul:0" and template(tf.constant(2.0)).name == "t_1/mul:0"
    assert [variable.name for variable in template.variables] == ["t/w:0"]
    early = tf.make_template("t", scale, create_scope_now_=True)
    assert early.variable_scope.name == "t_1" and early(tf.constant(1.0)).name == "t_1_1/mul:0"
    named = tf.make_template("t", scale, unique_name_="u")
    assert named(tf.constant(1.0)).name == "u/mul:0"


def test_a_template_made_early_enters_no_name_scope() -> None:
    """Names are TensorFlow 1.15.5's, also those by which libraries cut a scope from variables' names."""

    def scale(x: tf.Tensor) -> tf.Tensor:
        return x * tf.get_variable("w", [], initializer=tf.ones_initializer())

    with tf.variable_scope("outer"):
        early, late = (
            tf.make_template("apply", scale, create_scope_now_=True),
            tf.make_template("apply", scale),
        )
        assert (early.variable_scope.original_name_scope, late.variable_scope_name) == ("apply", None)
        with tf.name_scope("n"):
            nested = tf.make_template("q", scale, create_scope_now_=True)
            assert nested(tf.constant(1.0)).name == "outer/n/q/mul:0"
        names = [template(tf.constant(1.0)).name for template in (early, late, early, late)]
        with tf.variable_scope(None, "a", auxiliary_name_scope=False) as scope:
            assert scope.original_name_scope == "outer/"
    assert names == [f"outer/{name}/mul:0" for name in ("apply", "apply_1", "apply_2", "apply_1_1")]
    assert (early.variable_scope_name, late.variable_scope_name) == ("outer/apply/", "outer/apply_1/")
    assert (early.weights, early.trainable_weights) == (early.variables, early.trainable_variables)
    assert early.non_trainable_weights == early.non_trainable_variables == []


def test_a_template_makes_no_variables_later() -> None:
    count = []

    def grow() -> Any:
        count.append(0)
        return tf.get_variable(f"v{len(count)}", [1])

    template = tf.make_template("t", grow)
    template()
    with pytest.raises(ValueError, match="t/v2 does not exist"):
        template()


def test_an_empty_dict_of_regularizers_is_none() -> None:
    """Sonnet gives one to the variables of its trainable initial states."""
    with tf.Graph().as_default() as graph:
        tf.get_variable("v", [2], regularizer={})
        assert not graph.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)


@pytest.mark.parametrize("value", [3, [1.5, 2.0], True, "x", np.ones(2, np.float32)], ids=repr)
def test_a_value_of_another_type_than_the_one_asked_for(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Initializer type .* and explicit dtype 'float64' don't match"):
        tf.get_variable("v", dtype=tf.float64, initializer=value)
    assert tf.get_variable("v", dtype=tf.float64, initializer=np.ones(2)).dtype.base_dtype is tf.float64


@KINDS
def test_a_variable_has_a_name(resource: bool) -> None:
    for make in (lambda: tf.get_variable("", [2], use_resource=resource), lambda: tf.Variable(1.0, name="")):
        with tf.name_scope("a"), pytest.raises(ValueError, match="'' is not a valid node name"):
            make()
    with tf.variable_scope("s"):
        assert tf.get_variable("", [2], use_resource=resource).name == "s:0"


def test_a_scope_whose_name_ends_with_a_slash_keeps_the_scope_of_names() -> None:
    """RETURNN enters scopes again by such names."""
    with tf.name_scope("whole/"), tf.variable_scope(tf.VariableScope(None, "whole/")) as scope:
        assert tf.get_default_graph()._name_stack == "whole" and scope.name == "whole/"
