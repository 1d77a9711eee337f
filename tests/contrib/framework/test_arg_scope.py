"""Scopes of arguments: what a decorated function gets, and what is refused. The answers are 1.15.5's."""

from __future__ import annotations

from typing import Any

import pytest

import flowstone as tf

framework = tf.contrib.framework
add_arg_scope, arg_scope = framework.add_arg_scope, framework.arg_scope


@add_arg_scope
def convolve(x: int, width: int = 1, stride: int = 2) -> tuple[int, int, int]:
    """Convolves."""
    return x, width, stride


@add_arg_scope
def pool(x: int, width: int = 1) -> tuple[int, int]:
    return x, width


class TestArgScope:
    def test_a_call_overrides_the_scope_and_the_scope_the_default(self) -> None:
        with arg_scope([convolve, pool], width=5):
            assert convolve(1) == (1, 5, 2)
            assert convolve(1, width=8, stride=0) == (1, 8, 0)
            assert pool(1) == (1, 5)
        assert convolve(1) == (1, 1, 2)

    def test_inner_scopes_add_to_outer_ones(self) -> None:
        with arg_scope([convolve], width=5):
            with arg_scope([convolve], stride=7):
                assert convolve(1) == (1, 5, 7)
            assert convolve(1) == (1, 5, 2)

    def test_a_scope_is_entered_again_instead_of_the_present_one(self) -> None:
        with arg_scope([convolve], width=5) as scope:
            pass
        with arg_scope([pool], width=3), arg_scope(scope):
            assert convolve(1) == (1, 5, 2)
            assert pool(1) == (1, 1)
            with arg_scope({}):
                assert convolve(1) == (1, 1, 2)

    def test_a_failure_leaves_the_scope(self) -> None:
        with pytest.raises(RuntimeError), arg_scope([pool], width=3):
            raise RuntimeError
        assert pool(1) == (1, 1)
        assert framework.current_arg_scope() == {}

    def test_it_decorates_functions(self) -> None:
        @arg_scope([pool], width=9)
        def pooled() -> Any:
            return pool(1)

        assert [pooled(), pooled()] == [(1, 9), (1, 9)]

    def test_methods_are_decorated(self) -> None:
        class Net:
            @add_arg_scope
            def layer(self, x: int, width: int = 1) -> tuple[int, int]:
                return x, width

        with arg_scope([Net.layer], width=4):
            assert Net().layer(1) == (1, 4)

    def test_positional_arguments_collide_with_the_scope(self) -> None:
        with arg_scope([convolve], width=5), pytest.raises(TypeError, match="multiple values"):
            convolve(1, 7)

    def test_unknown_arguments_fail_at_the_call(self) -> None:
        with arg_scope([convolve], wdth=5), pytest.raises(TypeError, match="wdth"):
            convolve(1)

    @pytest.mark.parametrize(
        ("functions", "keywords", "error"),
        [
            ([len], {"x": 1}, ValueError),
            (convolve, {"width": 1}, TypeError),
            ({"key": {}}, {"width": 1}, ValueError),
        ],
    )
    def test_refused(self, functions: Any, keywords: Any, error: type[Exception]) -> None:
        with pytest.raises(error), arg_scope(functions, **keywords):
            pass


class TestQuestions:
    def test_decorated_functions_are_known(self) -> None:
        assert framework.has_arg_scope(convolve)
        assert not framework.has_arg_scope(len)
        assert framework.arg_scoped_arguments(convolve) == ("width", "stride")
        assert (convolve.__name__, convolve.__doc__) == ("convolve", "Convolves.")

    def test_the_scope_in_force(self) -> None:
        key = framework.arg_scope_func_key(convolve)
        with arg_scope([convolve], width=5) as scope:
            assert framework.current_arg_scope() == scope == {key: {"width": 5}}
        assert framework.arg_scope_func_key(len) == str(len)
