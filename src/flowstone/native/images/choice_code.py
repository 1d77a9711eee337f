"""LLVM's text of the greedy choice of boxes that overlap little, and of the soft one.

`ops/images/greedy_choice.py` says what they are; the code gives the same, exponentials within a unit in the
last place.

Candidates are in a heap, which holds a number for each whose order is theirs: of the score, and where scores
are equal, of the candidates' places. So few are put in order if few are chosen. The corners and areas of
chosen boxes are kept beside each other, and a candidate is compared with a vector of them at a time. Softly,
the best candidate's score is lowered by those that were chosen since it was seen last; if it is another one
then, the candidate goes back into the heap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import Emitter
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, load

__all__ = ["PLACES", "WORDS", "choice_code"]

WORDS = (
    "threads", "count", "limit", "room", "box_step", "score_step", "classes", "choices", "box_image",
    "box_class", "score_image",
)  # fmt: skip
"""The whole numbers of a call: how many boxes there are and may be chosen; the elements of a row of `chosen`,
a multiple of a vector's; how many elements a box and a score are from the next. For many choices: how many
there are in an image and in all; how far an image's boxes and scores are from the next one's, and a class's
boxes."""
_TAKEN = ("numbers", "boxes", "scores", "heap", "chosen", "out", "found")
PLACES = {"choose": _TAKEN, "choose_softly": (*_TAKEN, "seen", "lowered"), "choose_each": _TAKEN}
"""The addresses that each function takes after that of the words, in order. `numbers`: three floats, the
threshold of overlaps, what scores must exceed, and the factor of squared overlaps. `heap`: int64 [count].
`chosen`: float [5, room]. `out`: int64 [limit], `found` their number; `seen`: int64 [count], 0 at
first; `lowered`: float [limit], the chosen ones' scores. `choose_each` chooses in each class of each image:
`out` [choices, limit], `found` [choices], `heap` and `chosen` are as many as threads."""
_FLOAT, _LOW = "float32", 0xFFFFFFFF


def choice_code(softly: bool, lanes: int) -> str:
    """The text of the soft function, or of the others."""
    declarations: dict[str, str] = {}
    parts = [_sift(lanes, declarations)]
    if softly:
        parts.append(_choose_softly(lanes, declarations))
    else:
        parts += [_choose(lanes, declarations), _choose_some(lanes, declarations)]
        e = Code("choose_each", ["ptr a"], lanes, declarations, is_public=True)
        share(e, "choose_some")
        parts.append(e.text())
    return "\n".join([*declarations.values(), *parts])


# ---- the heap


def _sift(lanes: int, declarations: dict[str, str]) -> str:
    """Puts the number at a place of the heap where it belongs below that."""
    e = Code("sift", ["ptr heap", "i64 count", "i64 start"], lanes, declarations)
    key = e.get("i64", e.at("%heap", "%start", "i64"))
    place = e.variable("i64", "%start")
    with e.repeat() as leave:
        here = e.get("i64", place)
        left = e.add(e.add(here, here), 1)
        leave(e.let(f"icmp sge i64 {left}, %count"))
        right = e.least(e.add(left, 1), e.sub("%count", 1))
        a, b = (e.get("i64", e.at("%heap", each, "i64")) for each in (left, right))
        second = e.let(f"icmp sgt i64 {b}, {a}")
        child = e.let(f"select i1 {second}, i64 {right}, i64 {left}")
        best = e.let(f"select i1 {second}, i64 {b}, i64 {a}")
        leave(e.let(f"icmp sle i64 {best}, {key}"))
        e.set("i64", e.at("%heap", here, "i64"), best)
        e.set("i64", place, child)
    e.set("i64", e.at("%heap", e.get("i64", place), "i64"), key)
    return e.text()


def _put_in_order(e: Code, heap: str, count: str, start: str) -> None:
    e.do(f"call void @sift(ptr {heap}, i64 {count}, i64 {start})")


def _key(e: Code, score: str, number: str) -> str:
    """The number whose order is that of the score, and for equal ones the other way round of `number`."""
    score = e.one.binary("fadd", _FLOAT, score, e.one.constant(_FLOAT, 0))  # -0.0 is 0.0
    bits = _turned(e, e.let(f"bitcast float {score} to i32"))
    high = e.let(f"shl i64 {e.let(f'sext i32 {bits} to i64')}, 32")
    return e.let(f"or i64 {high}, {e.let(f'sub i64 {_LOW}, {number}')}")


def _turned(e: Code, bits: str) -> str:
    """Of a float's bits the number with the same order, or the other way round."""
    sign = e.let(f"ashr i32 {bits}, 31")
    return e.let(f"xor i32 {bits}, {e.let(f'and i32 {sign}, {0x7FFFFFFF}')}")


