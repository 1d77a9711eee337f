"""AutoGraph."""
from typing import Any

runs_traced = [True]
def convert(f: Any, options: Any = None) -> Any:
    return f
