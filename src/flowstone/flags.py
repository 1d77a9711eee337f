"""`flowstone.flags`: a program's command-line flags."""

from flowstone.framework import command_line_flags
from flowstone.framework.command_line_flags import *

__all__ = command_line_flags.__all__
