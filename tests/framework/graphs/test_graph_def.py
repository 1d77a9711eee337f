"""Tests of flowstone.framework.graphs.graph_def, graph_source and import_graph.

The graphs in `tests/golden/graphs` were written by TensorFlow (`make_graph_goldens.py` there). Ops of later
rooms are declared here, so that this room is tested by itself.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flowstone.framework.declarations.operation import OpDeclaration, Registry
from flowstone.framework.graphs import graph_source
from flowstone.framework.graphs.graph import Graph
from flowstone.framework.graphs.graph_def import (
    attribute_from_proto,
    attribute_value,
    graph_def,
    messages,
    node_def,
    op_def,
)
from flowstone.framework.graphs.import_graph import import_graph_def
from flowstone.framework.graphs.later_attributes import LATER_ATTRIBUTES
from flowstone.framework.types import dtypes
from flowstone.framework.types.shape import merge
from flowstone.framework.types.tensor_proto import make_ndarray

FOLDER = pathlib.Path(__file__).parents[2] / "golden" / "graphs"
FLOAT = dtypes.float32


def _unknown(node: Any) -> Any:
    return [None] * len(node.outputs)


def _same(node: Any) -> Any:
    return node.dims(0)


def _product(node: Any) -> Any:
    a, b = node.dims(0), node.dims(1)
    if a is None or b is None:
        return (None, None)
    if len(a) != 2 or len(b) != 2:
        raise ValueError(f"Shape must be rank 2 but is rank {len(a)}")
    return (a[0], b[0] if node.attributes["transpose_b"] else b[1])


def _merged(node: Any) -> Any:
    shapes = [node.dims(i) for i in range(len(node.inputs))]
    return [shapes[0] if all(dims == shapes[0] for dims in shapes) else None, ()]


def _split(node: Any) -> Any:
    dims, pieces = node.dims(1), node.attributes["num_split"]
    return [(dims[0] // pieces, *dims[1:])] * pieces


_OPS: list[tuple[str, str, str, Any]] = [
    ("Const", "-> output: dtype", "value: tensor", lambda node: node.attributes["value"].shape),
    ("Placeholder", "-> output: dtype", "shape: shape = ?", lambda node: node.attributes["shape"]),
    ("Identity", "input: T -> output: T", "", _same),
    ("NoOp", "->", "", None),
    (
        "VariableV2",
        "-> ref: Ref(dtype)",
        "shape: shape ; container: string = '' ; shared_name: string = ''",
        lambda node: node.attributes["shape"],
    ),
    (
        "Assign",
        "ref: Ref(T), value: T -> output_ref: Ref(T)",
        "validate_shape: bool = true ; use_locking: bool = true",
        lambda node: merge(node.dims(0), node.dims(1)),
    ),
    ("AddV2", "x: T, y: T -> z: T", "", _same),
    ("Mul", "x: T, y: T -> z: T", "", _same),
    ("Less", "x: T, y: T -> z: bool", "", _same),
    ("Neg", "x: T -> y: T", "T: type in [float, double, int32]", _same),
    (
        "MatMul",
        "a: T, b: T -> product: T",
        "transpose_a: bool = false ; transpose_b: bool = false",
        _product,
    ),
    ("Split", "split_dim: int32, value: T -> output: num_split*T", "num_split: int >= 1", _split),
    ("Switch", "data: T, pred: bool -> output_false: T, output_true: T", "", lambda node: [_same(node)] * 2),
    ("Merge", "inputs: N*T -> output: T, value_index: int32", "N: int >= 1", _merged),
    (
        "Enter",
        "data: T -> output: T",
        "frame_name: string ; is_constant: bool = false ; parallel_iterations: int = 10",
        _same,
    ),
    ("Exit", "data: T -> output: T", "", _same),
    ("NextIteration", "data: T -> output: T", "", _same),
    ("LoopCond", "input: bool -> output: bool", "", _same),
    ("Pack", "values: N*T -> output: T", "axis: int = 0", _unknown),
    ("Types", "x: *Ts -> y: *Ts", "names: list(string) = [] ; sizes: list(shape) = []", _unknown),
    ("Fragile", "x: T -> y: T", "", lambda node: node.dims(0)[7]),
]
_ROLES = {
    "Switch": "switch",
    "Merge": "merge",
    "Enter": "enter",
    "Exit": "exit",
    "NextIteration": "next_iteration",
}


def _declare(name: str, signature: str, attributes: str, infer: Any) -> OpDeclaration:
    declaration = OpDeclaration(name, signature, attributes, role=_ROLES.get(name, ""))
    declaration.infer_function = infer
    return declaration


@pytest.fixture(autouse=True, scope="module")
def ops() -> Iterator[Registry]:
    """The ops of this file instead of the registered ones."""
    registry, before = Registry(), graph_source.registry
    for description in _OPS:
        registry.add(_declare(*description))
    graph_source.registry = registry
    yield registry
    graph_source.registry = before


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph().as_default() as graph:
        yield graph


def parse(text: str) -> Any:
    return text_format.Parse(text, messages("graph_pb2").GraphDef())


def golden(name: str) -> Any:
    return parse((FOLDER / f"{name}.pbtxt").read_text())


def node(name: str, op: str, *inputs: str, text: str = "", **attributes: str) -> str:
    attr = "".join(f'attr {{ key: "{key}" value {{ {value} }} }} ' for key, value in attributes.items())
    given = "".join(f'input: "{one}" ' for one in inputs)
    return f'node {{ name: "{name}" op: "{op}" {given} {attr} {text} }}\n'


ONE = "tensor { dtype: DT_FLOAT tensor_shape {} float_val: 1 }"
A = node("a", "Const", dtype="type: DT_FLOAT", value=ONE)
P = node("p", "Placeholder", dtype="type: DT_FLOAT")


def neg(*inputs: str, name: str = "n", **more: str) -> str:
    return node(name, "Neg", *inputs, **{"T": "type: DT_FLOAT", **more})


def create(graph: Graph, op: str, *inputs: Any, name: str = "", **attributes: Any) -> Any:
    declaration = graph_source.registry[op]
    complete = {key: spec.default for key, spec in declaration.attributes.items()} | attributes
    return graph.create(declaration, list(inputs), complete, (1,) * len(inputs), name or op)


def constant(graph: Graph, value: Any, name: str = "Const") -> Any:
    array = np.asarray(value, np.float32)
    return create(graph, "Const", name=name, value=array, dtype=FLOAT).outputs[0]


def state(graph: Graph) -> Any:
    return (
        [(op, list(op.inputs), list(op.control_inputs)) for op in graph.get_operations()],
        {op: [t.consumers() for t in op.outputs] for op in graph.get_operations()},
        graph.version,
        dict(graph._names_in_use),
        dict(graph._functions),
        graph.get_name_scope(),
    )


# ---- export


def normal(message: Any) -> list[tuple[Any, ...]]:
    """A GraphDef's nodes as values that compare, tensors by what they hold; what only versions after 1.15
    write is left out."""
    return [
        (n.name, n.op, n.device, list(n.input), {k: _normal_value(n.attr[k]) for k in _known_attributes(n)})
        for n in message.node
    ]


def _known_attributes(node: Any) -> list[str]:
    return [name for name in node.attr if name not in LATER_ATTRIBUTES.get(node.op, ())]


def _normal_value(value: Any) -> Any:
    if value.WhichOneof("value") != "tensor":
        return value.SerializeToString(deterministic=True)
    array = make_ndarray(value.tensor)
    return value.tensor.dtype, array.shape, array.tolist()


@pytest.mark.parametrize("name", ["variables", "constants", "loop", "several_outputs"])
def test_what_tensorflow_wrote_is_written_again(graph: Graph, name: str) -> None:
    message = golden(name)
    assert import_graph_def(message, name="") is None
    assert normal(graph.as_graph_def(add_shapes=True)) == normal(message)


def _from_flowstone(graph: Graph) -> Any:
    variable = create(graph, "VariableV2", name="count", shape=(2,), dtype=FLOAT).outputs[0]
    x = create(graph, "Placeholder", name="x", shape=(None, 2), dtype=FLOAT).outputs[0]
    with graph.device("/cpu:0"):
        value = constant(graph, [1, 2], "count/initial_value")
    assign = create(graph, "Assign", variable, value, name="count/Assign", T=FLOAT)
    with graph.control_dependencies([assign]), graph.colocate_with(variable):
        create(graph, "AddV2", x, variable, name="total", T=FLOAT)
    return graph.as_graph_def(add_shapes=True)


def test_export_is_what_tensorflow_accepted(graph: Graph) -> None:
    assert normal(_from_flowstone(graph)) == normal(golden("from_flowstone"))


def test_versions_and_parts(graph: Graph) -> None:
    constant(graph, 1)
    version = graph.version
    constant(graph, 2)
    assert graph.as_graph_def().versions.producer == 24
    assert [n.name for n in graph_def(graph, from_version=version).node] == ["Const_1"]


def test_inputs_leave_out_index_zero(graph: Graph) -> None:
    x = create(graph, "Placeholder", shape=(4, 2), dtype=FLOAT).outputs[0]
    axis = create(graph, "Const", value=np.int32(0), dtype=dtypes.int32).outputs[0]
    parts = create(graph, "Split", axis, x, num_split=2, T=FLOAT)
    with graph.control_dependencies([x.op]):
        product = create(graph, "MatMul", *parts.outputs, T=FLOAT)
    assert list(node_def(product).input) == ["Split", "Split:1", "^Placeholder"]


def test_control_inputs_stand_in_the_order_of_their_names(graph: Graph) -> None:
    later, first = (create(graph, "NoOp", name=name) for name in ("b", "a"))
    with graph.control_dependencies([later, first]):
        together = create(graph, "NoOp", name="c")
    assert list(node_def(together).input) == ["^a", "^b"]


def test_every_string_is_written(graph: Graph) -> None:
    names = create(graph, "Const", value=np.array([b"", b""], object), dtype=dtypes.string)
    assert list(node_def(names).attr["value"].tensor.string_val) == [b"", b""]


def test_reference_types_are_written_as_their_base(graph: Graph) -> None:
    variable = create(graph, "VariableV2", shape=(), dtype=FLOAT).outputs[0]
    read = create(graph, "Identity", variable, T=FLOAT)
    assert variable.dtype is dtypes.float32_ref
    assert node_def(read).attr["T"].type == dtypes.float32.as_datatype_enum


# ---- attributes


def test_get_attr_as_tensorflow(graph: Graph) -> None:
    x = create(graph, "Placeholder", shape=(None, 3), dtype=FLOAT)
    assert x.get_attr("dtype") is FLOAT
    assert [dim.size for dim in x.get_attr("shape").dim] == [-1, 3]
    enter = create(graph, "Enter", x.outputs[0], T=FLOAT, frame_name="f")
    assert (enter.get_attr("frame_name"), enter.get_attr("parallel_iterations")) == (b"f", 10)
    assert enter.get_attr("is_constant") is False
    value = constant(graph, [1, 2]).op.get_attr("value")
    assert make_ndarray(value).tolist() == [1, 2]
    with graph.colocate_with(x):
        y = create(graph, "Identity", x.outputs[0], T=FLOAT)
    assert y.get_attr("_class") == [b"loc:@Placeholder"]
    types = create(graph, "Types", x.outputs[0], Ts=(FLOAT,), names=("a", b"\xff"), sizes=((1,), None))
    assert (types.get_attr("Ts"), types.get_attr("names")) == ([FLOAT], [b"a", b"\xff"])
    assert [shape.unknown_rank for shape in types.get_attr("sizes")] == [False, True]
    assert create(graph, "Types", x.outputs[0], Ts=(FLOAT,)).get_attr("names") == []
    with pytest.raises(ValueError, match="no attr named 'zz'"):
        x.get_attr("zz")


@pytest.mark.parametrize(
    "text, seen",
    [
        ("f: 0.5", 0.5),
        ("i: 3", 3),
        ("b: true", True),
        ('s: "x"', b"x"),
        ("type: DT_INT32", dtypes.int32),
        ("list { i: 1 i: 2 }", [1, 2]),
        ('list { s: "x" s: "\\377" }', [b"x", b"\xff"]),
        ("list { }", []),
    ],
)
def test_undeclared_attributes_are_kept(graph: Graph, text: str, seen: Any) -> None:
    message = text_format.Parse(text, messages("attr_value_pb2").AttrValue())
    with graph._attr_scope({"_kept": message}):
        op = constant(graph, 1).op
    assert op.get_attr("_kept") == seen
    assert attribute_value(op, "_kept") == message


def test_undeclared_messages_are_kept(graph: Graph) -> None:
    message = text_format.Parse("shape { dim { size: 3 } }", messages("attr_value_pb2").AttrValue())
    op = constant(graph, 1).op
    op._set_attr("_kept", message)
    message.shape.dim[0].size = 4
    assert op.get_attr("_kept").dim[0].size == 3
    op._set_attr("_kept", [1, 2])
    assert op.get_attr("_kept") == [1, 2]
    with pytest.raises(TypeError, match="_kept"):
        op._set_attr("_kept", object())


@pytest.mark.parametrize(
    "op, name, text",
    [
        ("Neg", "T", "i: 1"),
        ("Neg", "T", ""),
        ("Neg", "T", "type: DT_INVALID"),
        ("Neg", "T", "type: DT_FLOAT_REF"),
        ("Neg", "T", "type: 77"),
        ("Neg", "T", "type: DT_STRING"),
        ("Neg", "T", "list { type: DT_FLOAT }"),
        ("Neg", "T", 'placeholder: "x"'),
        ("Types", "Ts", "list { i: 1 }"),
        ("Types", "Ts", "list { }"),
        ("Types", "sizes", "list { shape { dim { size: -2 } } }"),
        ("Split", "num_split", "i: 0"),
        ("Placeholder", "shape", "shape { dim { size: -7 } }"),
        ("Placeholder", "shape", "shape { unknown_rank: true dim { size: 1 } }"),
        ("Const", "value", "tensor { dtype: DT_FLOAT tensor_shape {} tensor_content: 'abc' }"),
        ("Const", "value", "tensor { dtype: DT_RESOURCE tensor_shape {} }"),
    ],
)
def test_malformed_attributes(op: str, name: str, text: str) -> None:
    message = text_format.Parse(text, messages("attr_value_pb2").AttrValue())
    with pytest.raises((TypeError, ValueError)):
        attribute_from_proto(graph_source.registry[op], name, message)


def test_op_def() -> None:
    message = op_def(_declare("Odd", "r: Ref(T), x: N*T, y: *Ts -> z: bool", "k: int >= 2 = 3", None))
    arguments = [(a.name, a.is_ref, a.type_attr, a.number_attr, a.type_list_attr) for a in message.input_arg]
    assert arguments == [
        ("r", True, "T", "", ""),
        ("x", False, "T", "N", ""),
        ("y", False, "", "", "Ts"),
    ]
    assert message.output_arg[0].type == dtypes.bool.as_datatype_enum
    kinds = {attr.name: (attr.type, attr.has_minimum, attr.minimum) for attr in message.attr}
    assert kinds["k"] == ("int", True, 2)
    assert kinds["Ts"] == ("list(type)", True, 1)
    assert next(attr.default_value.i for attr in message.attr if attr.name == "k") == 3
    allowed = op_def(graph_source.registry["Neg"]).attr[0].allowed_values.list.type
    assert list(allowed) == [1, 2, 3]


# ---- import: names, maps, results


def test_names(graph: Graph) -> None:
    for name in (None, None, "x", "x", "x/b/", "", ""):
        import_graph_def(parse(A), name=name)
    with graph.name_scope("o"):
        import_graph_def(parse(A))
    names = [op.name for op in graph.get_operations()]
    assert names == ["import/a", "import_1/a", "x/a", "x_1/a", "x/b/a", "a", "a_1", "o/import/a"]
    assert constant(graph, 1, "A").op.name == "A_2"


def test_any_order_and_order_kept(graph: Graph) -> None:
    import_graph_def(parse(neg("m", name="k") + P + neg("n", name="m") + A + neg("a", "^p")), name="")
    assert [op.name for op in graph.get_operations()] == ["p", "a", "n", "m", "k"]


def test_input_map(graph: Graph) -> None:
    z, ready = constant(graph, 2, "z"), create(graph, "NoOp", name="ready")
    found = import_graph_def(
        parse(A + P + neg("a", "^p")),
        input_map={"a": z, "^p": ready},
        return_elements=["n", "n:0", "a", "a:0"],
    )
    assert found is not None
    operation = found[0]
    assert operation.inputs == [z]
    assert operation.control_inputs == [ready]
    assert [getattr(x, "name", x) for x in found[1:]] == ["import/n:0", "import/a", "z:0"]
    assert z.consumers() == [operation]


def test_input_map_may_stand_for_absent_nodes(graph: Graph) -> None:
    z = constant(graph, 2, "z")
    found = import_graph_def(parse(neg("gone:3")), input_map={"gone:3": z}, return_elements=["n"])
    assert found is not None
    assert found[0].inputs == [z]


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"input_map": [1]}, TypeError, "must be a dictionary"),
        ({"input_map": {3: None}}, TypeError, "must be strings"),
        ({"return_elements": [3]}, TypeError, "list of strings"),
        ({"return_elements": 3}, TypeError, "list of strings"),
        ({"return_elements": ["zz"]}, ValueError, "'zz' not found"),
        ({"return_elements": ["a:1"]}, ValueError, "Invalid return output 1 of node 'a'"),
        ({"return_elements": ["^a"]}, ValueError, "not found"),
        ({"name": "a b"}, ValueError, "scope name"),
        ({"name": "", "input_map": {"a:0": 3.0}}, ValueError, "non-empty `name`"),
    ],
)
def test_wrong_arguments(graph: Graph, arguments: Any, error: Any, text: str) -> None:
    before = state(graph)
    with pytest.raises(error, match=text):
        import_graph_def(parse(A + neg("a")), **arguments)
    assert state(graph) == before


def test_wrong_maps(graph: Graph) -> None:
    z = constant(graph, 2, "z")
    whole = create(graph, "Const", name="k", value=np.int32(1), dtype=dtypes.int32).outputs[0]
    with Graph().as_default() as other:
        foreign = constant(other, 1)
    before = state(graph)
    for mapped, text in [
        ({"q:0": z}, r"not found in graph_def: \[q:0\]"),
        ({"n:5": z}, r"not found in graph_def: \[n:5\]"),
        ({"a": whole}, "was passed int32 from k:0 incompatible with expected float32"),
        ({"a": foreign}, "not of the default graph"),
    ]:
        with pytest.raises(ValueError, match=text):
            import_graph_def(parse(A + neg("a")), input_map=mapped)
    assert state(graph) == before
    with pytest.raises(TypeError, match="GraphDef proto"):
        import_graph_def(3)


def test_scopes_around_an_import(graph: Graph) -> None:
    z = constant(graph, 2, "z")
    placed = neg("a", name="d").replace("op:", 'device: "/job:w/device:GPU:1" op:')
    with (
        graph.control_dependencies([z]),
        graph.device("/device:CPU:0"),
        graph.gradient_override_map({"Neg": "G"}),
    ):
        import_graph_def(parse(A + neg("a") + placed))
    found = {op.name: op for op in graph.get_operations()[1:]}
    assert all(op.control_inputs == [z.op] for op in found.values())
    assert found["import/n"].device == "/device:CPU:0"
    assert found["import/d"].device == "/job:w/device:GPU:1"
    assert found["import/n"].get_attr("_gradient_op_type") == b"G"  # as in TensorFlow 1.15.5


def test_finalized_graph(graph: Graph) -> None:
    graph.finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        import_graph_def(parse(A))


# ---- import: attributes and shapes


def test_defaults_are_filled_in(graph: Graph) -> None:
    import_graph_def(parse(P + node("m", "MatMul", "p", "p", T="type: DT_FLOAT")), name="")
    operation = graph.get_operation_by_name("m")
    assert operation.get_attr("transpose_a") is False
    assert operation.outputs[0].shape.as_list() == [None, None]
    assert graph.get_tensor_by_name("p:0").shape.ndims is None


def test_attributes_of_newer_producers(graph: Graph) -> None:
    op_list = messages("op_def_pb2").OpList()
    added = op_list.op.add(name="Neg").attr.add(name="exact", type="bool")
    added.default_value.b = False
    import_graph_def(parse(A + neg("a", exact="b: false")), name="x", producer_op_list=op_list)
    import_graph_def(parse(A + neg("a", exact="b: true")), name="y", producer_op_list=op_list)
    import_graph_def(parse(A + neg("a", exact="b: false")), name="z")
    kept = {op.name: op.attributes.get("exact") for op in graph.get_operations() if op.type == "Neg"}
    assert kept == {"x/n": None, "y/n": True, "z/n": False}


def test_colocation_follows_the_names(graph: Graph) -> None:
    import_graph_def(parse(A + neg("a", _class='list { s: "loc:@a" }')))
    operation = graph.get_operation_by_name("import/n")
    assert operation.colocation_groups() == [b"loc:@import/a"]
    with pytest.raises(ValueError, match="unknown node 'zz'"):
        import_graph_def(parse(A + neg("a", _class='list { s: "loc:@zz" }')))


SHAPE = "list { shape { dim { size: 3 } } }"


def test_output_shapes_are_merged(graph: Graph) -> None:
    import_graph_def(parse(P + neg("p", _output_shapes=SHAPE)), name="")
    operation = graph.get_operation_by_name("n")
    assert operation.outputs[0].shape.as_list() == [3]
    assert "_output_shapes" not in operation.attributes


def test_a_loop(graph: Graph) -> None:
    import_graph_def(golden("loop"), name="")
    merge_op = graph.get_operation_by_name("while/Merge")
    assert [t.name for t in merge_op.inputs] == ["while/Enter:0", "while/NextIteration:0"]
    assert graph.get_tensor_by_name("while/NextIteration:0").consumers() == [merge_op]
    assert graph.get_tensor_by_name("while/Enter:0").consumers() == [merge_op]


def test_shapes_in_a_loop_do_not_trust_the_first_value(graph: Graph) -> None:
    message = golden("loop")
    for one in message.node:
        one.attr.pop("_output_shapes", None)
    import_graph_def(message, name="")
    assert graph.get_tensor_by_name("while/Merge_1:0").shape.ndims is None


def test_functions_are_kept(graph: Graph) -> None:
    message = parse(A + 'library { function { signature { name: "f" } } }')
    import_graph_def(message, name="x")
    import_graph_def(message, name="y")
    assert graph.as_graph_def().library == message.library
    message.library.function[0].signature.is_stateful = True
    with pytest.raises(ValueError, match="'f'"):
        import_graph_def(message)


# ---- import: what is wrong with a message

WRONG = [
    (node("u", "Zork"), "not registered 'Zork'.*'u'"),
    (neg("a"), "Node 'n': Unknown input node 'a'"),
    (A + neg("^a"), "do not match 0 inputs"),
    (A + neg("a", "^b"), r"Unknown input node '\^b'"),
    (A + neg("a:1"), "invalid output 1 of source node a which has 1 outputs"),
    (A + neg("a:x"), "Unknown input node 'a:x'"),
    (A + neg(":0"), "Unknown input node"),
    (A + A, "Node 'a' is not unique"),
    (A.replace('"a"', '"a b"'), "invalid characters"),
    (A.replace('"a"', '""'), "invalid characters"),
    (A.replace('"a"', '"a\\n"'), "invalid characters"),
    (A + neg(), "do not match 0 inputs specified.*n"),
    (A + neg("a", "a"), "do not match 2 inputs specified.*n"),
    (A + neg("^a", "a"), "Control dependencies must come after"),
    (A + neg("a").replace("FLOAT", "INT32"), "was passed float32 from a:0 incompatible with expected int32"),
    (A + node("n", "Neg", "a"), "Node 'n'.*missing attr 'T'"),
    (A + neg("a").replace("type: DT_FLOAT", "i: 1"), "Node 'n'.*type 'int'"),
    (A + neg("a").replace("FLOAT", "INVALID"), "invalid DataType"),
    (P.replace("FLOAT", "STRING") + neg("p").replace("FLOAT", "STRING"), "not in list of allowed values"),
    (neg("n"), "1 nodes in a cycle: n"),
    (neg("m") + neg("n", name="m") + neg("m", name="k"), "2 nodes in a cycle: n <- m"),
    (node("g", "Merge", "g", T="type: DT_FLOAT", N="i: 1"), "cycle"),
    (A + node("m", "MatMul", "a", "a", T="type: DT_FLOAT"), "rank 2 but is rank 0.*import/m"),
    (A.replace("float_val: 1", 'tensor_content: "abc"'), "Node 'a'.*malformed tensor"),
    (A.replace("DT_FLOAT", "DT_INT32", 1), "Node 'a'.*'dtype' is int32"),
    (A + neg("a", _output_shapes=SHAPE), "_output_shapes attribute inconsistent"),
    (A.replace("op:", 'device: "/foo" op:'), "foo"),
    (A + node("f", "Fragile", "a", T="type: DT_FLOAT"), "'import/f' \\(op: 'Fragile'\\)"),
    (A + node("k", "Pack", "a", T="type: DT_FLOAT", N="i: 1000000000000"), "Node 'k'"),
    (A + node("k", "Pack", "a", T="type: DT_FLOAT", N="i: -1"), "Node 'k'"),
    (A + node("s", "Split", "a", "a", T="type: DT_FLOAT", num_split="i: 1000000000000"), "num_split"),
    (A + node("v", "Assign", "a", "a", T="type: DT_FLOAT"), "incompatible with expected float32_ref"),
    (A + neg("a", _class='list { s: "\\377" }'), "_class"),
    (A + neg("a", _class="i: 3"), "_class"),
    (A + "versions { producer: 99999 min_consumer: 99998 }", "min consumer version 99998"),
    (A + "versions { bad_consumers: 24 }", "disallows consumer version 24"),
]


@pytest.mark.parametrize("text, message", WRONG)
def test_a_wrong_message_changes_nothing(graph: Graph, text: str, message: str) -> None:
    kept = constant(graph, 1, "import/kept")
    before = state(graph)
    with pytest.raises(ValueError, match=message):
        import_graph_def(parse(text))
    assert state(graph) == before
    assert kept.consumers() == []


def test_a_failed_import_leaves_mapped_tensors_alone(graph: Graph) -> None:
    z = constant(graph, 2, "z")
    before = state(graph)
    with pytest.raises(ValueError, match="rank 2"):
        import_graph_def(
            parse(neg("a") + node("m", "MatMul", "n", "n", T="type: DT_FLOAT")), input_map={"a": z}
        )
    assert state(graph) == before
    assert z.consumers() == []


_SEEDS = [golden_file.read_text() for golden_file in sorted(FOLDER.glob("*.pbtxt"))]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_graphs_are_refused_or_read(data: st.DataObject) -> None:
    message = parse(data.draw(st.sampled_from(_SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        _damage(message, data)
    with Graph().as_default() as graph:
        kept = constant(graph, 1, "kept")
        before = state(graph)
        try:
            import_graph_def(message)
        except (TypeError, ValueError):
            assert state(graph) == before
        else:
            assert len(graph.get_operations()) == len(message.node) + 1
            assert len(graph.as_graph_def(add_shapes=True).node) == len(message.node) + 1
        assert kept.consumers() == []


def _damage(message: Any, data: st.DataObject) -> None:
    nodes = message.node
    if not nodes:
        return
    one, other = (nodes[data.draw(st.integers(0, len(nodes) - 1))] for _ in range(2))
    change = data.draw(st.integers(0, 8))
    if change == 0:
        nodes.remove(one)
    elif change == 1:
        one.name = other.name
    elif change == 2:
        one.op = other.op
    elif change == 3:
        one.input.append(
            data.draw(st.sampled_from(["^", ":", "", "^^a", "a:-1", other.name, "^" + other.name]))
        )
    elif change == 4 and one.input:
        del one.input[-1]
    elif change == 5 and one.attr:
        del one.attr[data.draw(st.sampled_from(sorted(one.attr)))]
    elif change == 6 and one.attr and other.attr:
        key, source = data.draw(st.sampled_from(sorted(one.attr))), sorted(other.attr)[0]
        one.attr[key].CopyFrom(other.attr[source])
    elif change == 7 and one.attr:
        value = one.attr[data.draw(st.sampled_from(sorted(one.attr)))]
        value.i = data.draw(st.integers(-(2**63), 2**63 - 1))
    elif change == 8 and one.attr:
        value = one.attr[data.draw(st.sampled_from(sorted(one.attr)))]
        value.tensor.dtype = data.draw(st.integers(0, 130))
        value.tensor.tensor_shape.dim.add(size=data.draw(st.integers(-3, 2**62)))
