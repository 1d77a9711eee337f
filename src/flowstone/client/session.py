"""`Session`: runs parts of a graph and holds its state.

A session has a target (which holds its resources, `target.py`), a `Planner` (`planning.py`) and its `Steps`
(`steps.py`). `run` finds a *runner*, a function of the feed values, by the identity of its fetches and feed
keys in one dictionary look-up; runners of the same elements share a `Plan`. Both stay valid when the graph
grows (Extend), since nodes never change. Planning takes a lock; steps do not, so any number of threads may
run at once.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flowstone.client.described_runs import DescribedRuns, is_plain
from flowstone.client.feeds_fetches import FetchStructure, feed_elements
from flowstone.client.partial_run import PartialRuns, fed_tensors
from flowstone.client.placement_view import describe_placement
from flowstone.client.planning import Planner
from flowstone.client.process_settings import session_config
from flowstone.client.run_metadata import Measurements
from flowstone.client.steps import Steps, closed_error
from flowstone.client.target import Target, is_remote
from flowstone.framework.graphs.graph import Graph, Operation
from flowstone.framework.tensors import scope
from flowstone.framework.tensors.composite import IndexedSlices, SparseTensor, SparseTensorValue
from flowstone.framework.tensors.tensor import Tensor
from flowstone.runtime.plans.placement_log import PlacementLog
from flowstone.runtime.plans.plan import Plan
from flowstone.runtime.plans.session_options import plan_options, release_states
from flowstone.runtime.process.process import tune_for_sessions

if TYPE_CHECKING:
    from flowstone.client.remote_runs import RemoteRuns

_LEAVES = (Tensor, Operation, str)


class BaseSession:
    """What `Session` and `InteractiveSession` share."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        if graph is None:
            graph = scope.get_default_graph()
        elif not isinstance(graph, Graph):
            raise TypeError(f"Argument `graph` must be a tf.Graph, but got {type(graph).__name__}")
        if isinstance(target, bytes):
            target = target.decode()
        if not isinstance(target, str):
            raise TypeError(f"Argument `target` must be a string, but got {type(target).__name__}")
        if config is not None and type(config).__name__ != "ConfigProto":
            raise TypeError(f"Argument `config` must be a tf.ConfigProto, but got {type(config).__name__}")
        config = session_config(config)
        self._graph, self._config, self._target_name = graph, config, target
        self._target = Target.named(target)
        self._target.sessions.add(self)
        tune_for_sessions()
        logs = config is not None and config.log_device_placement
        self._planner = Planner(
            plan_options(config, self._target.resources, collectives=self._target.collectives),
            Measurements.wanted(config),
            PlacementLog(graph) if logs else None,
        )
        self.steps = Steps(config)
        self._runners = self._planner.runners
        self._remote_runs: RemoteRuns | None = None
        self._described_runs: DescribedRuns | RemoteRuns = DescribedRuns(self._planner, self.steps)
        self._partial_runs: PartialRuns | RemoteRuns = PartialRuns(self._planner, self.steps)
        if is_remote(target):
            from flowstone.client.remote_runs import RemoteRuns

            self._remote_runs = RemoteRuns(target, graph, config)
            self._described_runs = self._partial_runs = self._remote_runs
        self._closed: list[BaseException] = []

    # ---- properties

    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef message."""
        return self._graph.as_graph_def()

    @property
    def sess_str(self) -> str:
        """The target's name."""
        return self._target_name

    @property
    def planner(self) -> Planner:
        """What makes the plans of its steps. RuntimeError for a session on a server, which has its own."""
        if self._remote_runs is not None:
            raise RuntimeError(
                f"The steps of this session are planned by the master at {self._target_name}, not here; "
                "`session.explain(fetches)` asks it for a plan."
            )
        return self._planner

    def list_devices(self) -> list[Any]:
        """The devices that steps may use: named tuples with `name`, `device_type`, `memory_limit_bytes`,
        `incarnation` and `statistics()`.
        """
        if self._remote_runs is not None:
            return self._remote_runs.devices()
        return list(self._planner.options.devices)

    # ---- running

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Computes `fetches` and returns their values in the same nested form.

        `fetches`: tensors, operations, variables, names, sparse values, or nested lists, tuples and dicts of
        them.
        `feed_dict`: values for tensors (by tensor or name), in place of what the graph would compute.
        `options`: RunOptions: a time limit (``timeout_in_ms``), a trace of the step (``trace_level``), the
        graph of each device (``output_partition_graphs``). `run_metadata`: the RunMetadata that is filled
        with what is known of the step; see docs/tracing.md.

        Raises RuntimeError if the session is closed, TypeError and ValueError for fetches and feeds that do
        not fit the graph, and the errors of `flowstone.errors` for failures in the step.
        """
        if options is None and run_metadata is None:
            try:
                if type(fetches) is list:
                    key: Any = (list, *fetches) if feed_dict is None else (list, *fetches, None, *feed_dict)
                elif type(fetches) is tuple:
                    key = (tuple, *fetches) if feed_dict is None else (tuple, *fetches, None, *feed_dict)
                else:
                    key = fetches if feed_dict is None else (fetches, None, *feed_dict)
                runner = self._runners[key]
                values = feed_dict.values() if feed_dict else ()
            except (KeyError, TypeError, AttributeError):
                pass
            else:
                return runner(*values)
        elif self._planner.measurements is None and is_plain(options):
            result = self.run(fetches, feed_dict)
            if run_metadata is not None:
                run_metadata.Clear()
            return result
        return self._run_slowly(fetches, feed_dict, options, run_metadata)

    def _run_slowly(self, fetches: Any, feed_dict: Any, options: Any, run_metadata: Any) -> Any:
        """The first run of these fetches and feeds, or one with options: plans, and remembers the runner.

        Also handles every run with nested fetches, whose runner is looked up by their form."""
        self._check_usable()
        if feed_dict is not None and not hasattr(feed_dict, "items"):
            raise TypeError(f"Argument `feed_dict` must be a dictionary, not {type(feed_dict).__name__}")
        pairs: list[tuple[Tensor, Any]] = []
        for key, value in (feed_dict or {}).items():
            pairs += feed_elements(self._graph, key, value)
        feeds, values = [tensor for tensor, _ in pairs], [value for _, value in pairs]
        is_plain_run = options is None and run_metadata is None
        form = _form(fetches) if is_plain_run else None
        form_key = (FetchStructure, form, *feeds)
        if form is not None and form_key in self._runners:
            return self._runners[form_key](*values)
        structure = FetchStructure(self._graph, fetches)
        if options is not None or run_metadata is not None:
            return self._described_runs.run(structure, feeds, values, options, run_metadata)
        run = self._described_runs.runner(structure, feeds)
        if not self._closed:
            key = _key_by_identity(fetches, feed_dict)
            has_parts = key is not None and any([isinstance(each, SparseTensor) for each in feed_dict or ()])
            if key is not None:
                self._runners[key] = self._by_parts(fetches, list(feed_dict), run) if has_parts else run
            if form is not None and (has_parts or key is None):
                self._runners[form_key] = run
        return run(*values)

    def _by_parts(self, fetches: Any, keys: list[Any], run: Callable[..., Any]) -> Callable[..., Any]:
        """A runner of values for these keys, for one of the parts of the sparse ones."""
        is_sparse = [isinstance(key, SparseTensor) for key in keys]

        def whole(*values: Any) -> Any:
            parts: list[Any] = []
            for value, has_parts in zip(values, is_sparse):
                if not has_parts:
                    parts.append(value)
                elif type(value) is SparseTensorValue:
                    parts += value
                else:
                    return self._run_slowly(fetches, dict(zip(keys, values)), None, None)
            return run(*parts)

        return whole

    def plan_of(self, operation: Operation) -> Plan | None:
        """The plan of running `operation` alone; None if its steps are measured, have a time limit or run on
        a server."""
        self._check_usable()
        if self._remote_runs is not None or self._planner.measurements is not None or self.steps.timeout_ms:
            return None
        return self._planner.plan(FetchStructure(self._graph, operation), [])

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> str:
        """Begins a step whose `feeds` (a list of tensors) and `fetches` come in several calls of
        `partial_run`.

        Returns its handle, a string; the step ends when this object is garbage-collected. Nodes that need no
        feed run at once; the same elements are planned once. Raises InvalidArgumentError for nothing to fetch
        and for a tensor that is both fed and fetched, TypeError and ValueError as `run`.
        """
        self._check_usable()
        structure = FetchStructure(self._graph, fetches)
        tensors = dict.fromkeys(tensor for key in feeds or () for tensor in fed_tensors(self._graph, key))
        return self._partial_runs.begin(structure, list(tensors))

    def partial_run(self, handle: str, fetches: Any, feed_dict: Any = None) -> Any:
        """Continues the step that `partial_run_setup` began: feeds it, and returns fetches as `run` does.

        Each tensor is fed and fetched once. Raises InvalidArgumentError for a handle that is unknown or done,
        and for a tensor that was not named at the beginning, was fed or fetched before or cannot be computed
        yet; RuntimeError for operations among the fetches; errors of the step, which end it.
        """
        self._check_usable()
        structure = FetchStructure(self._graph, fetches)
        if structure.targets:
            raise RuntimeError(
                "partial_run() requires empty `target_list`. "
                f"Received: target_list={structure.targets} (non-empty)"
            )
        items = (feed_dict or {}).items()
        pairs = [pair for key, value in items for pair in feed_elements(self._graph, key, value)]
        return self._partial_runs.go_on(handle, structure, pairs, self.steps.timeout_ms)

    def make_callable(
        self, fetches: Any, feed_list: Any = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of the values of `feed_list` that runs a step and returns `fetches`, without `run`'s
        look-ups.
        """
        self._check_usable()
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("Argument `feed_list` must be a list or tuple.")
        structure = FetchStructure(self._graph, fetches)
        feeds = [tensor for key in feed_list or () for tensor, _ in feed_elements(self._graph, key, None)]
        run = self._described_runs.runner(structure, feeds)
        if accept_options:
            return lambda *values, options=None, run_metadata=None: (
                run(*values)
                if options is None and run_metadata is None
                else self._described_runs.run(structure, feeds, values, options, run_metadata)
            )
        closed, check = self._closed, self._check_usable

        def call(*values: Any) -> Any:
            if closed:
                check()
            return run(*values)

        return call

    def explain(self, fetches: Any, feed_dict: Any = None, measure: bool = False, steps: int = 5) -> str:
        """How a step with these fetches and feeds runs: rewrites with reasons, final graph, generated code.

        `feed_dict`: values by tensor (the plan is then the one for their shapes), or only the tensors.
        `measure`: also tells where the step's time and memory go, and how far each node is from the machine's
        floor; on a cluster, what waited for whom. For that the step is run, with all its effects on variables
        and queues: a few times to warm up, then `steps` times with a trace. Otherwise nothing runs. See
        docs/explain.md.

        Of a session on a server it says what the master and the workers made of the step. Raises ValueError
        for `measure` without the values of the feeds, UnimplementedError where the server is TensorFlow's,
        and what `run` does.
        """
        structure = FetchStructure(self._graph, fetches)
        if not isinstance(feed_dict, dict):
            feed_dict = dict.fromkeys(feed_dict or ())
        pairs = [pair for key, value in feed_dict.items() for pair in feed_elements(self._graph, key, value)]
        known = all(value is not None for _, value in pairs)
        feeds, values = [tensor for tensor, _ in pairs], [value for _, value in pairs]
        remote = self._remote_runs
        if remote is not None:
            self._check_usable()
            text = remote.plan(structure, feeds).text()
        else:
            assert isinstance(self._described_runs, DescribedRuns)
            text = self._described_runs.plan_text(structure, feeds, values if known and pairs else None)
        if not measure:
            return text
        self._check_usable()
        if not known or steps < 1:
            raise ValueError("To measure steps, explain needs the values of all feeds, and steps >= 1.")
        if remote is not None:
            measured = remote.measured(structure, feeds, values, steps)
        else:
            assert isinstance(self._described_runs, DescribedRuns)
            measured = self._described_runs.explain(structure, feeds, values, steps)
        return f"{measured}\n\n{text}"

    def explain_placement(self, fetches: Any, feed_dict: Any = None, picture: Any = None) -> str:
        """Which device runs each node of a step, and when by the cost model (measured costs, if the session
        measures), as a table.

        `feed_dict`: values by tensor, or only the tensors. `picture`: a path to draw it to (PNG, SVG or PDF
        by its ending; ImportError without matplotlib). Nothing runs. See docs/placement.md.
        """
        structure = FetchStructure(self._graph, fetches)
        feeds = [tensor for key in feed_dict or () for tensor, _ in feed_elements(self._graph, key, None)]
        if self._remote_runs is not None:
            self._check_usable()
            return self._remote_runs.placement(structure, feeds, picture)
        return describe_placement(self._planner, structure, feeds, picture)

    # ---- life

    def _check_usable(self) -> None:
        if self._closed:
            raise self._closed[0]
        if not self._graph.version:
            raise RuntimeError(
                "The Session graph is empty. Add operations to the graph before calling run()."
            )

    def close(self) -> None:
        """Ends the session; running it again is a RuntimeError."""
        self._end(RuntimeError("Attempted to use a closed Session."))

    def _cancel(self) -> None:
        self._end(closed_error())

    def _end(self, reason: BaseException) -> None:
        if not self._closed:  # without the planner's lock, for planning may take a while
            self._closed.append(reason)
        self._planner.stop()
        if self._remote_runs is None:
            self._partial_runs = PartialRuns(self._planner, self.steps)
        else:
            self._remote_runs.end()
        self.steps.end()
        release_states(self._planner.options)

    def as_default(self) -> contextlib.AbstractContextManager[Any]:
        """Makes this the default session within the context, also for `eval` and `run` of its graph's
        elements.
        """
        return scope.sessions.entered(self)


