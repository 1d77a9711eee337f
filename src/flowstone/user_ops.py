"""`flowstone.user_ops`: the example of an op of one's own."""

from flowstone.ops.control.process_ops import my_fact

__all__ = ["my_fact"]
