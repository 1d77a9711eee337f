"""The public functions of `tf.profiler`: `Profiler`, `profile`, `advise`, `write_op_log`.

A profile is of a graph: its parameters and floating-point operations need no step. Times and bytes come from
the RunMetadata of traced steps (docs/tracing.md).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from flowstone.framework import errors
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.io.file_system import open_file
from flowstone.profiling import op_log as op_logs
from flowstone.profiling.advice import CHECKERS, advice_text
from flowstone.profiling.advice import advise as advise_records
from flowstone.profiling.messages import kinds_message, lines_message, node_message
from flowstone.profiling.options import COLUMNS, ORDERS, OUTPUTS, Options, ProfileOptionBuilder
from flowstone.profiling.pictures import nested_trace, pprof_profile, step_trace
from flowstone.profiling.records import add_step, graph_records, known_shapes
from flowstone.profiling.report import options_text, text
from flowstone.profiling.saved_profile import profile_message
from flowstone.profiling.trees import Records, Tree, code_view, graph_view, op_view, scope_view

ALL_ADVICE: dict[str, dict[str, str]] = {name: {} for name in CHECKERS}  # asks for all checkers
_DEFAULT_PROFILE_OPTIONS = 0
_DEFAULT_ADVISE_OPTIONS = 0
_VIEWS = ("scope", "graph", "op", "code")

_RULE = "=" * 26


class Profiler:
    """Profiles a graph over several steps.

        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        profiler = tf.profiler.Profiler(session.graph)
        for i in range(100):
            session.run(train, options=traced, run_metadata=metadata)
            profiler.add_step(i, metadata)
        profiler.profile_name_scope(tf.profiler.ProfileOptionBuilder.time_and_memory())

    The methods print or write what their options say (`ProfileOptionBuilder`), and return it as messages.

    Args:
        graph: the graph.
        op_log: an OpLogProto with floating-point operations, types or lines of its nodes. They go before what
            the graph says.
    """

    def __init__(self, graph: Any, op_log: Any = None) -> None:
        self._graph, self._op_log = graph, op_log
        self._steps: dict[int, Any] = {}
        self._records: Records | None = None
        self._has_lines = False  # of the records: lines take longest, and only one view needs them

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds the RunMetadata of a traced step under its number, which `with_step` asks for."""
        message = type(run_meta)()
        message.CopyFrom(run_meta)
        self._steps[step] = message
        self._records = None

    def profile_name_scope(self, options: Mapping[str, Any]) -> Any:
        """Profiles the nodes by their name scopes.

        Returns:
            a GraphNodeProto, whose children are the nodes that are shown.
        """
        return self._profile("scope", options)

    def profile_graph(self, options: Mapping[str, Any]) -> Any:
        """Profiles the nodes by data flow: below a node are those whose outputs it takes.

        Returns:
            a GraphNodeProto, whose children are the nodes that are shown.
        """
        return self._profile("graph", options)

    def profile_operations(self, options: Mapping[str, Any]) -> Any:
        """Profiles the kinds of ops, such as MatMul.

        Returns:
            a MultiGraphNodeProto; the child of each kind is the next one.
        """
        return self._profile("op", options)

    def profile_python(self, options: Mapping[str, Any]) -> Any:
        """Profiles the lines of Python that made the nodes, by their calls.

        Returns:
            a MultiGraphNodeProto, whose children are the lines that are shown.
        """
        return self._profile("code", options)

    def advise(self, options: Mapping[str, Any]) -> Any:
        """Says what is slow.

        Args:
            options: a dictionary whose keys are the checkers to use: AcceleratorUtilizationChecker,
                ExpensiveOperationChecker, OperationChecker. Empty, it uses all.

        Returns:
            an AdviceProto. Its reports are printed as well.

        Raises:
            InvalidArgumentError: if there is no such checker.
        """
        if not self._steps:
            logging.warning("No step was added: only the graph is looked at.")
        message = advise_records(self._nodes(with_lines=True), options or ALL_ADVICE)
        sys.stdout.write(advice_text(message))
        return message

    def serialize_to_string(self) -> bytes:
        """The profile of the steps so far as a serialised ProfileProto."""
        message = profile_message(self._graph, self._nodes(with_lines=True), self._steps)
        return message.SerializeToString()  # type: ignore[no-any-return]

    def _nodes(self, with_lines: bool) -> Records:
        """The records of all nodes, made anew after each step that was added."""
        if self._records is None or (with_lines and not self._has_lines):
            known = {}
            for run_metadata in self._steps.values():
                known.update(known_shapes(run_metadata))
            log = op_logs.make_op_log(self._graph, known, self._op_log, with_lines)
            self._records, self._has_lines = graph_records(self._graph, log, known), with_lines
            for step, run_metadata in self._steps.items():
                add_step(self._records, step, run_metadata)
        return self._records

    def _profile(self, view: str, given: Mapping[str, Any]) -> Any:
        options = _checked(given)
        if options.step >= 0 and options.step not in self._steps:
            steps = ", ".join(map(str, sorted(self._steps))) or "none"
            logging.warning("There is no step %d. The steps are: %s.", options.step, steps)
        records = self._nodes(with_lines=view == "code")
        if view == "op":
            kinds = op_view(records, options)
            self._put_out(view, kinds, options)
            return kinds_message(kinds)
        views = {"scope": scope_view, "graph": graph_view, "code": code_view}
        tree = views[view](records, options)
        self._put_out(view, tree, options)
        return lines_message(tree) if view == "code" else node_message(tree)

    def _put_out(self, view: str, shown: Tree | list[Tree], options: Options) -> None:
        kind = options.output_kind
        if kind == "stdout":
            report = f"{options_text(options)}\n\n{_RULE}Profile{_RULE}\n{text(view, shown, options)}"
            sys.stdout.write(f"\n{_RULE}Options{_RULE}\n{report}\n")
        elif kind == "file":
            _write(options.output_file, text(view, shown, options).encode())
        elif kind == "timeline":
            self._write_timeline(view, shown, options)
        elif kind == "pprof":
            if isinstance(shown, Tree) and view == "code" and len(options.select) == 1:
                _write(options.output_file, pprof_profile(shown, options.select[0]))
            else:
                logging.warning(
                    "pprof is not written: it shows the view 'code', with one attribute selected."
                )

    def _write_timeline(self, view: str, shown: Tree | list[Tree], options: Options) -> None:
        if not isinstance(shown, Tree):
            logging.warning("No timeline is written: the view 'op' has none; the others have.")
            return
        step = options.step
        if view == "graph":
            step = max(self._steps, default=0) if step < 0 else step
            trace = step_trace(shown, step)
        else:
            trace = nested_trace(shown)
        _write(f"{options.output_file}_{step}", trace.encode())


