"""LLVM's text that reads protobuf's wire form: numbers, sizes, fields, and keys that are looked up.

What reads moves a *cursor*, a variable with the address of the next byte, up to `end`. `unusual` is called
with a condition, an i1, under which the message is damaged, or written as hardly any program writes it: the
code then leaves the message to protobuf, which knows all rules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from flowstone.native.codegen.structured import Code

__all__ = [
    "KEY_WORDS",
    "add_to",
    "byte",
    "found_key",
    "key_table",
    "left",
    "moved",
    "number",
    "size",
    "skip_field",
    "unless_unusual",
    "until",
    "walked",
]

Unusual = Callable[[str], None]
_HIGH_BITS = -9187201950435737472  # 0x80 in each byte of a word
_LONGEST_SIZE = 5  # bytes of a size
_FACTORS = (-7046029254386353131, -4417276706812531889, -1800455987208640293)  # odd, of many bits
KEY_WORDS = ("first", "last", "length", "offset", "kind")
"""What the table has of each key: `_ends` of its bytes, how many these are, where they are, the kind."""


def walked(condition: str) -> None:
    """Instead of `unusual` where all has been looked at before."""


@contextlib.contextmanager
def unless_unusual(e: Code, status: str) -> Iterator[Unusual]:
    """What is written within ends by a call of what this gives: the number at an address becomes 1 then, and
    0 where it comes to its end."""
    e.set("i64", status, "1")
    with e.repeat() as leave:
        yield leave
        e.set("i64", status, "0")
        leave("true")


@contextlib.contextmanager
def until(e: Code, cursor: str, end: str) -> Iterator[None]:
    """Runs what is within until the cursor is at the end."""
    with e.repeat() as done:
        done(e.let(f"icmp eq ptr {e.get('ptr', cursor)}, {end}"))
        yield


def add_to(e: Code, place: str, value: str | int) -> None:
    """Adds to the number at an address, or in a variable."""
    e.set("i64", place, e.add(e.get("i64", place), value))


def byte(e: Code, cursor: str, end: str, unusual: Unusual) -> str:
    """The next byte, as i64."""
    at = e.get("ptr", cursor)
    unusual(e.let(f"icmp uge ptr {at}, {end}"))
    e.set("ptr", cursor, e.at(at, 1, "i8"))
    return e.let(f"zext i8 {e.get('i8', at)} to i64")


def number(e: Code, cursor: str, end: str, unusual: Unusual, longest: int) -> str:
    """The next varint, as i64, of at most so many bytes: 10 where all 64 bits may be in use."""
    first = byte(e, cursor, end, unusual)
    value = e.variable("i64", first)
    with e.when(e.let(f"icmp ugt i64 {first}, 127")):
        e.set("i64", value, e.let(f"and i64 {first}, 127"))
        shift = e.variable("i64", "7")
        with e.repeat() as done:
            more = byte(e, cursor, end, unusual)
            bits = e.let(f"shl i64 {e.let(f'and i64 {more}, 127')}, {e.get('i64', shift)}")
            e.set("i64", value, e.let(f"or i64 {e.get('i64', value)}, {bits}"))
            if longest == 10:
                is_last = e.let(f"icmp eq i64 {e.get('i64', shift)}, 63")
                unusual(e.let(f"and i1 {is_last}, {e.let(f'icmp ugt i64 {more}, 1')}"))
            done(e.let(f"icmp ult i64 {more}, 128"))
            e.set("i64", shift, e.add(e.get("i64", shift), 7))
            unusual(e.let(f"icmp uge i64 {e.get('i64', shift)}, {7 * longest}"))
    return e.get("i64", value)


def size(e: Code, cursor: str, end: str, unusual: Unusual) -> str:
    """The next size: of bytes that are all there."""
    found = number(e, cursor, end, unusual, _LONGEST_SIZE)
    unusual(e.let(f"icmp ugt i64 {found}, {left(e, cursor, end)}"))
    return found


def left(e: Code, cursor: str, end: str) -> str:
    """How many bytes there are up to the end."""
    return e.sub(e.let(f"ptrtoint ptr {end} to i64"), e.let(f"ptrtoint ptr {e.get('ptr', cursor)} to i64"))


def moved(e: Code, cursor: str, count: str | int) -> str:
    """Moves the cursor by so many bytes, and gives its new place."""
    place = e.at(e.get("ptr", cursor), count, "i8")
    e.set("ptr", cursor, place)
    return place


def skip_field(e: Code, cursor: str, end: str, tag: str, unusual: Unusual) -> None:
    """Moves behind a field of an unknown number, whose tag has just been read."""
    unusual(e.let(f"icmp ult i64 {tag}, 8"))  # there is no field 0
    unusual(e.let(f"icmp ugt i64 {tag}, {0xFFFFFFFF}"))
    kind = e.let(f"and i64 {tag}, 7")
    kinds = [e.let(f"icmp eq i64 {kind}, {i}") for i in (0, 1, 2, 5)]
    is_varint, is_long, is_bytes, is_short = kinds
    known = e.let(f"or i1 {e.let(f'or i1 {is_varint}, {is_long}')}, {e.let(f'or i1 {is_bytes}, {is_short}')}")
    unusual(e.let(f"xor i1 {known}, true"))
    width = e.let(f"select i1 {is_long}, i64 8, i64 {e.let(f'select i1 {is_short}, i64 4, i64 0')}")
    count = e.variable("i64", width)
    with e.when(is_varint):
        number(e, cursor, end, unusual, 9)
    with e.when(is_bytes):
        e.set("i64", count, size(e, cursor, end, unusual))
    skipped = e.get("i64", count)
    unusual(e.let(f"icmp ugt i64 {skipped}, {left(e, cursor, end)}"))
    moved(e, cursor, skipped)


# ---- keys


def key_table(keys: Mapping[bytes, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Keys, each with its kind, for `found_key`: a shift, a mask, the numbers of keys at their places by a
    hash function (-1: none), `KEY_WORDS` of each, and the bytes of all."""
    bits = max(2 * len(keys), 2).bit_length()
    places = [-1] * (1 << bits)
    words: list[int] = []
    texts, start = b"", 8 * (2 + len(places) + len(KEY_WORDS) * len(keys))
    for i, (key, kind) in enumerate(keys.items()):
        first, last = _ends(key)
        place = _hashed(first, last, len(key)) >> (64 - bits)
        while places[place] >= 0:
            place = (place + 1) % len(places)
        places[place] = i
        words += [_signed(first), _signed(last), len(key), start + len(texts), kind]
        texts += key
    tail = np.frombuffer(texts + bytes(-len(texts) % 8), np.int64)
    return np.concatenate([np.array([64 - bits, len(places) - 1, *places, *words], np.int64), tail])


