"""The short names that specs use: layers, their activations, pooling, LSTMs and operations."""

from __future__ import annotations

from typing import Any, ClassVar

import flowstone as tf
from flowstone.contrib import ndlstm
from flowstone.contrib.specs.specs_lib import Callable, Composable, Composition, Function
from flowstone.contrib.specs.specs_lib import External as External
from flowstone.contrib.specs.specs_lib import Import as Import
from flowstone.contrib.specs.specs_lib import debug as debug

layers = tf.contrib.layers


class Idx(Composable):
    """The identity, which adds no operation."""

    def funcall(self, x: Any) -> Any:
        """`x` itself."""
        return x


class Conc(Composable):
    """The results of several functions for one tensor, joined along an axis.

    Args:
        dim: the axis.
        args: Composable objects.
    """

    def __init__(self, dim: int, *args: Any) -> None:
        self.dim = dim
        self.funs = args

    def funcall(self, x: Any) -> Any:
        """The joined results for `x`."""
        return tf.concat([f.funcall(x) for f in self.funs], self.dim)


class Shared(Composable):
    """A function whose variables are the same wherever it is applied.

    Args:
        subnet: a Composable.
        name: the variables' scope; by default ``Shared_`` and a number.
        scope: a VariableScope, whose variables are taken from the first use on.

    Raises ValueError for a name or a scope of another type.
    """

    shared_number: ClassVar[int] = 1

    def __init__(self, subnet: Any, name: str | None = None, scope: Any = None) -> None:
        if name is not None and not isinstance(name, str):
            raise ValueError("name must be None or a string")
        if scope is not None and not isinstance(scope, tf.VariableScope):
            raise ValueError("scope must be None or a VariableScope")
        if name is None:
            name = f"Shared_{Shared.shared_number}"
            Shared.shared_number += 1
        self.subnet = subnet
        self.name = name
        self.scope = scope

    def funcall(self, x: Any) -> Any:
        """The function's result for `x`, with the variables of the first use."""
        if self.scope is None:
            with tf.variable_scope(self.name, values=[x]) as scope:
                self.scope = scope
                return self.subnet.funcall(x)
        with tf.variable_scope(self.scope, values=[x], reuse=True):
            return self.subnet.funcall(x)


def Var(name: str, *args: Any, **kw: Any) -> Callable:
    """The variable of this name, whatever the function is applied to; the arguments are `get_variable`'s."""
    return Callable(lambda _: tf.get_variable(name, *args, **kw))


Fun = Function

Cx = Fun(layers.conv2d)
Cs = Fun(layers.conv2d, activation_fn=tf.nn.sigmoid)
Ct = Fun(layers.conv2d, activation_fn=tf.nn.tanh)
Cr = Fun(layers.conv2d, activation_fn=tf.nn.relu)
Cm = Fun(layers.conv2d, activation_fn=tf.nn.softmax)
Cl = Fun(layers.conv2d, activation_fn=None)

Fx = Fun(layers.fully_connected)
Fs = Fun(layers.fully_connected, activation_fn=tf.nn.sigmoid)
Ft = Fun(layers.fully_connected, activation_fn=tf.nn.tanh)
Fr = Fun(layers.fully_connected, activation_fn=tf.nn.relu)
Fm = Fun(layers.fully_connected, activation_fn=tf.nn.softmax)
Fl = Fun(layers.fully_connected, activation_fn=None)

Mp = Fun(layers.max_pool2d)
Ap = Fun(layers.avg_pool2d)
Bn = Fun(layers.batch_norm)

Do = Fun(layers.dropout)
Flat = Fun(layers.flatten)
Lrn = Fun(tf.nn.local_response_normalization)
Unit = Fun(layers.unit_norm)

Relu = Fun(tf.nn.relu)
Sig = Fun(tf.nn.sigmoid)
Tanh = Fun(tf.nn.tanh)
Smax = Fun(tf.nn.softmax)

Id = Fun(tf.identity)
Expand = Fun(tf.expand_dims)
Print = Fun(tf.Print)
Reshape = Fun(tf.reshape)
Squeeze = Fun(tf.squeeze)
Transpose = Fun(tf.transpose)

Lstm1 = Fun(ndlstm.ndlstm_base)
Lstm1to0 = Fun(ndlstm.sequence_to_final)
Lstm2 = Fun(ndlstm.separable_lstm)
Lstm2to0 = Fun(ndlstm.reduce_to_final)
Lstm2to1 = Fun(ndlstm.reduce_to_sequence)
Ssm = Fun(ndlstm.sequence_softmax)


def Dws(n: int) -> Function:
    """Convolution with a kernel of one pixel to `n` channels, with sigmoids."""
    return Cs(n, [1, 1])


def Dwm(n: int) -> Function:
    """Convolution with a kernel of one pixel to `n` channels, with a softmax over them."""
    return Cm(n, [1, 1])


def Clstm2(n: int, *args: Any, **kw: Any) -> Composition:
    """Linear convolution with a kernel of 3 by 3 to `n` channels, then `Lstm2` with the other arguments."""
    return Cl(n, [3, 3]) | Lstm2(*args, **kw)
