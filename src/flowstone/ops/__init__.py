"""All operations, one file a family: declarations (`flowstone.framework.operation`) and the public functions over them.

Importing this package declares every op; a declaration that lacks an obligatory part is an error here.
"""
# DEVELOPMENT VERSION: imports whatever module exists and works; becomes an explicit list at the end.

import importlib
import pkgutil
import sys
import traceback

MODULES = []
for _info in pkgutil.iter_modules(__path__):
    try:
        MODULES.append(importlib.import_module(f"flowstone.ops.{_info.name}"))
    except Exception:
        print(f"flowstone.ops.{_info.name} does not import:", traceback.format_exc(limit=-1), file=sys.stderr)