def _ends(key: bytes) -> tuple[int, int]:
    """A key's first and last 8, or 4, bytes as words, or the three of a shorter one."""
    if len(key) >= 4:
        part = 8 if len(key) >= 8 else 4
        return int.from_bytes(key[:part], "little"), int.from_bytes(key[-part:], "little")
    return (key[0] | key[len(key) // 2] << 8, key[-1]) if key else (0, 0)


def _hashed(first: int, last: int, length: int) -> int:
    mixed = (first * _FACTORS[0] ^ last * _FACTORS[1] ^ length) % (1 << 64)
    return mixed * _FACTORS[2] % (1 << 64)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def found_key(e: Code, key: str, length: str, table: str, unusual: Unusual) -> tuple[str, str]:
    """The number of a key in a table, -1 if it is not there, and where its words are. `unusual` for one that
    is not there and not in ASCII: it may be no text."""
    first, last = _read_ends(e, key, length)
    mask = e.word(table, 1)
    words = e.at(e.at(table, 2, "i64"), e.add(mask, 1), "i64")
    found, place = e.variable("i64", "-1"), e.variable("i64", _place(e, first, last, length, table))
    with e.repeat() as leave:
        i = e.get("i64", e.at(e.at(table, 2, "i64"), e.get("i64", place), "i64"))
        e.set("i64", found, i)
        leave(e.let(f"icmp slt i64 {i}, 0"))
        own = e.at(words, e.mul(i, len(KEY_WORDS)), "i64")
        pairs = [(first, e.word(own, 0)), (last, e.word(own, 1)), (length, e.word(own, 2))]
        same = [e.let(f"icmp eq i64 {a}, {b}") for a, b in pairs]
        is_same = e.variable("i1", e.let(f"and i1 {e.let(f'and i1 {same[0]}, {same[1]}')}, {same[2]}"))
        with _longer(e, e.get("i1", is_same), length) as j:
            other = e.get("i64", e.at(e.at(table, e.word(own, 3), "i8"), j, "i8"))
            equal = e.let(f"icmp eq i64 {e.get('i64', e.at(key, j, 'i8'))}, {other}")
            e.set("i1", is_same, e.let(f"and i1 {e.get('i1', is_same)}, {equal}"))
        leave(e.get("i1", is_same))
        following = e.add(e.get("i64", place), 1)
        e.set("i64", place, e.let(f"and i64 {following}, {mask}"))
    number = e.get("i64", found)
    with e.when(e.let(f"icmp slt i64 {number}, 0")):
        bits = e.variable("i64", e.let(f"or i64 {first}, {last}"))
        with _longer(e, "true", length) as j:
            e.set("i64", bits, e.let(f"or i64 {e.get('i64', bits)}, {e.get('i64', e.at(key, j, 'i8'))}"))
        high = e.let(f"and i64 {e.get('i64', bits)}, {_HIGH_BITS}")
        unusual(e.let(f"icmp ne i64 {high}, 0"))
    return number, e.at(words, e.mul(number, len(KEY_WORDS)), "i64")


def _read_ends(e: Code, key: str, length: str) -> tuple[str, str]:
    first, last = e.variable("i64", "0"), e.variable("i64", "0")
    for kind, least, below in (("i64", 8, None), ("i32", 4, 8)):
        fits = e.let(f"icmp uge i64 {length}, {least}")
        if below:
            fits = e.let(f"and i1 {fits}, {e.let(f'icmp ult i64 {length}, {below}')}")
        with e.when(fits):
            for place, at in ((first, key), (last, e.at(key, e.sub(length, least), "i8"))):
                word = e.let(f"load {kind}, ptr {at}, align 1")
                e.set("i64", place, word if kind == "i64" else e.let(f"zext {kind} {word} to i64"))
    with e.when(e.let(f"and i1 {e.let(f'icmp ult i64 {length}, 4')}, {e.let(f'icmp ugt i64 {length}, 0')}")):
        places = [key, e.at(key, e.let(f"lshr i64 {length}, 1"), "i8"), e.at(key, e.sub(length, 1), "i8")]
        a, b, c = (e.let(f"zext i8 {e.get('i8', each)} to i64") for each in places)
        e.set("i64", first, e.let(f"or i64 {a}, {e.let(f'shl i64 {b}, 8')}"))
        e.set("i64", last, c)
    return e.get("i64", first), e.get("i64", last)


def _place(e: Code, first: str, last: str, length: str, table: str) -> str:
    a, b = (e.let(f"mul i64 {word}, {factor}") for word, factor in zip((first, last), _FACTORS))
    mixed = e.let(f"xor i64 {e.let(f'xor i64 {a}, {b}')}, {length}")
    return e.let(f"lshr i64 {e.let(f'mul i64 {mixed}, {_FACTORS[2]}')}, {e.word(table, 0)}")


@contextlib.contextmanager
def _longer(e: Code, condition: str, length: str) -> Iterator[str]:
    """If the condition holds, what is within runs for each word of a key that its ends leave out."""
    is_long = e.let(f"icmp ugt i64 {length}, 16")
    with e.when(e.let(f"and i1 {condition}, {is_long}")), e.loop(8, e.sub(length, 8), 8) as j:
        yield j
