"""What programs of TensorFlow 0.5 to 1.0 call things, and how.

| file | what |
| --- | --- |
| `names` | names that only changed, and names that are gone |
| `joining` | `placeholder`, `concat`, `split`, `session.Run` |
| `arithmetic` | `batch_matmul`, `reverse` |
| `losses` | cross entropies and sampled losses, whose arguments changed places |
| `images` | `resize_images`, `random_crop` |
| `recurrent` | cells that took the size of their inputs |
| `inputs` | batches and Examples |
| `ptb_reader` | the tutorial's reader of the Penn Treebank |

A form is chosen by how a function is called; where both readings are possible, the call is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import flowstone
from flowstone.compat.eras import arithmetic, images, inputs, joining, losses, recurrent
from flowstone.compat.eras.names import GONE, RENAMED

__all__ = ["install"]


def _resolve(path: str) -> Any:
    """The object of a dotted name below flowstone."""
    value: Any = flowstone
    for part in path.split("."):
        value = getattr(value, part) if hasattr(value, part) else import_module(f"{value.__name__}.{part}")
    return value


def _chain(module: ModuleType, namespace: str, roots: Callable[[str], Any] | None = None) -> None:
    """Lets a public namespace find its old names, and say of others where they were."""
    own = module.__dict__.get("__getattr__")
    old_names = RENAMED.get(namespace, {})
    spelled = f"tf.{'nn.' if namespace == 'rnn_cell' else ''}{namespace}".rstrip(".")

    def __getattr__(name: str) -> Any:
        reason: AttributeError | None = None
        if own is not None:
            try:
                return own(name)
            except AttributeError as error:
                reason = error
        if name in old_names:
            path = old_names[name]
            try:
                value = _resolve(path if "." in path or not namespace else f"{namespace}.{path}")
            except ModuleNotFoundError as error:  # of an extra; who asks whether the name is there hears no
                raise AttributeError(str(error)) from error
            setattr(module, name, value)
            return value
        found = roots(name) if roots is not None else None
        if found is not None:
            return found
        message = f"flowstone does not have the name {spelled}.{name}"
        if f"{spelled}.{name}" in GONE:
            version, instead = GONE[f"{spelled}.{name}"]
            message += f", which TensorFlow {version} had: use {instead}"
        raise AttributeError(message) from reason

    module.__dict__["__getattr__"] = __getattr__


def install(roots: Callable[[str], Any]) -> None:
    """Has flowstone understand the forms of earlier TensorFlows.

    Args:
        roots: finds attributes of `tf` that are internal modules (`tf.python`), None for other names.
    """
    joining.install()
    public: Any = flowstone
    public.reverse = arithmetic.reverse
    losses.install()
    images.install()
    recurrent.install()
    inputs.install()
    _chain(flowstone, "", roots)
    for namespace in ("image", "nn", "rnn_cell", "train"):
        _chain(import_module(f"flowstone.{namespace}"), namespace)
