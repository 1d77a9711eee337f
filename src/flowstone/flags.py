"""`flowstone.flags`: a program's command-line flags, which are absl's (`process/program_flags.py`)."""

from absl import flags as _flags
from absl.flags import *

from flowstone.framework.process.program_flags import FLAGS, definer  # type: ignore[assignment]

__all__ = list(_flags.__all__)

DEFINE_alias = definer(_flags.DEFINE_alias)
DEFINE_bool = definer(_flags.DEFINE_bool)
DEFINE_boolean = definer(_flags.DEFINE_boolean)
DEFINE_enum = definer(_flags.DEFINE_enum)
DEFINE_enum_class = definer(_flags.DEFINE_enum_class)
DEFINE_float = definer(_flags.DEFINE_float)
DEFINE_integer = definer(_flags.DEFINE_integer)
DEFINE_list = definer(_flags.DEFINE_list)
DEFINE_multi_enum = definer(_flags.DEFINE_multi_enum)
DEFINE_multi_enum_class = definer(_flags.DEFINE_multi_enum_class)
DEFINE_multi_float = definer(_flags.DEFINE_multi_float)
DEFINE_multi_integer = definer(_flags.DEFINE_multi_integer)
DEFINE_multi_string = definer(_flags.DEFINE_multi_string)
DEFINE_spaceseplist = definer(_flags.DEFINE_spaceseplist)
DEFINE_string = definer(_flags.DEFINE_string)
