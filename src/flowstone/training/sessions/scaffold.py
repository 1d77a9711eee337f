"""`Scaffold`: the operations that a session needs to begin: initialisers, checks, summaries, the saver.

What the program does not give is found in the graph's collections, or made, by `finalize`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.collections import GraphKeys
from flowstone.framework.process import logging
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.ops.arrays.joining import concat
from flowstone.ops.control.control_flow import group
from flowstone.ops.lookup.lookup_tables import tables_initializer
from flowstone.ops.summaries.summaries import merge_all
from flowstone.ops.variables.resources import (
    initialize_resources,
    local_resources,
    report_uninitialized_resources,
    shared_resources,
)
from flowstone.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from flowstone.training.checkpoints.saver import Saver

__all__ = ["Scaffold", "default_local_init_op", "default_ready_op"]


class Scaffold:
    """The operations that a session needs to begin.

    Args:
        init_op: initialises what no checkpoint restores; `init_feed_dict`: what it is fed.
        init_fn: called after `init_op` with the scaffold and the session.
        ready_op: a string vector that names what is not initialised; the model is ready if it is empty.
        ready_for_local_init_op: likewise, of what `local_init_op` needs.
        local_init_op: initialises what each session has of its own, local variables and tables.
        summary_op: the summaries.
        saver: a Saver.
        copy_from_scaffold: a Scaffold that gives what is None here.

    The defaults are those that the collections of the same names have, or else operations for all of the
    graph. TypeError for a `copy_from_scaffold` that is none.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def chosen(given: Any, name: str) -> Any:
            return getattr(copy_from_scaffold, name) if given is None and copy_from_scaffold else given

        self._init_op = chosen(init_op, "init_op")
        self._init_feed_dict = chosen(init_feed_dict, "init_feed_dict")
        self._user_init_fn = chosen(init_fn, "_user_init_fn")
        self._ready_op = chosen(ready_op, "ready_op")
        self._ready_for_local_init_op = chosen(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = chosen(local_init_op, "local_init_op")
        self._summary_op = chosen(summary_op, "summary_op")
        self._saver = chosen(saver, "saver")

    @staticmethod
    def default_local_init_op() -> Any:
        """The operation that initialises local variables, tables and local resources."""
        return default_local_init_op()

    def finalize(self) -> Scaffold:
        """Finds or makes what is missing, and finalises the default graph. RuntimeError where a collection
        has more than one item."""
        find = Scaffold.get_or_default
        if self._init_op is None:
            self._init_op = find("init_op", GraphKeys.INIT_OP, _default_init_op)
        if self._ready_op is None:
            self._ready_op = find("ready_op", GraphKeys.READY_OP, default_ready_op)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = find(
                "ready_for_local_init_op", GraphKeys.READY_FOR_LOCAL_INIT_OP, _default_ready_for_local_init_op
            )
        if self._local_init_op is None:
            self._local_init_op = find("local_init_op", GraphKeys.LOCAL_INIT_OP, default_local_init_op)
        if self._summary_op is None:
            self._summary_op = find("summary_op", GraphKeys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = find("saver", GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True))
        self._saver.build()
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one item of a collection, or what the constructor makes, which is added to it.

        RuntimeError, which names the argument, for more than one item.
        """
        graph = get_default_graph()
        items = graph.get_collection(collection_key)
        if items:
            if len(items) > 1:
                raise RuntimeError(
                    f"More than one item in the collection {collection_key!r}. Please indicate which one to "
                    f"use by passing it to the tf.Scaffold constructor as: "
                    f"tf.Scaffold({arg_name}=item to use)"
                )
            return items[0]
        item = default_constructor()
        if item is not None:
            graph.add_to_collection(collection_key, item)
        return item

    # ---- what it has

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """A function of the session, to be called after `init_op`."""
        function = self._user_init_fn
        return None if function is None else lambda session: function(self, session)

    @property
    def init_op(self) -> Any:
        """The operation that initialises what no checkpoint restores."""
        return self._init_op

    @property
    def ready_op(self) -> Any:
        """The names of what is not initialised."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """The names of what is not initialised and `local_init_op` needs."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """The operation that initialises what each session has of its own."""
        return self._local_init_op

    @property
    def summary_op(self) -> Any:
        """The summaries; None if there are none."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """The Saver."""
        return self._saver

    @property
    def init_feed_dict(self) -> Any:
        """What `init_op` is fed."""
        return self._init_feed_dict


def _default_init_op() -> Any:
    resources = shared_resources()
    return group(global_variables_initializer(), *([initialize_resources(resources)] if resources else []))


def _with_resources(names: Any, resources: Any) -> Any:
    """The names of variables, and of those of the resources that are not initialised."""
    return concat([names, report_uninitialized_resources(resources)], 0) if resources else names


def default_ready_op() -> Any:
    """The names of the variables and resources that are not initialised."""
    return _with_resources(report_uninitialized_variables(), shared_resources() + local_resources())


def _default_ready_for_local_init_op() -> Any:
    return _with_resources(report_uninitialized_variables(global_variables()), shared_resources())


def default_local_init_op() -> Any:
    """The operation that initialises local variables, tables and local resources."""
    resources = local_resources()
    own = [initialize_resources(resources)] if resources else []
    return group(local_variables_initializer(), tables_initializer(), *own)
