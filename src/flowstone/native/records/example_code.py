"""LLVM's text that walks serialised Examples: where the lists of the wanted features are, and how long.

An Example is `Features` in field 1, of which each entry (field 1) is a key (1) and a `Feature` (2), which
holds a list in field 1, 2 or 3: bytes, floats or integers. Of numbers a list is packed, in one or more
parts, or has a tag before each. Fields that are not known are skipped; of entries with one key the last
counts. All of a message is looked at, also features that nobody wants: what is damaged, or unusual, makes
the walk end, and protobuf decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowstone.native.codegen.structured import Code
from flowstone.native.records.wire_code import (
    KEY_WORDS,
    Unusual,
    add_to,
    byte,
    found_key,
    left,
    moved,
    number,
    size,
    skip_field,
    unless_unusual,
    until,
    walked,
)

__all__ = ["BYTES", "ENTRY", "FIRST", "FLOATS", "INTEGERS", "MESSAGE", "SINGLE", "SUMMARY", "walk_code"]

ENTRY = ("count", "place", "size")
"""What the walk finds of a feature in a message, int64: how many values, -1 without the feature, and the
address and the size of the list."""
SUMMARY = ("total", "missing", "most")
"""How many values of a feature all messages have, how many lack it, and the most values of a message."""
MESSAGE = {"type": 8, "length": 16, "bytes": 32}
"""The offsets of an object of bytes."""
BYTES, FLOATS, INTEGERS = 1, 2, 3
FIRST, _SECOND = 0x0A, 0x12  # tags
SINGLE = {FLOATS: 0x0D, INTEGERS: 0x08}
"""The tags of numbers that are not packed."""
_HIGH_BITS = -9187201950435737472  # 0x80 in each byte of a word
_WriteValue = Callable[[Code, str, str, tuple[str, str], Unusual], Sequence[str]]


def walk_code(declarations: dict[str, str]) -> list[str]:
    """The functions of ``walk(objects, rows, type, table, features, found)``, of the addresses of Examples,
    and of ``walk_lists``, the same of the lists of SequenceExamples, in field 2, each a list of Features in
    field 1: how many steps these have. Of the latter ``steps`` finds the Features.

    `found`, int64, is a status, which becomes 0, or 1 where the walk ended before its time; SUMMARY of each
    feature; and ENTRY of each feature of each message.
    """
    parts = (("features", _feature), ("lists", _feature_list))
    maps = [_map_code(name, write, declarations) for name, write in parts]
    return [_count_code(declarations), *maps, *_walks(declarations), _steps_code(declarations)]


def _walks(declarations: dict[str, str]) -> list[str]:
    texts = []
    for name, tag, part in (("walk", FIRST, "features"), ("walk_lists", _SECOND, "lists")):
        e = Code(
            name, ["ptr objects", "i64 rows", "ptr type", "ptr table", "i64 features", "ptr found"],
            1, declarations, is_public=True,
        )  # fmt: skip
        _write_walk(e, tag, part)
        texts.append(e.text())
    return texts


def _write_walk(e: Code, tag: int, part: str) -> None:
    summary = e.at("%found", 1, "i64")
    width = e.mul("%features", len(ENTRY))
    with e.loop(0, e.mul("%features", len(SUMMARY))) as i:
        e.set("i64", e.at(summary, i, "i64"), "0")
    with unless_unusual(e, "%found") as unusual, e.loop(0, "%rows") as row:
        entries = e.at(e.at(summary, e.mul("%features", len(SUMMARY)), "i64"), e.mul(row, width), "i64")
        with e.loop(0, "%features") as i:
            e.set("i64", e.at(entries, e.mul(i, len(ENTRY)), "i64"), "-1")
        message = e.get("ptr", e.at("%objects", row, "ptr"))
        _walk_one(e, message, tag, part, entries, unusual)
        with e.loop(0, "%features") as i:
            count = e.get("i64", e.at(entries, e.mul(i, len(ENTRY)), "i64"))
            _summarise(e, e.at(summary, e.mul(i, len(SUMMARY)), "i64"), count)


def _summarise(e: Code, summary: str, count: str) -> None:
    add_to(e, summary, e.most(count, 0))
    add_to(e, e.at(summary, 1, "i64"), e.let(f"lshr i64 {count}, 63"))
    most = e.at(summary, 2, "i64")
    e.set("i64", most, e.most(e.get("i64", most), count))


def _walk_one(e: Code, message: str, known: int, part: str, entries: str, unusual: Unusual) -> None:
    kind = e.get("ptr", e.at(message, MESSAGE["type"], "i8"))
    unusual(e.let(f"icmp ne ptr {kind}, %type"))
    start = e.at(message, MESSAGE["bytes"], "i8")
    end = e.at(start, e.get("i64", e.at(message, MESSAGE["length"], "i8")), "i8")
    cursor, status = e.variable("ptr", start), e.array("i64", 1)
    with until(e, cursor, end):
        tag = number(e, cursor, end, unusual, 5)
        is_known = e.let(f"icmp eq i64 {tag}, {known}")
        with e.when(is_known):
            count = size(e, cursor, end, unusual)
            begin = e.get("ptr", cursor)
            stop = moved(e, cursor, count)
            e.do(f"call void @{part}(ptr {begin}, ptr {stop}, ptr %table, ptr {entries}, ptr {status})")
            unusual(e.let(f"icmp ne i64 {e.get('i64', status)}, 0"))
        with e.when(e.let(f"xor i1 {is_known}, true")):
            unusual(e.let(f"icmp eq i64 {e.let(f'lshr i64 {tag}, 3')}, {known >> 3}"))
            skip_field(e, cursor, end, tag, unusual)


def _map_code(name: str, write: _WriteValue, declarations: dict[str, str]) -> str:
    """``name(at, end, table, entries, status)``: the entries of the keys that are found in a map."""
    e = Code(name, ["ptr at", "ptr end", "ptr table", "ptr entries", "ptr status"], 1, declarations)
    cursor = e.variable("ptr", "%at")
    with unless_unusual(e, "%status") as unusual, until(e, cursor, "%end"):
        length = _tagged(e, cursor, "%end", FIRST, unusual)
        stop = e.at(e.get("ptr", cursor), length, "i8")
        key_size = _tagged(e, cursor, stop, FIRST, unusual)
        key = e.get("ptr", cursor)
        moved(e, cursor, key_size)
        found, words = found_key(e, key, key_size, "%table", unusual)
        rest = _tagged(e, cursor, stop, _SECOND, unusual)
        unusual(e.let(f"icmp ne i64 {rest}, {left(e, cursor, stop)}"))
        is_wanted = e.let(f"icmp sge i64 {found}, 0")
        values = write(e, cursor, stop, (is_wanted, words), unusual)
        with e.when(is_wanted):
            own = e.at("%entries", e.mul(found, len(ENTRY)), "i64")
            for i, value in enumerate(values):
                e.set("i64", e.at(own, i, "i64"), value)
    return e.text()


def _feature(e: Code, cursor: str, end: str, wanted: tuple[str, str], unusual: Unusual) -> tuple[str, ...]:
    """The ENTRY of a Feature, all up to the end; `wanted`: whether it is, and the words of its key."""
    entry = [e.variable("i64", start) for start in ("-1", "0", "0")]
    with e.when(e.let(f"icmp ne i64 {left(e, cursor, end)}, 0")):
        kind, list_size = _list(e, cursor, end, unusual)
        begin, result = e.get("ptr", cursor), e.array("i64", 1)
        e.do(f"call void @count(ptr {begin}, ptr {end}, i64 {kind}, ptr {result})")
        values = e.get("i64", result)
        unusual(e.let(f"icmp slt i64 {values}, 0"))
        is_wanted, words = wanted
        with e.when(is_wanted):
            unusual(e.let(f"icmp ne i64 {kind}, {e.word(words, KEY_WORDS.index('kind'))}"))
        for place, value in zip(entry, (values, e.let(f"ptrtoint ptr {begin} to i64"), list_size)):
            e.set("i64", place, value)
        moved(e, cursor, list_size)
    return tuple([e.get("i64", place) for place in entry])


def _feature_list(
    e: Code, cursor: str, end: str, wanted: tuple[str, str], unusual: Unusual
) -> tuple[str, ...]:
    """The same of a list of Features: how many there are, and where."""
    begin, bytes_left = e.get("ptr", cursor), left(e, cursor, end)
    steps = e.variable("i64", "0")
    with until(e, cursor, end):
        length = _tagged(e, cursor, end, FIRST, unusual)
        _feature(e, cursor, e.at(e.get("ptr", cursor), length, "i8"), wanted, unusual)
        add_to(e, steps, 1)
    return e.get("i64", steps), e.let(f"ptrtoint ptr {begin} to i64"), bytes_left


def _steps_code(declarations: dict[str, str]) -> str:
    """``steps(entries, rows, pitch, found)``: what a walk would have found of one feature, if each Feature in
    lists that have been walked over were a message's."""
    e = Code("steps", ["ptr entries", "i64 rows", "i64 pitch", "ptr found"], 1, declarations, is_public=True)
    summary = e.at("%found", 1, "i64")
    with e.loop(0, 1 + len(SUMMARY)) as i:
        e.set("i64", e.at("%found", i, "i64"), "0")
    out = e.variable("ptr", e.at(summary, len(SUMMARY), "i64"))
    with e.loop(0, "%rows") as row:
        entry = e.at("%entries", e.mul(row, "%pitch"), "i64")
        with e.when(e.let(f"icmp sgt i64 {e.get('i64', entry)}, 0")):
            cursor = e.variable("ptr", e.pointer(entry, 1))
            end = e.at(e.get("ptr", cursor), e.word(entry, 2), "i8")
            with until(e, cursor, end):
                length = _tagged(e, cursor, end, FIRST, walked)
                stop = e.at(e.get("ptr", cursor), length, "i8")
                values = _feature(e, cursor, stop, ("false", "%found"), walked)
                for value in values:
                    e.set("i64", e.get("ptr", out), value)
                    moved(e, out, 8)
                _summarise(e, summary, values[0])
    return e.text()


