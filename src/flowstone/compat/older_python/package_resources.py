"""`pkg_resources`, which came with setuptools up to version 81, by what Python and `packaging` offer.

Distributions and their versions, requirements, entry points, and files within packages.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator
from importlib import metadata
from types import ModuleType
from typing import Any, BinaryIO

from flowstone.compat.older_python.late_modules import add_missing, replace

__all__ = ["install"]


class ResolutionError(Exception):
    """A distribution that is asked for cannot be had."""


class DistributionNotFound(ResolutionError):
    """It is not installed."""


class VersionConflict(ResolutionError):
    """It is installed in another version."""


def _packaging(module: str) -> Any:
    try:
        return importlib.import_module(f"packaging.{module}")
    except ImportError:
        return importlib.import_module(f"setuptools._vendor.packaging.{module}")


class Distribution:
    """An installed distribution: its name (`key` in small letters), version, folder and entry points."""

    def __init__(self, found: metadata.Distribution) -> None:
        self._found = found
        self.project_name = found.metadata["Name"]
        self.key = self.project_name.lower()
        self.version = found.version
        self.parsed_version = parse_version(found.version)
        self.location = str(found.locate_file(""))

    def requires(self, extras: Any = ()) -> list[Requirement]:
        """What it needs."""
        found = [Requirement(text) for text in self._found.requires or ()]
        return [each for each in found if _applies(each, extras)]

    def as_requirement(self) -> Requirement:
        """The requirement of this version."""
        return Requirement(f"{self.project_name}=={self.version}")

    def __str__(self) -> str:
        return f"{self.project_name} {self.version}"


def _applies(requirement: Any, extras: Any) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


class Requirement:
    """What a text such as ``numpy>=1.11`` asks for; ValueError for a text that is none."""

    def __init__(self, text: str) -> None:
        self._parsed = _packaging("requirements").Requirement(text)
        self.name = self.project_name = self._parsed.name
        self.key = self.name.lower()
        self.extras, self.marker = tuple(self._parsed.extras), self._parsed.marker
        self.specifier = self._parsed.specifier
        self.specs = [(each.operator, each.version) for each in self.specifier]

    parse = classmethod(lambda cls, text: cls(text))

    def __str__(self) -> str:
        return str(self._parsed)


def parse_version(text: str) -> Any:
    """A version, which compares with others."""
    return _packaging("version").parse(text)


def parse_requirements(texts: Any) -> Iterator[Requirement]:
    """The requirements of lines of text, comments and empty ones left out."""
    for line in texts.splitlines() if isinstance(texts, str) else texts:
        text = line.split(" #")[0].strip()
        if text and not text.startswith("#"):
            yield Requirement(text)


def get_distribution(dist: Any) -> Distribution:
    """The installed distribution of that name or requirement.

    Raises DistributionNotFound where there is none, VersionConflict where its version does not do.
    """
    wanted = Requirement(dist) if isinstance(dist, str) else dist
    if isinstance(wanted, Distribution):
        return wanted
    try:
        found = Distribution(metadata.distribution(wanted.name))
    except metadata.PackageNotFoundError:
        raise DistributionNotFound(f"The '{wanted}' distribution was not found and is required") from None
    if not wanted.specifier.contains(found.version, prereleases=True):
        raise VersionConflict(f"{found} is installed but {wanted} is required")
    return found


def require(*requirements: Any) -> list[Distribution]:
    """These distributions; raises as `get_distribution`."""
    return [get_distribution(each) for text in requirements for each in parse_requirements(_listed(text))]


def _listed(text: Any) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def iter_entry_points(group: str, name: str | None = None) -> Iterator[Any]:
    """The entry points of a group, or those of that name."""
    for point in metadata.entry_points(group=group):
        if name is None or point.name == name:
            yield point


class _WorkingSet:
    """All that is installed."""

    by_key = property(lambda self: {each.key: each for each in self})
    iter_entry_points = staticmethod(iter_entry_points)
    require = staticmethod(require)

    def __iter__(self) -> Iterator[Distribution]:
        return iter([Distribution(each) for each in metadata.distributions() if each.metadata["Name"]])


# ---- files of packages


def resource_filename(package_or_requirement: Any, resource_name: str) -> str:
    """The path of a file within a package."""
    module = importlib.import_module(getattr(package_or_requirement, "name", package_or_requirement))
    places = getattr(module, "__path__", None) or [os.path.dirname(module.__file__ or "")]
    found = [os.path.join(place, *resource_name.split("/")) for place in places]
    return next(filter(os.path.exists, found), found[0])


def resource_exists(package_or_requirement: Any, resource_name: str) -> bool:
    """Whether there is such a file or folder."""
    return os.path.exists(resource_filename(package_or_requirement, resource_name))


def resource_isdir(package_or_requirement: Any, resource_name: str) -> bool:
    """Whether it is a folder."""
    return os.path.isdir(resource_filename(package_or_requirement, resource_name))


def resource_listdir(package_or_requirement: Any, resource_name: str) -> list[str]:
    """The names in a folder."""
    return os.listdir(resource_filename(package_or_requirement, resource_name))


def resource_stream(package_or_requirement: Any, resource_name: str) -> BinaryIO:
    """The file, open for reading bytes."""
    return open(resource_filename(package_or_requirement, resource_name), "rb")


def resource_string(package_or_requirement: Any, resource_name: str) -> bytes:
    """The file's bytes."""
    with resource_stream(package_or_requirement, resource_name) as file:
        return file.read()


def declare_namespace(packageName: str) -> None:
    """Has a package be found in all folders that have a part of it."""
    package = sys.modules[packageName]
    package.__path__ = pkgutil.extend_path(package.__path__, packageName)


def _fill(module: ModuleType) -> None:
    own = {name: value for name, value in globals().items() if name[0] != "_" and _is_own(value)}
    add_missing(module, {**own, "working_set": _WorkingSet(), "WorkingSet": _WorkingSet})


def _is_own(value: Any) -> bool:
    return getattr(value, "__module__", None) == __name__ and value is not install


def install() -> None:
    """Has `import pkg_resources` find this where setuptools brings none."""
    replace("pkg_resources", _fill)
