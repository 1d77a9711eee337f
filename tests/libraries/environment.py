"""A library's own tests over flowstone, in an environment of its own.

The environment is a virtual environment below build/libraries that also sees the packages of the Python that
runs this, so that torch is not installed again; what a library needs in other versions hides those. The tests
are those of the library's published archive, unmodified.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass
class Library:
    """A published library, and how many of its tests pass with the TensorFlow that it was written for."""

    name: str
    requirement: str  # of the archive that has the tests
    tests: Sequence[str]  # below the archive's folder; patterns
    expected: int
    packages: Sequence[str] = ()  # what the tests import besides
    without: Sequence[str] = ()  # files of tests that are left out
    environment: dict[str, str] = field(default_factory=dict)
    is_source: bool = True  # a source archive; otherwise a wheel, which has the tests in the package

    @property
    def folder(self) -> Path:
        """Where its environment and its archive are."""
        return ROOT / "build" / "libraries" / self.name

    @property
    def python(self) -> Path:
        """The environment's Python."""
        return self.folder / "environment" / "bin" / "python"


def set_up(library: Library) -> Path:
    """Makes the environment, unless it is there, and returns the folder of the unpacked archive."""
    if not library.python.exists():
        venv.create(library.folder / "environment", with_pip=True)
        paths = [str(ROOT / "src"), sysconfig.get_path("purelib")]
        site = next((library.folder / "environment" / "lib").glob("python*/site-packages"))
        (site / "flowstone_and_its_needs.pth").write_text("\n".join(paths) + "\n")
        packages = ["pytest==7.4.4", *library.packages]
        subprocess.run([library.python, "-m", "pip", "install", "-q", *packages], check=True)
        no_dependencies = ["install", "-q", "--no-deps", library.requirement]
        subprocess.run([library.python, "-m", "pip", *no_dependencies], check=True)
    return _unpacked(library)


def _unpacked(library: Library) -> Path:
    archives = library.folder / "archive"
    if not archives.exists():
        form = ["--no-binary", ":all:"] if library.is_source else ["--only-binary", ":all:"]
        download = ["download", "-q", "--no-deps", *form, "-d", str(archives), library.requirement]
        subprocess.run([library.python, "-m", "pip", *download], check=True)
    (archive,) = (path for path in archives.iterdir() if path.is_file())
    target = archives / "unpacked"
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target)
        return target
    with tarfile.open(archive) as source:
        source.extractall(target, filter="data")
    (folder,) = target.iterdir()
    return folder


def run_tests(library: Library, arguments: Sequence[str] = ()) -> tuple[int, str]:
    """How many tests passed, and pytest's last line."""
    folder = set_up(library)
    files = sorted(path for pattern in library.tests for path in folder.glob(pattern))
    left_out = {folder / path for path in library.without}
    command = [library.python, "-m", "flowstone", "run", "-m", "pytest", "-q", "--tb=line"]
    command += ["-c", os.devnull, f"--rootdir={folder}", "-p", "no:cacheprovider"]
    command += [path for path in files if path not in left_out]
    command += [f"--ignore={path}" for path in sorted(left_out)]
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **library.environment}
    with subprocess.Popen(
        [*command, *arguments], cwd=folder, env=variables, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = ""
        for line in process.stdout:
            print(line, end="")
    return passed(line), line.strip("= \n")


def passed(summary: str) -> int:
    """The number of tests that passed, by pytest's last line.

    >>> passed("=== 2 failed, 163 passed in 5.24s ===")
    163
    """
    found = re.search(r"(\d+) passed", summary)
    return int(found.group(1)) if found else 0


def main(library: Library) -> int:
    """Runs the library's tests, says how many passed; 1 if fewer than expected."""
    count, line = run_tests(library, sys.argv[1:])
    print(f"{library.requirement}: {count} of {library.expected} passed ({line})")
    return 0 if count >= library.expected else 1