def _score_of(e: Code, key: str) -> str:
    high = e.let(f"trunc i64 {e.let(f'ashr i64 {key}, 32')} to i32")
    return e.let(f"bitcast i32 {_turned(e, high)} to float")


def _number_of(e: Code, key: str) -> str:
    return e.let(f"sub i64 {_LOW}, {e.let(f'and i64 {key}, {_LOW}')}")


def _heap_of_candidates(e: Code, a: dict[str, str], words: dict[str, str]) -> str:
    """Fills the heap with those of high enough scores; the variable of how many these are."""
    least = e.get("float", e.at(a["numbers"], 1))
    held = e.variable("i64", "0")
    with e.loop(0, words["count"]) as i:
        score = e.get("float", e.at(a["scores"], e.mul(i, words["score_step"])))
        with e.when(e.one.compare("fcmp ogt", _FLOAT, score, least)):
            last = e.get("i64", held)
            e.set("i64", e.at(a["heap"], last, "i64"), _key(e, score, i))
            e.set("i64", held, e.add(last, 1))
    count = e.get("i64", held)
    place = e.variable("i64", e.quotient(count, 2))
    with e.repeat() as leave:
        here = e.get("i64", place)
        leave(e.let(f"icmp eq i64 {here}, 0"))
        e.set("i64", place, e.sub(here, 1))
        _put_in_order(e, a["heap"], count, e.sub(here, 1))
    return held


def _drop_best(e: Code, heap: str, held: str) -> None:
    """Takes the first number out of the heap."""
    count = e.sub(e.get("i64", held), 1)
    e.set("i64", held, count)
    e.set("i64", heap, e.get("i64", e.at(heap, count, "i64")))
    _put_in_order(e, heap, count, "0")


# ---- boxes


def _corners(e: Code, a: dict[str, str], words: dict[str, str], number: str, pick: str) -> list[str]:
    """Top, left, bottom, right and area of a box; `pick` is of the smaller and larger of two, min or max."""
    box = e.at(a["boxes"], e.mul(number, words["box_step"]))
    y1, x1, y2, x2 = (e.get("float", e.at(box, i)) for i in range(4))
    low, high = (_picker(e.one, name, pick) for name in ("min", "max"))
    top, left, bottom, right = low(y1, y2), low(x1, x2), high(y1, y2), high(x1, x2)
    sides = [e.one.binary("fsub", _FLOAT, b, a) for a, b in ((top, bottom), (left, right))]
    return [top, left, bottom, right, e.one.binary("fmul", _FLOAT, *sides)]


def _picker(some: Emitter, which: str, pick: str) -> Callable[[str, str], str]:
    """The smaller or larger of two; if `pick` is "exact", NaN where one is."""
    if pick == "exact":
        return lambda a, b: some.intrinsic(f"{which}imum", _FLOAT, a, b)
    predicate = "fcmp olt" if which == "min" else "fcmp ogt"
    return lambda a, b: some.select(some.compare(predicate, _FLOAT, a, b), _FLOAT, a, b)


