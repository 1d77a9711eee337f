"""All operations, one file a family: declarations (`flowstone.framework.operation`) and the public functions over them.

Importing this package declares every op; a declaration that lacks an obligatory part is an error here.
"""

from flowstone.framework.operation import registry
from flowstone.ops import constants, control_flow, elementwise, stateful

__all__ = ["constants", "control_flow", "elementwise", "stateful"]

#registry.check_complete()
