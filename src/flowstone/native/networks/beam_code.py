"""LLVM's text of prefix beam search over the class probabilities of time steps.

`ops/networks/ctc_beams.py` says what it is; the code gives the same sequences, and scores within rounding.
Threads share the rows, each of which is searched for itself.

Beams are kept from the most probable on, each with the number of its sequence, by which sequences are
compared. In a time step the best `width` candidates are in a heap, the worst of them first: what is not
better than that is passed over, a vector of labels at a time, and of the beams all from the first on whose
best extension is not. A beam that has left the heap when its parent comes to its label is forgotten: it is
not extended. Of equal candidates the earlier is the better: first beams that stay, in their order,
then extensions by beams and labels.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.emitter import KINDS
from flowstone.native.codegen.structured import Code
from flowstone.native.codegen.vector_memory import in_all_lanes, lane_mask, load, store
from flowstone.native.numerics import exponential_functions as functions

__all__ = ["FIELDS", "PLACES", "WORDS", "WORD_FIELDS", "beams_code"]

WORDS = ("threads", "steps", "rows", "classes", "width", "paths", "room", "merges")
"""`room`: the elements of a field of beams, a whole number of vectors and more than `width`."""
PLACES = {
    "search": (
        "notes", "logs", "lengths", "numbers", "sequences", "marks", "history", "labels", "counts", "scores",
    )
}  # fmt: skip
"""Logarithms of probabilities [steps, rows, classes], the last class is the blank; `lengths` int64 [rows].
`numbers` [threads, `FIELDS`, room] of their type, `sequences` int64 [threads, `WORD_FIELDS`, room], `marks`
int64 [threads, classes], 0 at first, and `history` int64 [threads, steps, width] are memory. `labels` int64
[rows, paths, steps] has first the `counts` int64 [rows, paths] labels of each path; `scores` [rows, paths]
are -infinity of what there is not. A note, 0 at first, becomes 1 if there are logarithms that are NaN."""

_BEAMS, _OTHERS = ("blank", "label", "total"), ("stay_blank", "stay_label", "reached", "every", "heap")
_BEAM_WORDS, _OTHER_WORDS = ("last", "number", "parent"), ("orders", "child", "sibling", "forgotten")
FIELDS = 2 * len(_BEAMS) + len(_OTHERS)
WORD_FIELDS = 2 * len(_BEAM_WORDS) + len(_OTHER_WORDS)
"""How many fields there are: those of the beams, of the next ones, and of a time step. Of beams: the
logarithms of the probabilities of paths that end with a blank, with the label, and of both; the last label,
-1 of the empty sequence; the numbers of the sequence, and of the same without its last label."""
_ROOT, _FACTOR = 0x243F6A8885A308D3, -7046029254386353131  # as in ctc_beams.py
_INFINITY = float("inf")


def beams_code(dtype: str, lanes: int) -> str:
    """The text for a type, by vectors of so many lanes."""
    declarations: dict[str, str] = {}
    parts = [_sift(dtype, declarations), _Search(dtype, lanes, declarations).text()]
    e = Code("search", ["ptr a"], lanes, declarations, is_public=True)
    share(e, "search_some")
    return "\n".join([*declarations.values(), *parts, e.text()])


def _sift(dtype: str, declarations: dict[str, str]) -> str:
    """Puts a candidate into a heap of `count` in the place of the first, which is the worst."""
    kind = KINDS[dtype]
    e = Code("sift", ["ptr scores", "ptr orders", "i64 count", f"{kind} score", "i64 order"], 1, declarations)
    place = e.variable("i64", "0")
    with e.repeat() as leave:
        here = e.get("i64", place)
        left = e.add(e.add(here, here), 1)
        leave(e.let(f"icmp sge i64 {left}, %count"))
        right = e.least(e.add(left, 1), e.sub("%count", 1))
        children = [
            (e.get(kind, e.at("%scores", each, kind)), e.get("i64", e.at("%orders", each, "i64")))
            for each in (left, right)
        ]
        second = _is_worse(e, dtype, *children[1], *children[0])
        child = e.let(f"select i1 {second}, i64 {right}, i64 {left}")
        score = e.select(second, dtype, children[1][0], children[0][0])
        order = e.let(f"select i1 {second}, i64 {children[1][1]}, i64 {children[0][1]}")
        leave(e.let(f"xor i1 {_is_worse(e, dtype, score, order, '%score', '%order')}, true"))
        e.set(kind, e.at("%scores", here, kind), score)
        e.set("i64", e.at("%orders", here, "i64"), order)
        e.set("i64", place, child)
    end = e.get("i64", place)
    e.set(kind, e.at("%scores", end, kind), "%score")
    e.set("i64", e.at("%orders", end, "i64"), "%order")
    return e.text()


def _is_worse(e: Code, dtype: str, score: str, order: str, other: str, other_order: str) -> str:
    lower = e.one.compare("fcmp olt", dtype, score, other)
    same = e.one.compare("fcmp oeq", dtype, score, other)
    later = e.let(f"icmp sgt i64 {order}, {other_order}")
    return e.let(f"or i1 {lower}, {e.let(f'and i1 {same}, {later}')}")


class _Search:
    """The text of `search_some`, what one thread does. `beams`: the variable of how many there are."""

    def __init__(self, dtype: str, lanes: int, declarations: dict[str, str]) -> None:
        self.dtype, self.kind = dtype, KINDS[dtype]
        self.e = e = Code("search_some", ["ptr a"], lanes, declarations)
        self.a = places_of(e, PLACES["search"])
        self.words = words = words_of(e, self.a["words"], WORDS)
        self.me, self.start, self.end = my_part(e, words["rows"])
        self.fields = e.at(self.a["numbers"], e.mul(self.me, e.mul(words["room"], FIELDS)), self.kind)
        self.word_fields = e.at(self.a["sequences"], e.mul(self.me, e.mul(words["room"], WORD_FIELDS)), "i64")
        self.marks = e.at(self.a["marks"], e.mul(self.me, words["classes"]), "i64")
        self.history = e.at(self.a["history"], e.mul(self.me, e.mul(words["steps"], words["width"])), "i64")
        self.labels = e.sub(words["classes"], 1)
        self.beams, self.turn = e.variable("i64", "1"), e.variable("i64", "0")

    def text(self) -> str:
        """The whole function."""
        e, words = self.e, self.words
        with e.loop(self.start, self.end) as row:
            self._begin()
            length = e.get("i64", e.at(self.a["lengths"], row, "i64"))
            with e.loop(0, length) as step:
                logs = e.mul(e.add(e.mul(step, words["rows"]), row), words["classes"])
                self._advance(e.at(self.a["logs"], logs, self.kind), step)
                e.set("i64", self.turn, e.sub(1, e.get("i64", self.turn)))
            beams = self._fields(e.get("i64", self.turn))
            with e.loop(0, words["paths"]) as path:
                self._decode(e.add(e.mul(row, words["paths"]), path), beams, path, length)
        return e.text()

    def _fields(self, turn: str) -> dict[str, str]:
        """The addresses of the beams' fields, those of a time step too."""
        e, room, found = self.e, self.words["room"], dict[str, str]()
        for kind, start, own, others in (
            (self.kind, self.fields, _BEAMS, _OTHERS),
            ("i64", self.word_fields, _BEAM_WORDS, _OTHER_WORDS),
        ):
            first = e.mul(turn, len(own))
            for i, name in enumerate(own):
                found[name] = e.at(start, e.mul(e.add(first, i), room), kind)
            for i, name in enumerate(others, 2 * len(own)):
                found[name] = e.at(start, e.mul(room, i), kind)
        return found

    # ---- elements

    def _number(self, field: str, i: str) -> str:
        return self.e.get(self.kind, self.e.at(field, i, self.kind))

    def _word(self, field: str, i: str) -> str:
        return self.e.get("i64", self.e.at(field, i, "i64"))

    def _set_number(self, field: str, i: str, value: str) -> None:
        self.e.set(self.kind, self.e.at(field, i, self.kind), value)

    def _set_word(self, field: str, i: str, value: str) -> None:
        self.e.set("i64", self.e.at(field, i, "i64"), value)

    def _constant(self, value: float) -> str:
        return self.e.one.constant(self.dtype, value)

    def _either(self, condition: str, a: str, b: str) -> str:
        return self.e.let(f"select i1 {condition}, i64 {a}, i64 {b}")

    # ---- sequences

    def _extended(self, number: str, label: str) -> str:
        """The number of a sequence with one more label."""
        e = self.e
        mixed = e.let(f"mul i64 {e.let(f'add i64 {number}, {e.add(label, 1)}')}, {_FACTOR}")
        return e.let(f"xor i64 {mixed}, {e.let(f'ashr i64 {mixed}, 29')}")

    def _found(self, numbers: str, wanted: str) -> str:
        """The beam whose sequence has this number, or -1."""
        e, count = self.e, self.e.get("i64", self.beams)
        place, start = e.variable("i64", "-1"), e.variable("i64", "0")
        e.set("i64", place, "-1")
        e.set("i64", start, "0")
        wanted = in_all_lanes(e, "i64", wanted)
        with e.repeat() as leave:
            k = e.get("i64", start)
            leave(e.let(f"icmp sge i64 {k}, {count}"))
            same = e.compare("icmp eq", "int64", load(e, "int64", numbers, k), wanted)
            bits = self._bits(e.let(f"and {e.vector('i1')} {same}, {lane_mask(e, e.sub(count, k))}"))
            is_there = e.let(f"icmp ne i64 {bits}, 0")
            e.set("i64", place, self._either(is_there, e.add(k, self._lowest(bits)), "-1"))
            leave(is_there)
            e.set("i64", start, e.add(k, e.lanes))
        return e.get("i64", place)

    def _bits(self, mask: str) -> str:
        e = self.e
        bits = e.let(f"bitcast {e.vector('i1')} {mask} to i{e.lanes}")
        return e.let(f"zext i{e.lanes} {bits} to i64")

    def _lowest(self, bits: str) -> str:
        return self.e.call("llvm.cttz.i64", "i64", [("i64", bits), ("i1", "false")])

    # ---- a time step

    def _begin(self) -> None:
        """The empty sequence."""
        e = self.e
        e.set("i64", self.beams, "1")
        e.set("i64", self.turn, "0")
        here = self._fields("0")
        for name, value in (("blank", 0.0), ("label", -_INFINITY), ("total", 0.0)):
            self._set_number(here[name], "0", self._constant(value))
        for word, number in (("last", -1), ("number", _ROOT), ("parent", 1)):
            self._set_word(here[word], "0", str(number))

    def _advance(self, logs: str, step: str) -> None:
        e = self.e
        with e.when(e.one.compare("fcmp uno", self.dtype, self._number(logs, "0"), self._constant(0))):
            e.set("i64", self.a["notes"], "1")
        turn = e.get("i64", self.turn)
        here, there = self._fields(turn), self._fields(e.sub(1, turn))
        self._stay(here, logs)
        self._gather_candidates(here, logs)
        self._become(here, there, e.at(self.history, e.mul(step, self.words["width"]), "i64"))

    def _stay(self, here: dict[str, str], logs: str) -> None:
        """The scores of beams that stay what they are: by a blank, by their last label, and of both."""
        e, none = self.e, self._constant(-_INFINITY)
        count = e.get("i64", self.beams)
        with e.loop(0, count) as i:
            self._set_word(here["child"], i, "-1")
            self._set_word(here["forgotten"], i, "0")
        with e.loop(0, count) as i:
            last = self._word(here["last"], i)
            parent = self._found(here["number"], self._word(here["parent"], i))
            from_there = e.most(parent, 0)
            repeats = e.let(f"icmp eq i64 {last}, {self._word(here['last'], from_there)}")
            reached = e.one.select(
                repeats, self.dtype, *[self._number(here[name], from_there) for name in ("blank", "total")]
            )
            is_there = e.let(f"icmp sge i64 {parent}, 0")
            with e.when(is_there):  # the children of a beam are a list
                self._set_word(here["sibling"], i, self._word(here["child"], parent))
                self._set_word(here["child"], parent, i)
            self._set_number(here["reached"], i, e.one.select(is_there, self.dtype, reached, none))
            has_label = e.let(f"icmp sge i64 {last}, 0")
            log = self._number(logs, e.most(last, 0))
            self._set_number(here["stay_label"], i, e.one.select(has_label, self.dtype, log, none))
        blank = in_all_lanes(e, self.kind, self._number(logs, self.labels))
        with e.loop(0, count, e.lanes) as i:
            total, label, reached, of_last = (
                load(e, self.dtype, here[name], i) for name in ("total", "label", "reached", "stay_label")
            )
            stay_blank = e.binary("fadd", self.dtype, total, blank)
            stay_label = e.binary("fadd", self.dtype, self._log_sum(label, reached), of_last)
            for name, value in (
                ("stay_blank", stay_blank),
                ("stay_label", stay_label),
                ("every", self._log_sum(stay_blank, stay_label)),
            ):
                store(e, self.dtype, value, here[name], i)

    def _log_sum(self, a: str, b: str) -> str:
        """log(e^a + e^b) of vectors."""
        e, dtype = self.e, self.dtype
        above = e.compare("fcmp ogt", dtype, a, b)
        high, low = e.select(above, dtype, a, b), e.select(above, dtype, b, a)
        one, ratio = e.constant(dtype, 1), functions.exp(e, dtype, e.binary("fsub", dtype, low, high))
        more = e.binary("fadd", dtype, one, ratio)
        lost = e.binary("fsub", dtype, ratio, e.binary("fsub", dtype, more, one))
        log = e.binary("fadd", dtype, functions.log(e, dtype, more), e.binary("fdiv", dtype, lost, more))
        none = e.compare("fcmp oeq", dtype, high, e.constant(dtype, -_INFINITY))
        return e.select(none, dtype, high, e.binary("fadd", dtype, high, log))

    def _offer(self, here: dict[str, str], score: str, order: str) -> None:
        """Takes a candidate in the place of the worst."""
        self.e.do(
            f"call void @sift(ptr {here['heap']}, ptr {here['orders']}, i64 {self.words['width']}, "
            f"{self.kind} {score}, i64 {order})"
        )

    def _is_better(self, here: dict[str, str], score: str) -> str:
        return self.e.one.compare("fcmp ogt", self.dtype, score, self._number(here["heap"], "0"))

    def _gather_candidates(self, here: dict[str, str], logs: str) -> None:
        """Has the heap hold the best `width` candidates, and -infinity of order -1 where there are fewer."""
        e = self.e
        with e.loop(0, self.words["width"]) as i:
            self._set_number(here["heap"], i, self._constant(-_INFINITY))
            self._set_word(here["orders"], i, "-1")
        with e.loop(0, e.get("i64", self.beams)) as i:
            score = self._number(here["every"], i)
            with e.when(self._is_better(here, score)):
                self._offer(here, score, i)
        most = self._largest(logs)
        place = e.variable("i64", "0")
        e.set("i64", place, "0")
        with e.repeat() as leave:
            i = e.get("i64", place)
            leave(e.let(f"icmp sge i64 {i}, {e.get('i64', self.beams)}"))
            total = self._number(here["total"], i)
            best = e.one.binary("fadd", self.dtype, total, most)
            leave(e.let(f"xor i1 {self._is_better(here, best)}, true"))
            with e.when(e.let(f"icmp eq i64 {self._word(here['forgotten'], i)}, 0")):
                self._mark_children(here, i, True)
                self._extend(here, logs, i, total)
                self._mark_children(here, i, False)
            e.set("i64", place, e.add(i, 1))

    def _largest(self, logs: str) -> str:
        """The largest logarithm of a label."""
        e = self.e
        largest = e.variable(self.kind, self._constant(-_INFINITY))
        e.set(self.kind, largest, self._constant(-_INFINITY))
        with e.loop(0, self.labels) as k:
            x, held = self._number(logs, k), e.get(self.kind, largest)
            above = e.one.compare("fcmp ogt", self.dtype, x, held)
            e.set(self.kind, largest, e.one.select(above, self.dtype, x, held))
        return e.get(self.kind, largest)

    def _mark_children(self, here: dict[str, str], i: str, there: bool) -> None:
        """Writes at the labels that beam i and its children among the beams differ by: the child plus 1, or 0
        again."""
        e = self.e
        child = e.variable("i64", "0")
        e.set("i64", child, self._word(here["child"], i))
        with e.repeat() as leave:
            beam = e.get("i64", child)
            leave(e.let(f"icmp slt i64 {beam}, 0"))
            self._set_word(self.marks, self._word(here["last"], beam), e.add(beam, 1) if there else "0")
            e.set("i64", child, self._word(here["sibling"], beam))

    def _extend(self, here: dict[str, str], logs: str, i: str, total: str) -> None:
        """Offers the extensions of beam i."""
        e = self.e
        left, every = e.variable("i64", "0"), in_all_lanes(e, self.kind, total)
        for k, [mask] in e.vectors(self.labels):
            score = e.binary("fadd", self.dtype, load(e, self.dtype, logs, k, mask), every)
            worst = in_all_lanes(e, self.kind, self._number(here["heap"], "0"))
            better = e.compare("fcmp ogt", self.dtype, score, worst)
            marks = load(e, "int64", self.marks, k, mask)
            marked = e.compare("icmp ne", "int64", marks, in_all_lanes(e, "i64", "0"))
            better = e.let(f"or {e.vector('i1')} {better}, {marked}")
            if mask:
                better = e.let(f"and {e.vector('i1')} {better}, {mask}")
            e.set("i64", left, self._bits(better))
            with e.repeat() as leave:
                bits = e.get("i64", left)
                leave(e.let(f"icmp eq i64 {bits}, 0"))
                self._offer_extension(here, logs, i, e.add(k, self._lowest(bits)))
                e.set("i64", left, e.let(f"and i64 {bits}, {e.let(f'add i64 {bits}, -1')}"))

    def _offer_extension(self, here: dict[str, str], logs: str, i: str, label: str) -> None:
        """Offers an extension, or, where it is a beam, asks whether that is forgotten; a label that repeats
        the last one extends only what ends with a blank."""
        e = self.e
        beam = e.sub(self._word(self.marks, label), 1)
        is_new = e.let(f"icmp slt i64 {beam}, 0")
        with e.when(e.let(f"xor i1 {is_new}, true")):
            worst = self._number(here["heap"], "0"), self._word(here["orders"], "0")
            gone = _is_worse(e, self.dtype, self._number(here["every"], beam), beam, *worst)
            self._set_word(here["forgotten"], beam, e.let(f"zext i1 {gone} to i64"))
        repeats = e.let(f"icmp eq i64 {label}, {self._word(here['last'], i)}")
        start = e.one.select(
            repeats, self.dtype, *[self._number(here[name], i) for name in ("blank", "total")]
        )
        score = e.one.binary("fadd", self.dtype, start, self._number(logs, label))
        with e.when(e.let(f"and i1 {is_new}, {self._is_better(here, score)}")):
            order = e.add(self.words["width"], e.add(e.mul(i, self.words["classes"]), label))
            self._offer(here, score, order)

    def _become(self, here: dict[str, str], there: dict[str, str], history: str) -> None:
        """Makes the next beams of the candidates, which leave the heap from the worst on."""
        e = self.e
        e.set("i64", self.beams, "0")
        with e.loop(0, self.words["width"]) as i:
            place = e.sub(e.sub(self.words["width"], 1), i)
            score, order = self._number(here["heap"], "0"), self._word(here["orders"], "0")
            e.do(
                f"call void @sift(ptr {here['heap']}, ptr {here['orders']}, i64 {place}, "
                f"{self.kind} {self._number(here['heap'], place)}, i64 {self._word(here['orders'], place)})"
            )
            with e.when(e.let(f"icmp sge i64 {order}, 0")):
                self._write_beam(here, there, place, score, order, history)
                e.set("i64", self.beams, e.add(e.get("i64", self.beams), 1))

    def _write_beam(
        self, here: dict[str, str], there: dict[str, str], place: str, score: str, order: str, history: str
    ) -> None:
        """A beam of a time step: which it was before, and which label is new, is written to the history."""
        e = self.e
        extension = e.sub(order, self.words["width"])
        stays = e.let(f"icmp slt i64 {extension}, 0")
        extension = e.most(extension, 0)
        source = self._either(stays, order, e.quotient(extension, self.words["classes"]))
        label = e.rest(extension, self.words["classes"])
        number = self._word(here["number"], source)
        blank, own = (self._number(here[name], source) for name in ("stay_blank", "stay_label"))
        blank = e.one.select(stays, self.dtype, blank, self._constant(-_INFINITY))
        for name, value in (
            ("blank", blank),
            ("label", e.one.select(stays, self.dtype, own, score)),
            ("total", score),
        ):
            self._set_number(there[name], place, value)
        for name, value in (
            ("last", self._either(stays, self._word(here["last"], source), label)),
            ("number", self._either(stays, number, self._extended(number, label))),
            ("parent", self._either(stays, self._word(here["parent"], source), number)),
        ):
            self._set_word(there[name], place, value)
        added = self._either(stays, "0", e.add(label, 1))
        self._set_word(history, place, e.let(f"or i64 {e.let(f'shl i64 {source}, 32')}, {added}"))

    # ---- results

    def _decode(self, place: str, beams: dict[str, str], path: str, length: str) -> None:
        """Writes the labels and the score of a path, for which there may be no beam."""
        e, steps = self.e, self.words["steps"]
        self._set_number(self.a["scores"], place, self._constant(-_INFINITY))
        self._set_word(self.a["counts"], place, "0")
        with e.when(e.let(f"icmp slt i64 {path}, {e.get('i64', self.beams)}")):
            self._set_number(self.a["scores"], place, self._number(beams["total"], path))
            labels = e.at(self.a["labels"], e.mul(place, steps), "i64")
            beam, first = e.variable("i64", "0"), e.variable("i64", "0")
            e.set("i64", beam, path)
            e.set("i64", first, steps)
            with e.loop(0, length) as i:
                moment = e.mul(e.sub(e.sub(length, 1), i), self.words["width"])
                found = self._word(self.history, e.add(moment, e.get("i64", beam)))
                e.set("i64", beam, e.let(f"lshr i64 {found}, 32"))
                label = e.sub(e.let(f"and i64 {found}, 4294967295"), 1)
                with e.when(e.let(f"icmp sge i64 {label}, 0")):
                    e.set("i64", first, e.sub(e.get("i64", first), 1))
                    self._set_word(labels, e.get("i64", first), label)
            self._set_word(self.a["counts"], place, self._moved(labels, e.get("i64", first)))

    def _moved(self, labels: str, first: str) -> str:
        """Moves labels from there on to the front, of equal neighbours one if asked; their number."""
        e = self.e
        kept, before = e.variable("i64", "0"), e.variable("i64", "-1")
        e.set("i64", kept, "0")
        e.set("i64", before, "-1")
        merges = e.let(f"icmp ne i64 {self.words['merges']}, 0")
        with e.loop(first, self.words["steps"]) as i:
            label = self._word(labels, i)
            same = e.let(f"icmp eq i64 {label}, {e.get('i64', before)}")
            e.set("i64", before, label)
            with e.when(e.let(f"xor i1 {e.let(f'and i1 {same}, {merges}')}, true")):
                self._set_word(labels, e.get("i64", kept), label)
                e.set("i64", kept, e.add(e.get("i64", kept), 1))
        return e.get("i64", kept)
