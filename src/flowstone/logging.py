"""`flowstone.logging`: messages with a level."""

from flowstone.framework import logging as _logging
from flowstone.framework.logging import *

__all__ = _logging.__all__
