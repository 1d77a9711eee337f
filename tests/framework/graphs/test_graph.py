"""Tests of flowstone.framework.graphs.graph, scope and tensor; names and orders are TensorFlow's."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from flowstone.framework.declarations.operation import OpDeclaration
from flowstone.framework.errors import OperatorNotAllowedInGraphError
from flowstone.framework.graphs.graph import Graph, GraphKeys, Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.composite import IndexedSlices
from flowstone.framework.tensors.tensor import Tensor, convert_to_tensor
from flowstone.framework.types import dtypes

pytestmark = pytest.mark.usefixtures("graph")

_value = OpDeclaration("Value", "-> output: dtype", "value: tensor", dtype=None)
_value.infer(lambda node: node.attributes["value"].shape)
_join = OpDeclaration("Join", "values: N*T -> output: T")
_join.infer(lambda node: None)
_effect = OpDeclaration("Effect", "->", stateful=True)


def const(name: str | None = None, value: Any = 1.0) -> Tensor:
    return _value(value=np.float32(value), dtype=dtypes.float32, name=name)  # type: ignore[no-any-return]


# ---- names


def test_names_are_unique_whatever_their_case(graph: Graph) -> None:
    names = [const(name).op.name for name in ("a", "a", "A", "a_1", "a", "b", None, None)]
    assert names == ["a", "a_1", "A_2", "a_1_1", "a_3", "b", "Value", "Value_1"]
    assert graph.unique_name("a", mark_as_used=False) == graph.unique_name("a") == "a_4"


def test_name_scopes(graph: Graph) -> None:
    with graph.name_scope("s") as first:
        const("x")
        with graph.name_scope("t") as nested:
            const("x")
            with graph.name_scope(None) as root:
                const("x")
        with graph.name_scope(first) as again:
            const("x")
    with graph.name_scope("s") as second:
        assert graph.get_name_scope() == "s_1"
    assert (first, nested, root, again, second) == ("s/", "s/t/", "", "s/", "s_1/")
    assert [op.name for op in graph.get_operations()] == ["s/x", "s/t/x", "x", "s/x_1"]
    assert graph.get_name_scope() == ""


def test_bad_names(graph: Graph) -> None:
    for name in ("a b", "_a", "é", "a:0"):
        with pytest.raises(ValueError, match="not a valid"):
            const(name)
        with pytest.raises(ValueError, match="scope name"), graph.name_scope(name):
            const("x")
    with graph.name_scope("s"), graph.name_scope("_t"):
        assert const("_x").op.name == "s/_t/_x"
    assert len(graph.get_operations()) == 1


# ---- elements


def test_elements_by_name(graph: Graph) -> None:
    a = const("a")
    assert graph.get_tensor_by_name("a:0") is a
    assert graph.get_operation_by_name("a") is a.op
    assert graph.as_graph_element("a:0") is graph.as_graph_element(a) is graph.as_graph_element(b"a:0")
    assert graph.as_graph_element("a", allow_tensor=False) is a.op


@pytest.mark.parametrize(
    "ask, error, text",
    [
        (lambda g: g.get_tensor_by_name("a"), ValueError, "refers to an Operation, not a Tensor"),
        (lambda g: g.get_tensor_by_name("zz"), ValueError, "looks like an .invalid. Operation name"),
        (lambda g: g.get_tensor_by_name("a:1"), KeyError, "only has 1 outputs"),
        (lambda g: g.get_tensor_by_name("zz:0"), KeyError, "'zz', does not exist"),
        (lambda g: g.get_tensor_by_name("a:x"), ValueError, "not a valid one"),
        (lambda g: g.get_tensor_by_name(3), TypeError, "not int"),
        (lambda g: g.get_operation_by_name("a:0"), ValueError, "refer to a Tensor, not a Operation"),
        (lambda g: g.get_operation_by_name("zz"), KeyError, "not in the graph"),
        (lambda g: g.get_operation_by_name(None), TypeError, "not NoneType"),
        (lambda g: g.as_graph_element(3), TypeError, "Can not convert a int into a Tensor or Operation"),
        (lambda g: g.as_graph_element("a", False, False), ValueError, "can't both be False"),
    ],
)
def test_elements_that_are_not_there(graph: Graph, ask: Any, error: type[Exception], text: str) -> None:
    const("a")
    with pytest.raises(error, match=text):
        ask(graph)


def test_elements_of_another_graph(graph: Graph) -> None:
    a = const()
    with Graph().as_default() as other:
        with pytest.raises(ValueError, match="not an element of this graph"):
            other.as_graph_element(a)
        declaration, attributes = _join, {"N": 1, "T": dtypes.float32}
        with pytest.raises(ValueError, match="same graph"):
            other.create(declaration, [a], attributes, (1,), "j")
    assert other.get_operations() == []
    assert other.version == 0
    assert a.consumers() == []


def test_version_and_finalize(graph: Graph) -> None:
    const()
    const()
    assert graph.version == 2
    graph.finalize()
    assert graph.finalized
    with pytest.raises(RuntimeError, match="finalized"):
        const()
    with pytest.raises(RuntimeError, match="finalized"):
        graph.add_to_collection("c", 1)
    graph._unsafe_unfinalize()
    assert const().op.name == "Value_2"


# ---- control dependencies


def test_control_dependencies(graph: Graph) -> None:
    a, b = const("a"), const("b")
    effect = _effect(name="e")
    with graph.control_dependencies([a, effect]):
        c = const("c")
        with graph.control_dependencies([b.op, a]):
            d = const("d")
            with graph.control_dependencies(None):
                e = const("free")
    assert c.op.control_inputs == [a.op, effect]
    assert d.op.control_inputs == [a.op, effect, b.op]
    assert e.op.control_inputs == []


def test_control_inputs_that_inputs_imply_are_left_out(graph: Graph) -> None:
    a, b = const("a"), const("b")
    with graph.control_dependencies([a]):
        direct = _join([a, b])
        inside = const("inside")
        after = _join([inside])
    assert direct.op.control_inputs == []
    assert inside.op.control_inputs == [a.op]
    assert after.op.control_inputs == []


def test_control_inputs_of_composites_and_wrong_ones(graph: Graph) -> None:
    slices = IndexedSlices(const("v"), const("i"))
    with graph.control_dependencies([slices]):
        assert const().op.control_inputs == [slices.values.op]
    with pytest.raises(TypeError), graph.control_dependencies([3]):
        const()
    with pytest.raises(TypeError), graph.control_dependencies(3):
        const()
    op = const().op
    op._add_control_inputs([slices.op, slices.op])
    assert op.control_inputs == [slices.op]


# ---- devices, colocation, attributes


def test_objects_are_told_the_device_of_the_scopes(graph: Graph) -> None:
    class Asking:
        device: object = None

        def _set_device(self, device: object) -> None:
            self.device = device

    class AskingByName(Asking):
        def _set_device_from_string(self, device: str) -> None:
            self.device = device

    outside, inside, by_name = Asking(), Asking(), AskingByName()
    graph._apply_device_functions(outside)
    with graph.device("/gpu:1"):
        graph._apply_device_functions(inside)
        graph._apply_device_functions(by_name)
    assert outside.device is None
    assert inside.device.device_type == "GPU"
    assert by_name.device == "/device:GPU:1"


def test_devices_merge_from_the_inside(graph: Graph) -> None:
    with graph.device("/job:worker/device:GPU:0"):
        outer = const()
        with graph.device("/device:CPU:1"):
            inner = const()
        with graph.device(None):
            none = const()
            with graph.device("/cpu:0"):
                fresh = const()
        with graph.device(lambda op: "/device:GPU:7" if op.type == "Value" else ""):
            chosen, other = const(), _effect()
    assert outer.op.device == "/job:worker/device:GPU:0"
    assert inner.device == "/job:worker/device:CPU:1"
    assert (none.device, fresh.device) == ("", "/device:CPU:0")
    assert chosen.device == "/job:worker/device:GPU:7"
    assert other.device == "/job:worker/device:GPU:0"
    with pytest.raises(ValueError), graph.device("/foo:bar"):
        const()


def test_devices_of_functions_stay_as_they_are_written(graph: Graph) -> None:
    def from_outside(op: Any) -> str:
        return "/cpu:0"

    with graph.device(from_outside):
        alone = const("alone")
        with graph.device("/job:a/task:1"):
            inside = const()
        with graph.device(lambda op: "/job:b"):
            twice = const()
    with graph.device("/job:a"), graph.device(from_outside):
        completed = const()
    with graph.colocate_with(alone):
        beside = const()
    assert (alone.device, alone.op.node_def.device) == ("/cpu:0", "/cpu:0")
    assert (inside.device, twice.device, beside.device) == ("/cpu:0", "/cpu:0", "/cpu:0")
    assert completed.device == "/job:a/device:CPU:0"
    alone.op._set_device("/gpu:*")
    assert alone.device == "/gpu:*"


def test_colocation(graph: Graph) -> None:
    with graph.device("/device:GPU:0"):
        a = const("a")
    b = const("b")
    with graph.device("/device:CPU:0"), graph.colocate_with(a):
        c = const("c")
        with graph.colocate_with(b):
            d = const("d")
        with graph.colocate_with(None, ignore_existing=True):
            free = const("free")
    assert a.op.colocation_groups() == [b"loc:@a"]
    assert (c.op.colocation_groups(), c.device) == ([b"loc:@a"], "/device:GPU:0")
    assert d.op.colocation_groups() == [b"loc:@a", b"loc:@b"]
    assert "_class" not in free.op.attributes
    with pytest.raises(ValueError, match="ignore_existing"), graph.colocate_with(None):
        const()


def test_attribute_scopes(graph: Graph) -> None:
    with graph._attr_scope({"_k": "outer", "_f": lambda node_def: node_def.name}):
        a = const("a")
        with graph._attr_scope({"_k": None}), graph.gradient_override_map({"Value": "Mine"}):
            b = const("b")
    assert (a.op.get_attr("_k"), a.op.get_attr("_f")) == (b"outer", b"a")
    assert "_k" not in b.op.attributes
    assert b.op.get_attr("_gradient_op_type") == b"Mine"
    with pytest.raises(TypeError), graph.gradient_override_map({"Value": 3}):  # type: ignore[dict-item]
        const()


def test_containers_and_scopes_end_with_an_error(graph: Graph) -> None:
    with graph.container("c"):
        assert graph._container == "c"
    with pytest.raises(RuntimeError, match="x"), graph.container("c"), graph.name_scope("s"):
        raise RuntimeError("x")
    assert (graph._container, graph.get_name_scope()) == ("", "")


def test_scopes_belong_to_a_thread(graph: Graph) -> None:
    seen: list[Any] = []

    def build() -> None:
        with graph.as_default():
            seen.append(const("x").op)

    with graph.name_scope("s"), graph.device("/cpu:0"), graph.control_dependencies([const("a")]):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert (seen[0].name, seen[0].device, seen[0].control_inputs) == ("x", "", [])


def test_a_thread_without_a_default_graph_builds_in_one_of_its_own() -> None:
    names: list[list[str]] = []

    def build() -> None:
        const("x")
        scope.reset_default_graph()
        const("x")
        graph = scope.get_default_graph()
        names.append([op.name for op in graph.get_operations()])
        graphs.append(graph)

    graphs = [scope.get_default_graph()]
    for _ in range(2):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert names == [["x"], ["x"]]
    assert len({id(graph) for graph in graphs}) == 3
    assert scope.get_default_graph() is graphs[0]


def test_building_from_many_threads(graph: Graph) -> None:
    def build() -> None:
        with graph.as_default():
            for _ in range(50):
                const("x")

    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    operations = graph.get_operations()
    assert len({op.name for op in operations}) == graph.version == 200
    assert [op.order for op in operations] == list(range(1, 201))


# ---- collections, feeds, default graph


def test_collections(graph: Graph) -> None:
    a, b = const("s/a"), const("b")
    graph.add_to_collections([GraphKeys.VARIABLES, "c", "c"], a)
    graph.add_to_collections("c", b)
    assert graph.get_collection("c") == [a, b]
    assert graph.get_collection("c", scope="s") == [a]
    graph.get_collection("c").clear()
    graph.get_collection_ref("c").append(3)
    assert graph.get_collection("c") == [a, b, 3]
    assert graph.get_all_collection_keys() == ["variables", "c"]
    graph.clear_collection("c")
    assert graph.get_collection("c") == []


def test_feeding_and_fetching_can_be_forbidden(graph: Graph) -> None:
    a = const()
    assert graph.is_feedable(a)
    assert graph.is_fetchable(a)
    graph.prevent_feeding(a)
    graph.prevent_fetching(a.op)
    assert not graph.is_feedable(a)
    assert not graph.is_fetchable(a)


def test_default_graph(graph: Graph) -> None:
    assert scope.get_default_graph() is graph
    with Graph().as_default() as inner:
        assert const().graph is inner
        with pytest.raises(AssertionError, match="nested graphs"):
            scope.reset_default_graph()
    assert const().graph is graph


# ---- operations and tensors


def test_operation() -> None:
    a = const("a")
    join = _join([a, a], name="j").op
    assert repr(join) == "<tf.Operation 'j' type=Join>"
    assert (join.type, join.values(), join.inputs) == ("Join", tuple(join.outputs), [a, a])
    assert a.consumers() == [join]
    assert join.node_def.op == join.op_def.name == "Join"
    assert 'name: "j"' in str(join)
    b = const("b")
    join._update_input(1, b)
    assert (join.inputs, a.consumers(), b.consumers()) == ([a, b], [join], [join])


def test_operations_know_the_user_line() -> None:
    op = const().op
    assert isinstance(op, Operation)
    file, line, function = op.user_line or ("", 0, "")
    assert (file, function) == (__file__, "const")
    assert op.traceback[-1][0].endswith("graph.py") or any(frame[0] == __file__ for frame in op.traceback)
    assert any(frame[:3] == (file, line, function) for frame in op.traceback)


def test_tensor() -> None:
    a = const("a", [[1, 2]])
    assert repr(a) == "<tf.Tensor 'a:0' shape=(1, 2) dtype=float32>"
    assert str(a) == 'Tensor("a:0", shape=(1, 2), dtype=float32)'
    assert (a.name, a.ndim, a.get_shape().as_list()) == ("a:0", 2, [1, 2])
    assert str(_join([a], name="j")) == 'Tensor("j:0", dtype=float32)'
    with a.graph.device("/gpu:0"):
        assert str(_join([a], name="k")) == 'Tensor("k:0", dtype=float32, device=/device:GPU:0)'
    assert a == a
    assert a != const("a")
    assert len({a, const()}) == 2


@pytest.mark.parametrize("use", [bool, list, lambda t: [1 for _ in t], lambda t: t and 1])
def test_tensors_have_no_value_yet(use: Any) -> None:
    with pytest.raises(OperatorNotAllowedInGraphError) as caught:
        use(const())
    assert isinstance(caught.value, TypeError)


def test_tensors_have_no_length() -> None:
    with pytest.raises(TypeError, match="len is not well defined"):
        len(const())


def test_tensors_are_no_arrays_and_need_a_session() -> None:
    with pytest.raises(NotImplementedError, match="Value:0"):
        np.asarray(const())
    with pytest.raises(ValueError, match="session"):
        const().eval()


def test_set_shape() -> None:
    unknown = _join([const()])
    unknown.set_shape([None, 2])
    unknown.set_shape([3, None])
    assert unknown.shape.as_list() == [3, 2]
    with pytest.raises(ValueError):
        unknown.set_shape([4, 2])
    assert unknown.shape.as_list() == [3, 2]


def test_shape_that_libraries_read() -> None:
    known = const()
    assert known._shape == known.shape
    with pytest.raises(ValueError, match="use Tensor"):
        known._shape = known.shape


def test_converting_tensors() -> None:
    a = const()
    assert convert_to_tensor(a) is a
    assert convert_to_tensor(a, "float32") is a
    with pytest.raises(ValueError, match="int32 for Tensor with dtype float32"):
        convert_to_tensor(a, dtypes.int32)


def test_a_hint_of_the_type_is_taken_if_the_value_converts() -> None:
    assert convert_to_tensor(3, dtype_hint=dtypes.float32).dtype == dtypes.float32
    assert convert_to_tensor("a", dtype_hint=dtypes.float32).dtype == dtypes.string
    assert convert_to_tensor(3, dtypes.int64, dtype_hint=dtypes.float32).dtype == dtypes.int64