def _key_by_identity(fetches: Any, feed_dict: Any) -> Any:
    """The key by which `run` looks up a runner, if fetches are a leaf or a flat list and feed keys are plain
    or sparse. Else None."""
    items = list(fetches) if type(fetches) in (list, tuple) else [fetches]
    feed_keys = list(feed_dict or {})
    if not all([isinstance(x, _LEAVES) or _is_variable(x) for x in items]):
        return None
    if not all([isinstance(key, (Tensor, SparseTensor, str)) or _is_variable(key) for key in feed_keys]):
        return None
    if type(fetches) in (list, tuple):
        return (type(fetches), *items) if feed_dict is None else (type(fetches), *items, None, *feed_keys)
    return fetches if feed_dict is None else (fetches, None, *feed_keys)


def _form(fetches: Any) -> Any:
    """A key for nested fetches, equal where kinds, keys and elements are the same. None for other kinds."""
    if isinstance(fetches, (list, tuple, dict)):
        keys, items = (list(fetches), fetches.values()) if isinstance(fetches, dict) else ([], fetches)
        if isinstance(fetches, defaultdict):
            keys.append(id(fetches.default_factory))  # the runner keeps it alive
        parts = [_form(item) for item in items]
        return None if any([part is None for part in parts]) else (type(fetches), *keys, *parts)
    is_known = isinstance(fetches, (*_LEAVES, SparseTensor, IndexedSlices)) or _is_variable(fetches)
    return fetches if is_known else None


