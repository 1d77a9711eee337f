"""`flowstone.xla`: computations for TensorFlow's compiler, which run as they are: every plan is compiled."""

from types import SimpleNamespace as _SimpleNamespace

from flowstone.contrib.compiler import xla as _xla
from flowstone.contrib.compiler.jit import experimental_jit_scope as _jit_scope

experimental = _SimpleNamespace(compile=_xla.compile, jit_scope=_jit_scope)
