"""`flowstone.logging`: messages with a level."""

from flowstone.framework.process import logging as _logging
from flowstone.framework.process.logging import *

__all__ = _logging.__all__