def _is_variable(item: Any) -> bool:
    return hasattr(item, "_as_graph_element") and item.__hash__ is not None and not isinstance(item, tuple)


class Session(BaseSession):
    """Runs parts of a graph: ``with tf.Session() as sess: sess.run(x)``.

    `target`: "" (state of its own), "local" (state shared by all such sessions of the process) or
    "grpc://host:port" (the state of the cluster to which the server there belongs). `graph`: the default
    graph if None. `config`: a ConfigProto.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._contexts: list[contextlib.ExitStack] = []

    def __enter__(self) -> Session:
        stack = contextlib.ExitStack()
        stack.enter_context(self._graph.as_default())
        stack.enter_context(self.as_default())
        self._contexts.append(stack)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._contexts.pop().close()
        self.close()

    @staticmethod
    def reset(target: str, containers: Any = None, config: Any = None) -> None:
        """Drops these containers of `target` (all if None) with their variables, and ends its sessions."""
        Target.named(target).reset(containers or (), config)


class InteractiveSession(BaseSession):
    """A session, for shells and notebooks, that is the default session from its creation until `close`."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._stack = contextlib.ExitStack()
        self._explicit_graph = graph
        if graph is not None:
            self._stack.enter_context(graph.as_default())
        self._stack.enter_context(self.as_default())

    def close(self) -> None:
        """Ends the session, which is then no longer the default."""
        super().close()
        self._stack.close()
