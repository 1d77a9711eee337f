"""What programs of `tf.contrib.graph_editor` do to one small graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def small_graph(tf: Any) -> Any:
    graph = tf.Graph()
    with graph.as_default():
        a = tf.constant([1.0, 2.0], name="a")
        with tf.name_scope("foo"):
            b = tf.constant([3.0, 4.0], name="b")
            with tf.name_scope("in"):
                c = tf.add(a, b, name="c")
            d = tf.multiply(c, a, name="d")
            with tf.control_dependencies([d]):
                e = tf.negative(c, name="e")
        f = tf.add(d, e, name="f")
        tf.identity(f, name="h")
    return graph


def edges(graph: Any) -> dict[str, list[str]]:
    """What each operation takes and waits for."""
    return {
        op.name: [tensor.name for tensor in op.inputs] + ["^" + each.name for each in op.control_inputs]
        for op in graph.get_operations()
    }


def plain(value: Any) -> Any:
    """Names in the place of operations and tensors; views as lists."""
    if hasattr(value, "passthroughs"):
        return [plain(list(each)) for each in (value.ops, value.inputs, value.outputs, value.passthroughs)]
    if hasattr(value, "original"):
        return "info"
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "ListView":
        return [plain(each) for each in value]
    if isinstance(value, (str, int, float, type(None))):
        return value
    return getattr(value, "name", type(value).__name__)


def run(tf: Any, program: Callable[..., Any]) -> dict[str, Any]:
    """The program's result or the class of its error, and the edges that it changed."""
    graph = small_graph(tf)
    before = edges(graph)
    op = graph.get_operation_by_name
    try:
        result = plain(program(tf.contrib.graph_editor, graph, op, lambda name: op(name).outputs[0]))
    except Exception as error:
        result = type(error).__name__
    changed = {key: value for key, value in edges(graph).items() if before.get(key) != value}
    return {"result": result, "changed": changed}


def _view(ge: Any, op: Any) -> Any:
    return ge.make_view([op("foo/d"), op("foo/in/c"), op("foo/e")])


def _sorted(ops: Any) -> Any:
    return sorted(each.name for each in ops)


