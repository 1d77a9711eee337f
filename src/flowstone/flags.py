"""`flowstone.flags`: a program's command-line flags."""

from flowstone.framework import command_line_flags, flag_values
from flowstone.framework.command_line_flags import *
from flowstone.framework.flag_values import *

__all__ = command_line_flags.__all__ + flag_values.__all__
