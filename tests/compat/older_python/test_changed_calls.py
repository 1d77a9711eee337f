"""Arguments that functions of the library took, in a program that `flowstone run` runs."""

from __future__ import annotations

from pathlib import Path

from installed_programs import run_as_program


def test_calls(tmp_path: Path) -> None:
    result = run_as_program(
        f"        name = {str(tmp_path / 'lines.txt')!r}"
        """
        import hmac, io, json, math, random, re
        with open(name, "wb") as f:
            f.write(b"a\\r\\nb\\rc")
        print({open(name, mode).read() for mode in ("U", "rU", "r")}, io.open(name, "rbU").read())
        print(json.loads('{"a": 1}', encoding="utf-8"), json.load(io.StringIO("[2]"), encoding="latin-1"))
        x = list(range(6))
        random.shuffle(x, lambda: 0.3)
        print(x)
        random.seed(3)
        own, drawn = list(range(6)), random.Random(3)
        random.shuffle(own)
        other = list(range(6))
        drawn.shuffle(other)
        print(own == other, sorted(random.sample({1, 2, 3}, 3)), random.sample({"k": 1}.keys(), 1))
        print(random.randint(4, 8 / 2), random.randrange(1.0), math.factorial(4.0))
        print(hmac.new(b"key", b"text").name, bool(re.match("ab(?i)", "AB")))
        print(re.sub("a(?s).", "x", "a\\n"))
        for wrong in (lambda: open("none", "rU"), lambda: math.factorial(4.5), lambda: re.compile("(")):
            try:
                wrong()
            except Exception as error:
                print(type(error).__name__)
        """,
        tmp_path,
    )
    assert result.stdout.splitlines() == [
        "{'a\\nb\\nc'} b'a\\r\\nb\\rc'",
        "{'a': 1} [2]",
        "[3, 2, 0, 4, 5, 1]",
        "True [1, 2, 3] ['k']",
        "4 0 24",
        "hmac-md5 True",
        "x",
        "FileNotFoundError",
        "TypeError",
        _NAME_OF_ERRORS,
    ], result.stderr


_NAME_OF_ERRORS = type(__import__("re").error("")).__name__


def test_names_and_methods(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import array, asyncio, configparser, inspect, io, locale, os, platform, sys
        import xml.etree.cElementTree as fast
        import xml.etree.ElementTree as tree
        from html.parser import HTMLParser
        root = tree.fromstring("<a><b>1</b><c/></a>")
        print([each.tag for each in root.getchildren()], [each.text for each in root.getiterator("b")])
        print(fast.fromstring("<a/>").getchildren(), len(tree.ElementTree(root).getiterator()))
        numbers = array.array("B", [1])
        numbers.fromstring(b"\\2")
        print(numbers.tostring(), HTMLParser().unescape("&lt;"), os.errno.EEXIST > 0, len(platform.dist()))
        parser = configparser.SafeConfigParser()
        parser.readfp(io.StringIO("[a]\\nb = 1"))
        sys.setcheckinterval(sys.getcheckinterval())
        print(parser.get("a", "b"), locale.format("%d", 3), asyncio.coroutine(len) is not None)
        def f(a, b=2, *c, d=4, **e): pass
        print(inspect.formatargspec(*inspect.getfullargspec(f)), inspect.formatargspec(["x"], "y"))
        """,
        tmp_path,
    )
    assert result.stdout.splitlines() == [
        "['b', 'c'] ['1']",
        "[] 3",
        "b'\\x01\\x02' < True 3",
        "1 3 True",
        "(a, b=2, *c, d=4, **e) (x, *y)",
    ], result.stderr