PROGRAMS: list[Callable[..., Any]] = [
    lambda ge, graph, op, t: ge.select_ops("foo.*", graph=graph),
    lambda ge, graph, op, t: ge.select_ops("^foo/in.*", graph=graph),
    lambda ge, graph, op, t: ge.select_ts("foo/.:0", graph=graph),
    lambda ge, graph, op, t: ge.select_ops("(?#ops)^f.*", op("a"), graph=graph),
    lambda ge, graph, op, t: ge.select_ops_and_ts("^foo/in.*", "(?#ts)^f.*", graph=graph),
    lambda ge, graph, op, t: ge.select_ops("foo.*"),
    lambda ge, graph, op, t: ge.select_ops(t("a"), graph=graph),
    lambda ge, graph, op, t: ge.select_ops(t("a"), op("f"), restrict_ops_regex="f", graph=graph),
    lambda ge, graph, op, t: ge.select_ops(op("a"), foo=3),
    lambda ge, graph, op, t: ge.select_ops(3, graph=graph),
    lambda ge, graph, op, t: ge.select_ops([op("a"), op("f")]),
    lambda ge, graph, op, t: ge.select_ops(positive_filter=lambda o: o.type == "Add", graph=graph),
    lambda ge, graph, op, t: ge.select_ops(lambda o: "Add" in o.type, graph=graph),
    lambda ge, graph, op, t: ge.select_ts(op("a"), graph=graph),
    lambda ge, graph, op, t: ge.filter_ops(graph, lambda o: "Add" in o.type),
    lambda ge, graph, op, t: ge.filter_ops(graph, True),
    lambda ge, graph, op, t: ge.filter_ts(graph, lambda o: "f" in o.name),
    lambda ge, graph, op, t: ge.filter_ts(graph, True),
    lambda ge, graph, op, t: ge.filter_ops_from_regex(graph, "foo/.$"),
    lambda ge, graph, op, t: ge.filter_ts_from_regex(graph, "foo/.:"),
    lambda ge, graph, op, t: ge.get_name_scope_ops(graph, "foo"),
    lambda ge, graph, op, t: ge.get_name_scope_ops(graph, "foo/"),
    lambda ge, graph, op, t: ge.get_name_scope_ops(graph, "fo"),
    lambda ge, graph, op, t: ge.get_name_scope_ops(graph, "foo/d"),
    lambda ge, graph, op, t: ge.compute_boundary_ts([op("foo/d"), op("foo/in/c")]),
    lambda ge, graph, op, t: ge.compute_boundary_ts([op("foo/d"), op("foo/in/c"), op("f"), op("h")]),
    lambda ge, graph, op, t: _sorted(ge.get_backward_walk_ops(op("f"))),
    lambda ge, graph, op, t: _sorted(ge.get_backward_walk_ops(t("f"), inclusive=False)),
    lambda ge, graph, op, t: _sorted(ge.get_backward_walk_ops([t("f")], stop_at_ts=[t("foo/in/c")])),
    lambda ge, graph, op, t: _sorted(ge.get_backward_walk_ops([t("foo/e")], control_inputs=True)),
    lambda ge, graph, op, t: _sorted(
        ge.get_backward_walk_ops([op("foo/e")], within_ops=[op("foo/e"), op("a"), op("foo/in/c")])
    ),
    lambda ge, graph, op, t: _sorted(ge.get_forward_walk_ops(op("foo/b"))),
    lambda ge, graph, op, t: _sorted(ge.get_forward_walk_ops(t("foo/b"), inclusive=False)),
    lambda ge, graph, op, t: _sorted(
        ge.get_forward_walk_ops(op("foo/d"), control_outputs=ge.ControlOutputs(graph))
    ),
    lambda ge, graph, op, t: _sorted(ge.get_forward_walk_ops(op("foo/d"), control_outputs=True)),
    lambda ge, graph, op, t: _sorted(ge.get_walks_intersection_ops(op("foo/b"), op("foo/d"))),
    lambda ge, graph, op, t: _sorted(ge.get_walks_union_ops(op("foo/d"), op("foo/e"))),
    lambda ge, graph, op, t: _sorted(
        ge.get_walks_intersection_ops(op("foo/b"), op("foo/d"), forward_inclusive=False)
    ),
    lambda ge, graph, op, t: ge.get_within_boundary_ops(
        graph, op("foo/in/c"), boundary_ops=[op("f")], inclusive=True
    ),
    lambda ge, graph, op, t: ge.get_within_boundary_ops(
        graph, op("foo/in/c"), boundary_ops=[op("f")], inclusive=False
    ),
    lambda ge, graph, op, t: ge.get_within_boundary_ops(
        graph, op("foo/in/c"), boundary_ops=[op("f"), op("a"), op("foo/b")], inclusive=False
    ),
    lambda ge, graph, op, t: ge.get_within_boundary_ops(
        graph, op("foo/in/c"), boundary_ops=[], inclusive=False
    ),
    lambda ge, graph, op, t: ge.get_within_boundary_ops(
        graph, op("foo/in/c"), boundary_ops=op("foo/in/c"), inclusive=False
    ),
    lambda ge, graph, op, t: _sorted(ge.get_ops_ios(op("f"))),
    lambda ge, graph, op, t: _sorted(ge.get_ops_ios(op("foo/e"), control_inputs=True)),
    lambda ge, graph, op, t: _sorted(ge.get_ops_ios(op("foo/d"), control_ios=ge.ControlOutputs(graph))),
    lambda ge, graph, op, t: ge.check_cios(True),
    lambda ge, graph, op, t: ge.check_cios(False, graph),
    lambda ge, graph, op, t: ge.check_cios(False, None, graph),
    lambda ge, graph, op, t: ge.check_cios(False, 3, None),
    lambda ge, graph, op, t: ge.get_tensors(graph),
    lambda ge, graph, op, t: ge.get_tensors(3),
    lambda ge, graph, op, t: ge.make_list_of_op(graph),
    lambda ge, graph, op, t: ge.make_list_of_op([op("a"), t("a")], ignore_ts=True),
    lambda ge, graph, op, t: ge.make_list_of_op([op("a"), t("a")]),
    lambda ge, graph, op, t: ge.make_list_of_op(graph, allow_graph=False),
    lambda ge, graph, op, t: ge.make_list_of_op(3),
    lambda ge, graph, op, t: ge.make_list_of_op(op("a")),
    lambda ge, graph, op, t: ge.make_list_of_t(op("a")),
    lambda ge, graph, op, t: ge.make_list_of_t([t("a"), op("a")], ignore_ops=True),
    lambda ge, graph, op, t: len(ge.make_list_of_t(graph)),
    lambda ge, graph, op, t: ge.make_list_of_t(t("a")),
    lambda ge, graph, op, t: ge.get_generating_ops(t("a")),
    lambda ge, graph, op, t: ge.get_consuming_ops([t("a"), t("foo/b")]),
    lambda ge, graph, op, t: ge.ControlOutputs(3),
    lambda ge, graph, op, t: ge.placeholder_name(),
    lambda ge, graph, op, t: ge.placeholder_name(t("a")),
    lambda ge, graph, op, t: ge.placeholder_name(t("foo/in/c")),
    lambda ge, graph, op, t: ge.placeholder_name(t("foo/in/c"), scope="x"),
    lambda ge, graph, op, t: ge.placeholder_name(scope="x/"),
    lambda ge, graph, op, t: ge.placeholder_name(3),
    lambda ge, graph, op, t: ge.placeholder_name(t("foo/in/c"), scope=""),
    lambda ge, graph, op, t: ge.sgv("foo.*", graph=graph),
    lambda ge, graph, op, t: ge.sgv_scope("foo", graph),
    lambda ge, graph, op, t: ge.make_view(graph),
    lambda ge, graph, op, t: ge.make_view(op("foo/d")),
    lambda ge, graph, op, t: ge.make_view(t("foo/d")),
    lambda ge, graph, op, t: ge.make_view(t("foo/d"), op("foo/e")),
    lambda ge, graph, op, t: ge.make_view(),
    lambda ge, graph, op, t: ge.SubGraphView(),
    lambda ge, graph, op, t: _view(ge, op),
    lambda ge, graph, op, t: _view(ge, op).connected_inputs,
    lambda ge, graph, op, t: _view(ge, op).connected_outputs,
    lambda ge, graph, op, t: _view(ge, op).graph is graph,
    lambda ge, graph, op, t: _view(ge, op).find_op_by_name("foo/d"),
    lambda ge, graph, op, t: _view(ge, op).find_op_by_name("q"),
    lambda ge, graph, op, t: _view(ge, op).op(1),
    lambda ge, graph, op, t: _view(ge, op).input_index(t("foo/b")),
    lambda ge, graph, op, t: _view(ge, op).output_index(t("foo/d")),
    lambda ge, graph, op, t: _view(ge, op).input_index(t("f")),
    lambda ge, graph, op, t: _view(ge, op).output_index(t("a")),
    lambda ge, graph, op, t: _view(ge, op).is_passthrough(t("a")),
    lambda ge, graph, op, t: _view(ge, op).remap_inputs([1, 0]),
    lambda ge, graph, op, t: _view(ge, op).remap_inputs([1]),
    lambda ge, graph, op, t: _view(ge, op).remap_inputs([5]),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs([1]),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs([1, 1]),
    lambda ge, graph, op, t: _view(ge, op).remap([0], [0]),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs([1, 1, 0]).remap_outputs_make_unique(),
    lambda ge, graph, op, t: _view(ge, op).remap([1, 0], [0]).remap_default(),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs_to_consumers(),
    lambda ge, graph, op, t: _view(ge, op).remap_inputs({0: 1}),
    lambda ge, graph, op, t: _view(ge, op).remap_inputs([0, 0]),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs({0: 1}),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs([0]).remove_unused_ops(),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs([0]).remove_unused_ops(False),
    lambda ge, graph, op, t: _view(ge, op).copy(),
    lambda ge, graph, op, t: _view(ge, op).remap_outputs([0]),
    lambda ge, graph, op, t: ge.make_view(op("foo/d"), foo=3),
    lambda ge, graph, op, t: ge.reroute_ts(t("a"), t("foo/b")),
    lambda ge, graph, op, t: ge.reroute_ts([t("a")], [t("foo/b")], can_modify=[op("foo/in/c")]),
    lambda ge, graph, op, t: ge.reroute_ts([t("a")], [t("foo/b")], cannot_modify=[op("foo/in/c")]),
    lambda ge, graph, op, t: ge.reroute_ts([t("a")], [t("foo/b"), t("a")]),
    lambda ge, graph, op, t: ge.swap_ts(t("a"), t("foo/b")),
    lambda ge, graph, op, t: ge.reroute_inputs(ge.sgv(op("foo/e")), ge.sgv(op("foo/in/c")).remap_inputs([1])),
    lambda ge, graph, op, t: ge.reroute_outputs(ge.sgv(op("foo/d")), ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.swap_outputs(ge.sgv(op("foo/d")), ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.reroute_ios(ge.sgv(op("h")), ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.swap_ios(ge.sgv(op("h")), ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.reroute_outputs(ge.sgv(op("foo/d")), ge.sgv(op("foo/e"), op("f"))),
    lambda ge, graph, op, t: ge.add_control_inputs(op("h"), op("a")),
    lambda ge, graph, op, t: ge.add_control_inputs(op("h"), [op("a"), op("foo/b")]),
    lambda ge, graph, op, t: ge.add_control_inputs(op("foo/e"), op("foo/d")),
    lambda ge, graph, op, t: ge.remove_control_inputs(op("foo/e"), op("foo/d")),
    lambda ge, graph, op, t: ge.remove_control_inputs(op("foo/e"), op("a")),
    lambda ge, graph, op, t: ge.add_control_inputs(t("h"), op("a")),
    lambda ge, graph, op, t: ge.detach_inputs(ge.sgv(op("foo/d"))),
    lambda ge, graph, op, t: ge.detach_inputs(ge.sgv(op("foo/e")), control_inputs=True),
    lambda ge, graph, op, t: ge.detach_control_inputs(ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.detach_outputs(ge.sgv(op("foo/d"))),
    lambda ge, graph, op, t: ge.detach_outputs(ge.sgv(op("foo/d")), ge.ControlOutputs(graph)),
    lambda ge, graph, op, t: ge.detach_control_outputs(ge.sgv(op("foo/d")), ge.ControlOutputs(graph)),
    lambda ge, graph, op, t: ge.detach(ge.sgv(op("foo/d"))),
    lambda ge, graph, op, t: ge.detach(
        ge.sgv(op("foo/d"), op("foo/e")), control_ios=ge.ControlOutputs(graph)
    ),
    lambda ge, graph, op, t: ge.bypass(ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.bypass(ge.sgv(op("foo/d")).remap_inputs([0])),
    lambda ge, graph, op, t: ge.bypass(ge.sgv(op("foo/d"))),
    lambda ge, graph, op, t: ge.connect(ge.sgv(op("foo/b")), ge.sgv(op("foo/e"))),
    lambda ge, graph, op, t: ge.connect(ge.sgv(op("foo/b")), ge.sgv(op("foo/e")), True),
    lambda ge, graph, op, t: ge.connect(ge.sgv(op("foo/b")), ge.sgv(op("foo/d"))),
    lambda ge, graph, op, t: ge.connect(ge.sgv(op("foo/d")), ge.sgv(op("foo/e")), True),
    lambda ge, graph, op, t: ge.copy(ge.sgv("foo.*", graph=graph)),
    lambda ge, graph, op, t: ge.copy(ge.sgv("foo.*", graph=graph), dst_scope="z", src_scope="foo"),
    lambda ge, graph, op, t: ge.copy(ge.sgv("foo.*", graph=graph), dst_scope="z/", reuse_dst_scope=True),
    lambda ge, graph, op, t: ge.copy(ge.sgv([op("foo/d"), op("f")]), dst_scope="z"),
    lambda ge, graph, op, t: ge.copy(ge.sgv([op("foo/d"), op("f")]), dst_scope="z", src_scope="foo"),
    lambda ge, graph, op, t: ge.copy(graph.get_operations(), dst_scope="z"),
    lambda ge, graph, op, t: ge.copy(graph, dst_scope="z"),
    lambda ge, graph, op, t: ge.copy_with_input_replacements(
        ge.sgv(op("foo/d"), op("foo/e")), {t("foo/in/c"): t("h")}
    ),
    lambda ge, graph, op, t: ge.copy_with_input_replacements(
        ge.sgv(op("foo/d"), op("foo/e")), {t("foo/in/c"): t("h")}, dst_scope="w", src_scope="foo"
    ),
    lambda ge, graph, op, t: ge.graph_replace(t("f"), {t("foo/b"): t("a")}),
    lambda ge, graph, op, t: ge.graph_replace([t("f"), t("foo/d")], {t("foo/in/c"): t("a")}, dst_scope="v"),
    lambda ge, graph, op, t: ge.graph_replace({"x": t("f")}, {t("foo/in/c"): t("a")}),
    lambda ge, graph, op, t: ge.graph_replace(t("a"), {t("foo/in/c"): t("a")}),
    lambda ge, graph, op, t: ge.graph_replace(t("f"), {t("h"): t("a")}),
    lambda ge, graph, op, t: ge.graph_replace(t("f"), {}),
    lambda ge, graph, op, t: ge.graph_replace(t("f"), [t("a")]),
    lambda ge, graph, op, t: ge.detach_outputs(ge.sgv(op("h"))),
    lambda ge, graph, op, t: ge.detach_outputs(ge.sgv(op("foo/d"), op("f")).remap_outputs([0])),
    lambda ge, graph, op, t: ge.reroute_outputs(
        ge.sgv(op("a")), ge.sgv(op("foo/in/c"), op("foo/d")).remap_outputs([0])
    ),
]