def _overlaps(
    e: Code, a: dict[str, str], words: dict[str, str], box: list[str], k: str, pick: str
) -> tuple[str, str]:
    """Of a box and a vector of chosen ones from the k-th on: the overlaps, and which have no area."""
    low, high = (_picker(e, name, pick) for name in ("min", "max"))
    top, left, bottom, right, area = (
        load(e, _FLOAT, e.at(a["chosen"], e.mul(words["room"], i)), k) for i in range(5)
    )
    own = [in_all_lanes(e, "float", each) for each in box]
    zero = e.number(0)
    height = high(e.minus(low(bottom, own[2]), high(top, own[0])), zero)
    width = high(e.minus(low(right, own[3]), high(left, own[1])), zero)
    common = e.times(height, width)
    ratio = e.binary("fdiv", _FLOAT, common, e.minus(e.plus(area, own[4]), common))
    flat = [e.compare("fcmp ole", _FLOAT, each, zero) for each in (area, own[4])]
    return ratio, e.let(f"or {e.vector('i1')} {flat[0]}, {flat[1]}")


def _take(e: Code, a: dict[str, str], words: dict[str, str], box: list[str], number: str, taken: str) -> None:
    """Chooses a box."""
    place = e.get("i64", taken)
    for i, corner in enumerate(box):
        e.set("float", e.at(a["chosen"], e.add(e.mul(words["room"], i), place)), corner)
    e.set("i64", e.at(a["out"], place, "i64"), number)
    e.set("i64", taken, e.add(place, 1))


