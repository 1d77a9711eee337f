"""Says beforehand which names of TensorFlow a program uses that are missing here, or differ, and what to do.

    flowstone check program.py folder
    flowstone check --names program.py     also lists the names that fit
    flowstone check --json program.py      the same as data

The program is read, never run: the files that are named, and the modules beside them that they import. A
finding is a line: where, the name, and

    missing     flowstone does not have it; the line says which TensorFlow had it, or what is nearest
    refused     it needs eager execution or the like; the line says what to use instead
    ambiguous   two eras of TensorFlow read the call differently: it is refused until its arguments are named
    differs     the call does not fit the parameters
    python 2    the file is Python 2, which `flowstone convert` rewrites

The exit status is 1 if there are findings, 2 for a file that does not exist.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from flowstone.compat import tensorflow_name
from flowstone.compat.older_python import python_2
from flowstone.compat.program_files import ProgramFiles
from flowstone.compat.program_names import Use
from flowstone.compat.verdicts import Verdict, verdict_of

NAME = "check"
SUMMARY = "say which names of a program are missing or differ, without running it"


class Finding(NamedTuple):
    """What was found at a line of a file: its kind, the name, and what to do."""

    file: str
    line: int
    kind: str
    name: str
    text: str


def declare(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `flowstone check`."""
    parser.add_argument("paths", nargs="+", help="Python files, or folders with them")
    parser.add_argument("--names", action="store_true", help="list the names that fit, too")
    parser.add_argument("--json", action="store_true", help="write the findings as JSON")


def execute(options: argparse.Namespace) -> int:
    """Reads the files and writes the findings. Returns 0 without any, 1 with some, 2 if a file is missing."""
    for path in options.paths:
        if not Path(path).exists():
            print(f"flowstone check: no such file: {path}", file=sys.stderr)
            return 2
    tensorflow_name.install()
    program = ProgramFiles(Path(path) for path in options.paths)
    findings = [each for file in program for each in check(program, file)]
    wrong = [each for each in findings if each.kind != "fits"]
    if options.json:
        shown = findings if options.names else wrong
        print(json.dumps([each._asdict() for each in shown], indent=1))
    else:
        _write(findings, options.names)
    return 1 if wrong else 0


def check(program: ProgramFiles, file: Path) -> list[Finding]:
    """What is found in a file, names that fit among them; a name once for each way in which it is called."""
    try:
        uses = program.uses(file)
    except SyntaxError as error:
        said = python_2.describe(error)
        line = error.lineno or 0
        if said is None:
            return [Finding(str(file), line, "no python", "", f"Python cannot read the file: {error.msg}")]
        form = said.splitlines()[0].partition("this is Python 2: ")[2].rstrip(".")
        return [Finding(str(file), line, "python 2", "", f"{form}: flowstone convert {file} rewrites it")]
    known: dict[Use, Verdict] = {}
    findings = []
    for use in uses:
        key = use._replace(line=0)
        if key not in known:
            known[key] = verdict_of(use)
            name = use.name.replace("tensorflow", "tf", 1)
            findings.append(Finding(str(file), use.line, known[key].kind, name, known[key].text))
    return findings


def _write(findings: list[Finding], with_names: bool) -> None:
    for each in findings:
        if each.kind != "fits":
            print(f"{each.file}:{each.line}: {each.kind}: {each.name}: {each.text}".replace(": : ", ": "))
        elif with_names:
            print(f"{each.file}:{each.line}: fits: {each.name}")
    names = {each.name for each in findings if each.name}
    wrong = {each.name for each in findings if each.kind != "fits" and each.name}
    files = {each.file for each in findings}
    print(f"{len(names)} names of TensorFlow in {len(files)} files; {len(wrong)} need a change.")