def _tagged(e: Code, cursor: str, end: str, tag: int, unusual: Unusual) -> str:
    """The size of the field of this tag, which comes next."""
    unusual(e.let(f"icmp ne i64 {byte(e, cursor, end, unusual)}, {tag}"))
    return size(e, cursor, end, unusual)


def _list(e: Code, cursor: str, end: str, unusual: Unusual) -> tuple[str, str]:
    """The kind and the size of a Feature's list, which must be all that it has."""
    tag = byte(e, cursor, end, unusual)
    unusual(e.let(f"icmp ne i64 {e.let(f'and i64 {tag}, 7')}, 2"))
    kind = e.let(f"lshr i64 {tag}, 3")
    unusual(e.let(f"icmp ugt i64 {e.sub(kind, 1)}, 2"))
    count = size(e, cursor, end, unusual)
    unusual(e.let(f"icmp ne i64 {count}, {left(e, cursor, end)}"))
    return kind, count


# ---- values


def _count_code(declarations: dict[str, str]) -> str:
    """``count(at, end, kind, result)``: how many values a list has; -1 where it is damaged or unusual."""
    e = Code("count", ["ptr at", "ptr end", "i64 kind", "ptr result"], 1, declarations)
    e.set("i64", "%result", "-1")
    with e.repeat() as leave:
        values, cursor = e.variable("i64", "0"), e.variable("ptr", "%at")
        with e.when(e.let(f"icmp eq i64 %kind, {BYTES}")), until(e, cursor, "%end"):
            moved(e, cursor, _tagged(e, cursor, "%end", FIRST, leave))
            add_to(e, values, 1)
        with e.when(e.let(f"icmp eq i64 %kind, {FLOATS}")), until(e, cursor, "%end"):
            _count_floats(e, cursor, values, leave)
        with e.when(e.let(f"icmp eq i64 %kind, {INTEGERS}")), until(e, cursor, "%end"):
            _count_integers(e, cursor, values, leave)
        e.set("i64", "%result", e.get("i64", values))
        leave("true")
    return e.text()


