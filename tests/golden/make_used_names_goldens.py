"""Makes public_names/used_names.txt: the names that more than one source of real programs uses.

    python tests/golden/make_used_names_goldens.py USAGE

USAGE is the table `api/usage.md` of the facts that the project is given.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def main() -> None:
    """Writes the names of `tf` with at least two sources, in alphabetical order."""
    text = Path(sys.argv[1]).read_text()
    found = re.findall(r"^\| \d+ \| (\S+) \| (\d+) \|", text, re.MULTILINE)
    beyond = text.split("## Names beyond the 300")[1].split("\n\n")[1]
    found += [(f"tf.{name}", sources) for name, sources in re.findall(r"([\w.]+) \((\d+)\)", beyond)]
    names = sorted({name for name, sources in found if int(sources) > 1 and name.startswith("tf.")})
    target = Path(__file__).parent / "public_names" / "used_names.txt"
    target.write_text("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main()
