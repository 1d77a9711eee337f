"""The session that Keras runs in, and what belongs to a graph: its learning phase, its names.

Keras has no session of its own. `get_session` gives the one that a program has made the default, else the
one that it gave to `set_session`, else one for the default graph. Before it does, it initialises the
graph's variables that have no value there, unless `manual_variable_initialization` has been asked for.

The learning phase tells a graph whether it trains. It is a scalar placeholder, False unless fed, or the
number that `set_learning_phase` chose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import flowstone as tf
from flowstone.contrib.distribute.distribute_lib import strategy_of_several
from flowstone.training.checkpoints.object_checkpoint import further_sessions

__all__ = [
    "chosen_learning_phase",
    "clear_session",
    "get_graph",
    "get_session",
    "get_uid",
    "is_phase_symbolic",
    "learning_phase",
    "learning_phase_scope",
    "make_learning_phase",
    "make_session",
    "manual_variable_initialization",
    "reset_uids",
    "set_learning_phase",
    "set_session",
    "symbolic_learning_phase",
    "track_variable",
]


class _GraphState:
    """What Keras keeps for a graph."""

    def __init__(self) -> None:
        self.variables: list[Any] = []  # those that `variable` made, in no collection perhaps
        self.uids: dict[str, int] = defaultdict(int)
        self.phase: Any = None
        self.phase_tensor: Any = None
        self.is_phase_read = False  # whether a layer asked for `phase_tensor`


class _SessionState:
    """Which variables a session has seen initialised, and how many its graph had when it last looked."""

    def __init__(self) -> None:
        self.initialized: WeakSet[Any] = WeakSet()
        self.seen: tuple[int, int] = (0, 0)


_graphs: WeakKeyDictionary[Any, _GraphState] = WeakKeyDictionary()
_sessions: WeakKeyDictionary[Any, _SessionState] = WeakKeyDictionary()
_chosen: dict[str, Any] = {"session": None, "initializes": True}


def get_graph() -> Any:
    """The default graph."""
    return tf.get_default_graph()


def _state(graph: Any) -> _GraphState:
    state = _graphs.get(graph)
    if state is None:
        state = _graphs[graph] = _GraphState()
    return state


# ---- sessions


def get_session(op_input_list: Sequence[Any] = ()) -> Any:
    """The session that Keras runs in (see above), its graph's variables initialised.

    `op_input_list`: tensors whose graph is meant, if it is not the default one.
    """
    session = tf.get_default_session()
    if session is None:
        graph = _graph_of(op_input_list)
        session = _chosen["session"]
        if session is None or session.graph is not graph:
            strategy = strategy_of_several()
            config = None if strategy is None else strategy.update_config_proto(None)
            session = _chosen["session"] = tf.Session(graph=graph, config=config)
    if _chosen["initializes"]:
        _initialize_variables(session)
    return session


def make_session(config: Any) -> None:
    """Has Keras run in a new session of this configuration, unless it has one for the default graph."""
    session = _chosen["session"]
    if tf.get_default_session() is None and (session is None or session.graph is not tf.get_default_graph()):
        _chosen["session"] = tf.Session(graph=tf.get_default_graph(), config=config)


def _graph_of(inputs: Sequence[Any]) -> Any:
    for item in inputs:
        graph = getattr(item, "graph", None)
        if isinstance(graph, tf.Graph):
            return graph
    return tf.get_default_graph()


def set_session(session: Any) -> None:
    """Has Keras run in `session` wherever no session is the default one."""
    _chosen["session"] = session


def manual_variable_initialization(value: bool) -> None:
    """With True, variables have no value before the program initialises them."""
    _chosen["initializes"] = not value


def track_variable(variable: Any) -> None:
    """Has `get_session` initialise `variable`, whatever collections it is in."""
    _state(variable.graph).variables.append(variable)


def _initialize_variables(session: Any) -> None:
    graph = session.graph
    made = _state(graph).variables
    in_graph = graph.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES)
    state = _sessions.get(session)
    if state is None:
        state = _sessions[session] = _SessionState()
    sizes = (len(made), len(in_graph))
    if state.seen == sizes:
        return
    candidates = [v for v in dict.fromkeys([*in_graph, *made]) if v not in state.initialized]
    with graph.as_default():
        known = session.run([tf.is_variable_initialized(variable) for variable in candidates])
        missing = [variable for variable, is_known in zip(candidates, known) if not is_known]
        if missing:
            session.run(tf.variables_initializer(missing))
    state.initialized.update(candidates)
    state.seen = (len(made), len(graph.get_collection_ref(tf.GraphKeys.GLOBAL_VARIABLES)))


def are_initialized(variables: Sequence[Any]) -> bool:
    """Whether `get_session` has seen that some of the variables have values."""
    return any([v in state.initialized for state in _sessions.values() for v in variables])


def clear_session() -> None:
    """Forgets the graph and the session, so that the next model begins with neither, and names with 1.

    The new graph has the placeholder of the learning phase.
    """
    old = tf.get_default_graph()
    tf.reset_default_graph()
    _graphs.pop(old, None)
    _chosen["session"] = None
    _state(tf.get_default_graph()).phase_tensor = _new_phase()


# ---- the learning phase


def symbolic_learning_phase() -> Any:
    """The placeholder that is the default graph's learning phase; a bool, False unless it is fed."""
    make_learning_phase()
    state = _state(tf.get_default_graph())
    state.is_phase_read = True
    return state.phase_tensor


def make_learning_phase() -> None:
    """Makes the placeholder of the default graph, which training has whether a layer reads it or not."""
    graph = tf.get_default_graph()
    state = _state(graph)
    if state.phase_tensor is None:
        with graph.as_default(), tf.name_scope(None), tf.control_dependencies(None):
            state.phase_tensor = _new_phase()


def _new_phase() -> Any:
    return tf.placeholder_with_default(False, [], "keras_learning_phase")


def chosen_learning_phase() -> Any:
    """What `set_learning_phase` chose for the default graph; None if it did not."""
    return _state(tf.get_default_graph()).phase


def is_phase_symbolic() -> bool:
    """Whether the default graph has a placeholder of the learning phase that decides what it computes."""
    state = _state(tf.get_default_graph())
    return state.phase is None and state.is_phase_read


def learning_phase() -> Any:
    """1 or 0 where `set_learning_phase` chose it for the default graph, else a placeholder."""
    state = _state(tf.get_default_graph())
    return symbolic_learning_phase() if state.phase is None else state.phase


def set_learning_phase(value: int) -> None:
    """Says for the default graph that it trains (1) or does not (0); ValueError for another value."""
    if value not in {0, 1}:
        raise ValueError("Expected learning phase to be 0 or 1.")
    _state(tf.get_default_graph()).phase = value


@contextmanager
def learning_phase_scope(value: int) -> Iterator[None]:
    """Within it, the default graph's learning phase is `value`, 0 or 1."""
    state = _state(tf.get_default_graph())
    before = state.phase
    set_learning_phase(value)
    try:
        yield
    finally:
        state.phase = before


# ---- names


def get_uid(prefix: str = "") -> int:
    """How often this was called for `prefix` in the default graph: 1, 2, and so on."""
    uids = _state(tf.get_default_graph()).uids
    uids[prefix] += 1
    return uids[prefix]


def reset_uids() -> None:
    """Lets `get_uid` begin with 1 again, in every graph."""
    for state in _graphs.values():
        state.uids.clear()


further_sessions.append(get_session)