def _count_floats(e: Code, cursor: str, values: str, unusual: Unusual) -> None:
    """A float, or packed ones."""
    tag, part = byte(e, cursor, "%end", unusual), e.variable("i64", "4")
    with e.when(e.let(f"icmp ne i64 {tag}, {SINGLE[FLOATS]}")):
        unusual(e.let(f"icmp ne i64 {tag}, {FIRST}"))
        e.set("i64", part, size(e, cursor, "%end", unusual))
    length = e.get("i64", part)
    unusual(e.let(f"icmp ne i64 {e.let(f'and i64 {length}, 3')}, 0"))
    unusual(e.let(f"icmp ugt i64 {length}, {left(e, cursor, '%end')}"))
    moved(e, cursor, length)
    add_to(e, values, e.let(f"lshr i64 {length}, 2"))


def _count_integers(e: Code, cursor: str, values: str, unusual: Unusual) -> None:
    """An integer, or packed ones."""
    tag = byte(e, cursor, "%end", unusual)
    is_single = e.let(f"icmp eq i64 {tag}, {SINGLE[INTEGERS]}")
    with e.when(is_single):
        number(e, cursor, "%end", unusual, 10)
        add_to(e, values, 1)
    with e.when(e.let(f"xor i1 {is_single}, true")):
        unusual(e.let(f"icmp ne i64 {tag}, {FIRST}"))
        length = size(e, cursor, "%end", unusual)
        stop = e.at(e.get("ptr", cursor), length, "i8")
        with until(e, cursor, stop):
            is_one = e.variable("i1", "true")
            with e.when(e.let(f"icmp uge i64 {left(e, cursor, stop)}, 8")):
                word = e.let(f"load i64, ptr {e.get('ptr', cursor)}, align 1")
                high = e.let(f"and i64 {word}, {_HIGH_BITS}")
                e.set("i1", is_one, e.let(f"icmp ne i64 {high}, 0"))
            chosen = e.get("i1", is_one)
            with e.when(chosen):
                number(e, cursor, stop, unusual, 10)
                add_to(e, values, 1)
            with e.when(e.let(f"xor i1 {chosen}, true")):  # eight of one byte each
                moved(e, cursor, 8)
                add_to(e, values, 8)
