"""Every file of these packages has the test file of its name in the same folder of `tests`."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "flowstone"
MIRRORED = ("rewriting", "runtime", "lowering", "partition", "placement", "native")


def sources(package: str) -> list[str]:
    """The package's files, relative to the source."""
    paths = (SOURCE / package).rglob("*.py")
    return sorted(path.relative_to(SOURCE).as_posix() for path in paths if path.name != "__init__.py")


def test_file(source: str) -> Path:
    """Where the tests of a source file are."""
    path = TESTS / source
    return path.with_name(f"test_{path.name}")


test_file.__test__ = False  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", MIRRORED)
def test_every_file_has_the_test_file_of_its_name(package: str) -> None:
    files = sources(package)
    assert files, f"{package} has no files"
    missing = [each for each in files if not test_file(each).exists()]
    assert not missing, f"no test file bears the name of {', '.join(missing)}"
