"""Whether the package that `tf.keras` is, Keras 2.2 or 2.3, is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["check", "installed_version", "is_installed", "refusal"]

_INSTALL = "pip install flowstone[keras]"


def installed_version() -> str | None:
    """The version of the package keras that is installed; None if there is none."""
    try:
        return version("keras")
    except PackageNotFoundError:
        return None


def refusal(found: str | None) -> str | None:
    """Why that version does not fit, and what to install; None if it fits."""
    if found is None:
        return f"tf.keras is the package keras 2.2 or 2.3, which is not installed: {_INSTALL}"
    if not found.startswith(("2.2.", "2.3.")):
        return f"tf.keras is the package keras 2.2 or 2.3, but keras {found} is installed: {_INSTALL}"
    return None


_found = False


def is_installed() -> bool:
    """Whether a version that fits is installed."""
    global _found
    _found = _found or refusal(installed_version()) is None
    return _found


def check() -> None:
    """Raises ModuleNotFoundError, which says what to install, unless a version that fits is installed."""
    text = refusal(installed_version())
    if text is not None:
        raise ModuleNotFoundError(text, name="keras")
