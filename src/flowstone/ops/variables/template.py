"""``make_template``: a function whose variables are made at its first call and shared by all later ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flowstone.framework.graphs.graph import GraphKeys
from flowstone.framework.tensors.scope import get_default_graph
from flowstone.ops.variables.captured_variables import capture_dependencies
from flowstone.ops.variables.scope_defaults import VariableScope
from flowstone.ops.variables.variable_scope import get_variable_scope, variable_scope

__all__ = ["make_template"]


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Callable[..., Any] | None = None,
    **kwargs: Any,
) -> Template:
    """A callable that runs `func_` in a variable scope of its own, which is reused from the second call on.

    Args:
        name_: of the scope, made unique, unless `unique_name_` names it.
        create_scope_now_: enter the scope's name now, not at the first call.
        custom_getter_: of the scope.
        kwargs: arguments of `func_`.

    A call that makes variables after the first one raises ValueError.
    """
    if kwargs:
        func_ = functools.partial(func_, **kwargs)
    return Template(name_, func_, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """What `make_template` returns."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        create_scope_now: bool = False,
        unique_name: str | None = None,
        custom_getter: Callable[..., Any] | None = None,
    ) -> None:
        if not name:
            raise ValueError("name cannot be empty.")
        self._func, self._name, self._unique_name, self._custom_getter = (
            func,
            name,
            unique_name,
            custom_getter,
        )
        self._scope: VariableScope | None = None
        self._tracked: dict[str, Any] = {}
        self._variables_created = False
        if create_scope_now:
            around = get_variable_scope().name
            with self._first_scope(
                auxiliary_name_scope=False
            ) as scope:  # operations' name scope is the call's
                self._scope = scope
                scope._name_scope = scope.name.removeprefix(f"{around}/")

    def _first_scope(self, **options: Any) -> Any:
        if self._unique_name is not None:
            return variable_scope(self._unique_name, custom_getter=self._custom_getter, **options)
        return variable_scope(None, self._name, custom_getter=self._custom_getter, **options)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the function in the scope."""
        if self._scope is None:
            with self._first_scope() as scope:
                self._scope = scope
                return self._run(arguments, keywords)
        with variable_scope(self._scope, reuse=self._variables_created):
            return self._run(arguments, keywords)

    def _run(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        graph = get_default_graph()
        keys = (GraphKeys.TRAINABLE_VARIABLES, GraphKeys.GLOBAL_VARIABLES)
        before = [len(graph.get_collection(key)) for key in keys]
        with capture_dependencies(self):
            result = self._func(*arguments, **keywords)
        after = [len(graph.get_collection(key)) for key in keys]
        if self._variables_created and before[0] != after[0]:
            raise ValueError(
                "New variable(s) created when calling a template after variables were already created. "
                f"Variable names: {[v.name for v in graph.get_collection(keys[0])[before[0] :]]}"
            )
        self._variables_created = True
        return result

    def _track_trackable(self, trackable: Any, name: str) -> Any:
        self._tracked[name] = trackable
        return trackable

    def _checkpoint_children(self) -> list[tuple[str, Any]]:
        return list(self._tracked.items())

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._func

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope; None before it is made."""
        return self._scope

    @property
    def var_scope(self) -> VariableScope | None:
        """The older name of `variable_scope`."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """The name of the scope with a slash, as names in it begin; None before it is made."""
        if self._scope is None:
            return None
        name: str = self._scope.name
        return name if not name or name.endswith("/") else f"{name}/"

    def _collection(self, key: str) -> list[Any]:
        return [] if self._scope is None else self._scope.get_collection(key)

    @property
    def variables(self) -> list[Any]:
        """The global and local variables made."""
        return self.global_variables + self.local_variables

    @property
    def trainable_variables(self) -> list[Any]:
        """The trainable variables made."""
        return self._collection(GraphKeys.TRAINABLE_VARIABLES)

    @property
    def non_trainable_variables(self) -> list[Any]:
        """The global variables made that are not trained."""
        trained = set(self.trainable_variables)
        return [variable for variable in self.global_variables if variable not in trained]

    @property
    def weights(self) -> list[Any]:
        """The variables made, as layers call them."""
        return self.variables

    @property
    def trainable_weights(self) -> list[Any]:
        """The trainable variables made, as layers call them."""
        return self.trainable_variables

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables made that are not trained, as layers call them."""
        return self.non_trainable_variables

    @property
    def global_variables(self) -> list[Any]:
        """The global variables made."""
        return self._collection(GraphKeys.GLOBAL_VARIABLES)

    @property
    def local_variables(self) -> list[Any]:
        """The local variables made."""
        return self._collection(GraphKeys.LOCAL_VARIABLES)
