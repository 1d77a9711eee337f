"""LLVM's text that reads decimal numbers as they stand in a text, with the values of Python's `int`, `float`.

White space may surround a number. `unusual` is called with a condition, an i1, under which a text is none, or
one that hardly any program writes (hexadecimal, infinite, an integer of many digits): the code then leaves it
to others. A float whose digits and power of ten float64 holds exactly is one product or quotient of both,
which is rounded once (W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990); CPython reads
others.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.native.codegen.structured import Code

__all__ = ["float_text", "integer_text", "number_constants"]

Unusual = Callable[[str], None]
_EXACT_POWER = 22  # the highest power of ten that float64 has exactly
_EXACT_DIGITS = 1 << 53
_MOST_DIGITS = 19  # that a word without sign holds
_MOST_POWER_DIGITS = 4
_POWERS = "@powers_of_ten"


def number_constants() -> str:
    """What stands beside the functions."""
    powers = ", ".join(f"double {10.0**i:.1f}" for i in range(_EXACT_POWER + 1))
    return (
        f"{_POWERS} = internal constant [{_EXACT_POWER + 1} x double] [{powers}]\n"
        "declare double @PyOS_string_to_double(ptr, ptr, ptr)"
    )


def integer_text(e: Code, begin: str, end: str, unusual: Unusual) -> str:
    """The integer, i64, that the bytes up to the end are the text of."""
    cursor, stop = _trimmed(e, begin, end, unusual)
    is_negative = _sign(e, cursor, stop)
    size, digits = e.variable("i64", "0"), e.variable("i64", "0")
    start = e.get("ptr", cursor)
    _read_digits(e, cursor, stop, size, digits)
    unusual(e.let(f"icmp ne ptr {e.get('ptr', cursor)}, {stop}"))
    count = _distance(e, start, stop)
    unusual(e.let(f"icmp ugt i64 {e.let(f'sub i64 {count}, 1')}, {_MOST_DIGITS - 1}"))
    most = e.let(f"select i1 {is_negative}, i64 {-(1 << 63)}, i64 {(1 << 63) - 1}")
    magnitude = e.get("i64", size)
    unusual(e.let(f"icmp ugt i64 {magnitude}, {most}"))
    return e.let(f"select i1 {is_negative}, i64 {e.let(f'sub i64 0, {magnitude}')}, i64 {magnitude}")


def float_text(e: Code, begin: str, end: str, unusual: Unusual) -> str:
    """The number, double, that the bytes up to the end are the text of; what follows them is no digit."""
    cursor, stop = _trimmed(e, begin, end, unusual)
    first = e.get("ptr", cursor)
    is_negative = _sign(e, cursor, stop)
    size, digits = e.variable("i64", "0"), e.variable("i64", "0")
    start = e.get("ptr", cursor)
    _read_digits(e, cursor, stop, size, digits)
    whole = _distance(e, start, e.get("ptr", cursor))
    places = e.variable("i64", "0")
    with e.when(_is_next(e, cursor, stop, ".", ".")):
        point = _step(e, cursor)
        _read_digits(e, cursor, stop, size, digits)
        e.set("i64", places, _distance(e, point, e.get("ptr", cursor)))
    unusual(e.let(f"icmp eq i64 {e.add(whole, e.get('i64', places))}, 0"))
    power = e.variable("i64", "0")
    with e.when(_is_next(e, cursor, stop, "e", "E")):
        _step(e, cursor)
        is_small = _sign(e, cursor, stop)
        value, unused = e.variable("i64", "0"), e.variable("i64", "0")
        start = e.get("ptr", cursor)
        _read_digits(e, cursor, stop, value, unused)
        count = _distance(e, start, e.get("ptr", cursor))
        unusual(e.let(f"icmp ugt i64 {e.let(f'sub i64 {count}, 1')}, {_MOST_POWER_DIGITS - 1}"))
        found = e.get("i64", value)
        e.set("i64", power, e.let(f"select i1 {is_small}, i64 {e.let(f'sub i64 0, {found}')}, i64 {found}"))
    unusual(e.let(f"icmp ne ptr {e.get('ptr', cursor)}, {stop}"))
    out = e.variable("double", "0.0")
    exponent = e.sub(e.get("i64", power), e.get("i64", places))
    with e.repeat() as leave:
        _put_exact(e, e.get("i64", size), e.get("i64", digits), exponent, is_negative, out, leave)
        after = e.variable("ptr", "null")
        e.set("double", out, e.let(f"call double @PyOS_string_to_double(ptr {first}, ptr {after}, ptr null)"))
        unusual(e.let(f"icmp ne ptr {e.get('ptr', after)}, {stop}"))
        leave("true")
    return e.get("double", out)


def _put_exact(
    e: Code, size: str, digits: str, exponent: str, is_negative: str, out: str, leave: Unusual
) -> None:
    """Puts the number there and leaves, if one operation has it exactly."""
    fits = [
        e.let(f"icmp ule i64 {digits}, {_MOST_DIGITS}"),
        e.let(f"icmp ule i64 {size}, {_EXACT_DIGITS}"),
        e.let(f"icmp ule i64 {e.add(exponent, _EXACT_POWER)}, {2 * _EXACT_POWER}"),
    ]
    is_exact = e.let(f"and i1 {e.let(f'and i1 {fits[0]}, {fits[1]}')}, {fits[2]}")
    with e.when(is_exact):
        is_small = e.let(f"icmp slt i64 {exponent}, 0")
        place = e.let(f"select i1 {is_small}, i64 {e.sub(0, exponent)}, i64 {exponent}")
        power = e.get("double", e.at(_POWERS, place, "double"))
        value = e.let(f"uitofp i64 {size} to double")
        with e.when(is_small):
            e.set("double", out, e.let(f"fdiv double {value}, {power}"))
        with e.when(e.let(f"xor i1 {is_small}, true")):
            e.set("double", out, e.let(f"fmul double {value}, {power}"))
        found = e.get("double", out)
        e.set(
            "double",
            out,
            e.let(f"select i1 {is_negative}, double {e.let(f'fneg double {found}')}, double {found}"),
        )
    leave(is_exact)


def _trimmed(e: Code, begin: str, end: str, unusual: Unusual) -> tuple[str, str]:
    """A cursor at the first byte that is no white space, and the place behind the last one."""
    cursor, stop = e.variable("ptr", begin), e.variable("ptr", end)
    with e.repeat() as leave:
        at = e.get("ptr", cursor)
        unusual(e.let(f"icmp eq ptr {at}, {end}"))
        leave(e.let(f"xor i1 {_is_space(e, at)}, true"))
        _step(e, cursor)
    with e.repeat() as leave:
        last = e.at(e.get("ptr", stop), -1, "i8")
        leave(e.let(f"xor i1 {_is_space(e, last)}, true"))
        e.set("ptr", stop, last)
    return cursor, e.get("ptr", stop)


def _is_space(e: Code, place: str) -> str:
    byte = e.get("i8", place)
    is_control = e.let(f"icmp ult i8 {e.let(f'sub i8 {byte}, 9')}, 5")
    return e.let(f"or i1 {e.let(f'icmp eq i8 {byte}, 32')}, {is_control}")


def _sign(e: Code, cursor: str, stop: str) -> str:
    """Moves behind a sign, if there is one; whether it is a minus."""
    is_negative = _is_next(e, cursor, stop, "-", "-")
    with e.when(e.let(f"or i1 {is_negative}, {_is_next(e, cursor, stop, '+', '+')}")):
        _step(e, cursor)
    return is_negative


def _is_next(e: Code, cursor: str, stop: str, one: str, other: str) -> str:
    """Whether one of two characters follows before the stop. The byte there can be read, too."""
    at = e.get("ptr", cursor)
    byte = e.get("i8", at)
    found = e.let(
        f"or i1 {e.let(f'icmp eq i8 {byte}, {ord(one)}')}, {e.let(f'icmp eq i8 {byte}, {ord(other)}')}"
    )
    return e.let(f"and i1 {found}, {e.let(f'icmp ne ptr {at}, {stop}')}")


def _step(e: Code, cursor: str) -> str:
    """Moves by a byte, and gives the new place."""
    following = e.at(e.get("ptr", cursor), 1, "i8")
    e.set("ptr", cursor, following)
    return following


def _read_digits(e: Code, cursor: str, stop: str, value: str, digits: str) -> None:
    """Moves behind digits, which go on with a value; how many it has is counted without zeros in front."""
    with e.repeat() as leave:
        at = e.get("ptr", cursor)
        leave(e.let(f"icmp eq ptr {at}, {stop}"))
        digit = e.let(f"sub i8 {e.get('i8', at)}, {ord('0')}")
        leave(e.let(f"icmp ugt i8 {digit}, 9"))
        tenfold = e.let(f"mul i64 {e.get('i64', value)}, 10")
        found = e.let(f"add i64 {tenfold}, {e.let(f'zext i8 {digit} to i64')}")
        e.set("i64", value, found)
        count = e.get("i64", digits)
        is_digit = e.let(f"or i1 {e.let(f'icmp ne i64 {found}, 0')}, {e.let(f'icmp ne i64 {count}, 0')}")
        e.set("i64", digits, e.add(count, e.let(f"zext i1 {is_digit} to i64")))
        _step(e, cursor)


def _distance(e: Code, begin: str, end: str) -> str:
    """How many bytes lie between."""
    return e.let(f"sub i64 {e.let(f'ptrtoint ptr {end} to i64')}, {e.let(f'ptrtoint ptr {begin} to i64')}")