def _write(filename: str, contents: bytes) -> None:
    with open_file(filename, "wb") as file:
        file.write(contents)


def _checked(given: Mapping[str, Any]) -> Options:
    options = Options(given)
    for name in options.select:
        if name not in COLUMNS:
            logging.warning("There is no attribute %s to select. There are %s.", name, ", ".join(COLUMNS))
    if options.order_by not in ORDERS:
        logging.warning("There is no order by %s. There are %s.", options.order_by, ", ".join(ORDERS))
    if options.output_kind not in OUTPUTS:
        raise errors.InvalidArgumentError(
            None, None, f"There is no output {options.output_kind}. There are {', '.join(OUTPUTS)}."
        )
    return options


def profile(
    graph: Any = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | int = _DEFAULT_PROFILE_OPTIONS,
) -> Any:
    """Profiles a graph: its parameters, floating-point operations, times, memory.

        tf.profiler.profile(graph, options=tf.profiler.ProfileOptionBuilder.float_operation())

    Args:
        graph: the graph; None takes the default graph.
        run_meta: the RunMetadata of a traced step; without it there are no times and bytes. Its shapes count
            where the graph's are not known.
        op_log: an OpLogProto with floating-point operations, types or lines of nodes. They go before what the
            graph says.
        cmd: the view: 'scope' (name scopes), 'graph' (data flow), 'op' (kinds of ops), 'code' (lines of
            Python).
        options: what to show, how, and where (`ProfileOptionBuilder`). The default shows times by name scope.

    Returns:
        for 'scope' and 'graph' a GraphNodeProto, for 'op' and 'code' a MultiGraphNodeProto.

    Raises:
        InvalidArgumentError: if there is no such view or output.
    """
    if cmd not in _VIEWS:
        raise errors.InvalidArgumentError(None, None, f"unknown cmd: {cmd}. There are {', '.join(_VIEWS)}.")
    profiler = _of_one_step(graph, run_meta, op_log)
    return profiler._profile(cmd, options or ProfileOptionBuilder().build())  # type: ignore[arg-type]


def advise(
    graph: Any = None, run_meta: Any = None, options: Mapping[str, Any] | int = _DEFAULT_ADVISE_OPTIONS
) -> Any:
    """Says what of a graph and a step is slow, and prints it.

    Args:
        graph: the graph; None takes the default graph.
        run_meta: the RunMetadata of a traced step.
        options: a dictionary whose keys are the checkers to use (`Profiler.advise`). The default uses all.

    Returns:
        an AdviceProto.
    """
    return _of_one_step(graph, run_meta).advise(options or ALL_ADVICE)  # type: ignore[arg-type]


def _of_one_step(graph: Any, run_meta: Any, op_log: Any = None) -> Profiler:
    profiler = Profiler(graph if graph is not None else get_default_graph(), op_log)
    if run_meta is not None:
        profiler.add_step(0, run_meta)
    return profiler


def write_op_log(
    graph: Any, log_dir: str, op_log: Any = None, run_meta: Any = None, add_trace: bool = True
) -> None:
    """Writes what a GraphDef does not hold of a graph, as an OpLogProto into the file `tfprof_log`.

    Args:
        graph: the graph; None takes the default graph.
        log_dir: the directory of the file.
        op_log: an OpLogProto whose entries go before what the graph says.
        run_meta: a RunMetadata whose shapes count where the graph's are not known.
        add_trace: whether to write which lines of Python made the nodes.
    """
    known = {} if run_meta is None else known_shapes(run_meta)
    graph = graph if graph is not None else get_default_graph()
    op_logs.write(op_logs.make_op_log(graph, known, op_log, add_trace), log_dir)