def _candidates(e: Code, a: dict[str, str], words: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """(the best candidate's key, how many the heap holds, how many are chosen): what is written for it runs
    until there are enough, or none is left. The last two are variables."""
    areas = e.at(a["chosen"], e.mul(words["room"], 4))
    with e.loop(0, words["room"], e.lanes) as k:
        e.write(e.at(areas, k), e.number(0))  # of none yet; so nothing else of the rest matters
    held = _heap_of_candidates(e, a, words)
    taken = e.variable("i64", "0")
    with e.repeat() as leave:
        leave(e.let(f"icmp eq i64 {e.get('i64', held)}, 0"))
        leave(e.let(f"icmp sge i64 {e.get('i64', taken)}, {words['limit']}"))
        yield e.get("i64", a["heap"]), held, taken
    e.set("i64", a["found"], e.get("i64", taken))


# ---- the functions


def _choose(lanes: int, declarations: dict[str, str]) -> str:
    """A box of no area, or that is NaN, rules out none and is not ruled out."""
    e = Code("choose", ["ptr a"], lanes, declarations, is_public=True)
    a = places_of(e, PLACES["choose"])
    words = words_of(e, a["words"], WORDS)
    threshold = e.splat(e.get("float", a["numbers"]))
    for key, held, taken in _candidates(e, a, words):
        number = _number_of(e, key)
        _drop_best(e, a["heap"], held)
        box = _corners(e, a, words, number, "fast")
        has_area = e.one.compare("fcmp ogt", _FLOAT, box[4], e.one.constant(_FLOAT, 0))
        box[4] = e.one.select(has_area, _FLOAT, box[4], e.one.constant(_FLOAT, 0))
        stays = e.variable("i1", "true")
        with e.when(has_area):
            place = e.variable("i64", "0")
            with e.repeat() as leave:
                k = e.get("i64", place)
                leave(e.let(f"icmp sge i64 {k}, {e.get('i64', taken)}"))
                ratio, flat = _overlaps(e, a, words, box, k, "fast")
                above = e.compare("fcmp ogt", _FLOAT, ratio, threshold)
                none = e.let(f"xor {e.vector('i1')} {flat}, splat (i1 true)")
                ruled = e.let(f"and {e.vector('i1')} {above}, {none}")
                some = e.let(f"icmp ne i{lanes} {e.let(f'bitcast <{lanes} x i1> {ruled} to i{lanes}')}, 0")
                e.set("i1", stays, e.let(f"xor i1 {some}, true"))
                leave(some)
                e.set("i64", place, e.add(k, lanes))
        with e.when(e.get("i1", stays)):
            _take(e, a, words, box, number, taken)
    return e.text()


def _choose_some(lanes: int, declarations: dict[str, str]) -> str:
    """A thread's choices, each by a call of `choose`."""
    e = Code("choose_some", ["ptr a"], lanes, declarations)
    a = places_of(e, PLACES["choose_each"])
    words = words_of(e, a["words"], WORDS)
    count, limit, classes = words["count"], words["limit"], words["classes"]
    me, start, end = my_part(e, words["choices"])
    given = e.array("ptr", 1 + len(_TAKEN))
    e.set("ptr", given, a["words"])  # what it asks for is the same for all
    heap = e.at(a["heap"], e.mul(me, count), "i64")
    chosen = e.at(a["chosen"], e.mul(me, e.mul(words["room"], 5)))
    with e.loop(start, end) as number:
        image, kind = e.quotient(number, classes), e.rest(number, classes)
        boxes = e.add(e.mul(image, words["box_image"]), e.mul(kind, words["box_class"]))
        taken = {
            "numbers": a["numbers"], "boxes": e.at(a["boxes"], boxes), "heap": heap, "chosen": chosen,
            "scores": e.at(a["scores"], e.add(e.mul(image, words["score_image"]), kind)),
            "out": e.at(a["out"], e.mul(number, limit), "i64"), "found": e.at(a["found"], number, "i64"),
        }  # fmt: skip
        for i, name in enumerate(_TAKEN, 1):
            e.set("ptr", e.at(given, i, "ptr"), taken[name])
        e.do(f"call void @choose(ptr {given})")
    return e.text()


def _choose_softly(lanes: int, declarations: dict[str, str]) -> str:
    e = Code("choose_softly", ["ptr a"], lanes, declarations, is_public=True)
    a = places_of(e, PLACES["choose_softly"])
    words = words_of(e, a["words"], WORDS)
    least = e.get("float", e.at(a["numbers"], 1))
    for key, held, taken in _candidates(e, a, words):
        number, score = _number_of(e, key), _score_of(e, key)
        box = _corners(e, a, words, number, "exact")
        now = _lowered(e, a, words, box, score, number, taken)
        same = e.one.compare("fcmp oeq", _FLOAT, now, score)
        with e.when(same):
            e.set("float", e.at(a["lowered"], e.get("i64", taken)), score)
            _take(e, a, words, box, number, taken)
            _drop_best(e, a["heap"], held)
        with e.when(e.let(f"xor i1 {same}, true")):
            enough = e.one.compare("fcmp ogt", _FLOAT, now, least)
            with e.when(enough):
                e.set("i64", a["heap"], _key(e, now, number))
                _put_in_order(e, a["heap"], e.get("i64", held), "0")
            with e.when(e.let(f"xor i1 {enough}, true")):
                _drop_best(e, a["heap"], held)
    return e.text()


def _lowered(
    e: Code, a: dict[str, str], words: dict[str, str], box: list[str], score: str, number: str, taken: str
) -> str:
    """A candidate's score after the boxes that were chosen since it was seen last, in their order."""
    factor = e.splat(e.get("float", e.at(a["numbers"], 2)))
    seen = e.at(a["seen"], number, "i64")
    place, value = e.variable("i64", e.get("i64", seen)), e.variable("float", score)
    end = e.get("i64", taken)
    weights = e.array("float", e.lanes)
    with e.repeat() as leave:
        k = e.get("i64", place)
        leave(e.let(f"icmp sge i64 {k}, {end}"))
        ratio, flat = _overlaps(e, a, words, box, k, "exact")
        ratio = e.select(flat, _FLOAT, e.number(0), ratio)
        e.write(weights, e.sleef("exp", _FLOAT, e.times(e.times(ratio, ratio), factor)))
        with e.loop(0, e.least(e.sub(end, k), e.lanes)) as i:
            weight = e.get("float", e.at(weights, i))
            e.set("float", value, e.one.binary("fmul", _FLOAT, e.get("float", value), weight))
        e.set("i64", place, e.add(k, e.lanes))
    e.set("i64", seen, end)
    return e.get("float", value)
