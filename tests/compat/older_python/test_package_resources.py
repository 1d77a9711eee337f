"""`pkg_resources` in a program that `flowstone run` runs, where setuptools has none."""

from __future__ import annotations

from pathlib import Path

from installed_programs import run_as_program

HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pkg_resources" and not any(type(each).__name__ == "_Made" for each in sys.meta_path[:1]):
            made = next(each for each in sys.meta_path if type(each).__name__ == "_Made")
            return made.find_spec(name, path)
sys.meta_path.insert(0, Hidden())
"""


def test_distributions_requirements_and_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "words.txt").write_text("one two")
    result = run_as_program(
        HIDDEN
        + """
import numpy as np
import pkg_resources as p
print(p.__spec__.loader is not None and "setuptools" not in str(p.__file__ if hasattr(p, "__file__") else ""))
print(p.parse_version("1.10") > p.parse_version("1.9"), p.get_distribution("numpy").version == np.__version__)
print([each.project_name for each in p.require("numpy>=1.0")])
print([r.key for r in p.parse_requirements("A\\n# b\\nc>1")])
for wanted in ("no-such-package", "numpy<0.1"):
    try:
        p.get_distribution(wanted)
    except p.ResolutionError as error:
        print(type(error).__name__)
print(p.resource_string("parts", "words.txt"), p.resource_exists("parts", "none"))
print(sorted(p.resource_listdir("parts", ""))[-1])
print("numpy" in p.working_set.by_key, len(list(p.iter_entry_points("no such group"))))
""",
        tmp_path,
    )
    assert result.stdout.splitlines() == [
        "True",
        "True True",
        "['numpy']",
        "['a', 'c']",
        "DistributionNotFound",
        "VersionConflict",
        "b'one two' False",
        "words.txt",
        "True 0",
    ], result.stderr
