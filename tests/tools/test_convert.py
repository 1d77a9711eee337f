"""`flowstone convert`: programs of Python 2 become programs of Python 3."""

from __future__ import annotations

import subprocess
from pathlib import Path

import forked

PROGRAM = """\
import cPickle
import urllib2
from StringIO import StringIO

def show(d, n):
\tfor key, value in d.iteritems():
\t    print key, value
        if d.has_key(1) and n <> 3:
            print >>StringIO(), "yes"
\ttry:
            return [unicode(x) for x in xrange(n / 2)] + [`n`, 0755, 10L]
        except ValueError, error:
            raise TypeError, "no"

print map(lambda x: x + 1, [1, 2])
print 1.0 / 2, "a/b"
"""


def convert(*arguments: str) -> subprocess.CompletedProcess[str]:
    return forked.run(["convert", *arguments])


def test_a_program(tmp_path: Path) -> None:
    path = tmp_path / "old.py"
    path.write_text(PROGRAM)
    result = convert(str(path))
    assert result.returncode == 0, result.stderr
    assert path.read_text() == PROGRAM
    compile(result.stdout, "new.py", "exec")
    for text in (
        "import pickle",
        "urllib.request",
        "from io import StringIO",
        "d.items()",
        "print(key, value)",
        "1 in d and n != 3",
        'print("yes", file=StringIO())',
        "str(x) for x in range(n / 2)",
        "repr(n), 0o755, 10]",
        "except ValueError as error",
        'raise TypeError("no")',
        "print([x + 1 for x in [1, 2]])",
    ):
        assert text in result.stdout, (text, result.stdout)
    notes = [line for line in result.stderr.splitlines() if "a division" in line]
    assert notes == [
        f"{path}:11: a division, of integers in Python 2 perhaps: " + PROGRAM.splitlines()[10].strip()
    ]


def test_files_rewritten_in_place(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "old.py"
    path.write_text("print 'x'\n")
    (tmp_path / "folder" / "new.py").write_text("print('y')\n")
    shown = convert("--diff", str(tmp_path))
    assert "-print 'x'\n+print('x')" in shown.stdout and path.read_text() == "print 'x'\n"
    result = convert("--write", str(tmp_path))
    assert result.returncode == 0 and result.stderr == f"{path}: rewritten\n"
    assert path.read_text() == "print('x')\n"
    assert (tmp_path / "folder" / "old.py.orig").read_text() == "print 'x'\n"
    assert not (tmp_path / "folder" / "new.py.orig").exists()


def test_true_division_has_no_note(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("from __future__ import division\nprint 1 / 2\n")
    assert convert(str(path)).stderr == ""


def test_what_cannot_be_converted(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def def\n")
    result = convert(str(path))
    assert result.returncode == 1 and "cannot be read as Python 2" in result.stderr
    assert convert(str(tmp_path / "absent.py")).returncode == 2
