"""`flowstone.autograph`: marks of functions whose Python stays as it is, as all Python does here."""

from flowstone.framework import python_conversion_marks as experimental
from flowstone.framework.python_conversion import set_verbosity, to_code, to_graph, trace

__all__ = ["experimental", "set_verbosity", "to_code", "to_graph", "trace"]
