"""LLVM's text of convolutions by Winograd's algorithm in tiles of six by six, and of filters' gradients.

Images are [batch, height, width, channels]. Tiles overlap; of each, ``tile_transforms`` makes 36 sums a
channel, kept as 36 matrices [tiles, channels]. Each is multiplied by its matrix of the filter [channels,
outputs], and of the 36 products come the outputs of the tile. A thread takes so many tiles at once that all
between stays in its caches. With respect to the images, the gradient is a convolution as well; that by the
filter multiplies the same 36 matrices by those of the results' gradient.

Functions are those of a `CodeLibrary`, with numbers by the names of `WORDS`. ``strange`` is a vector that is
no more all zero if a result was not finite.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code
from flowstone.native.networks.tile_transforms import SIDE, Matrix, transform, transforms

__all__ = ["ENTRIES", "PLACES", "SKEW", "WORDS", "row_counts", "tile_code"]

WORDS = (
    "threads", "height", "width", "channels", "rows", "columns", "outputs", "above", "beside", "down",
    "across", "tiles", "most", "rectifies", "wide_channels", "wide_outputs", "data_pitch", "result_pitch",
    "by_input", "by_output", "by_row", "by_column", "first", "count", "sum_pitch",
)  # fmt: skip
"""The whole numbers of a call: `rows`, `columns` of the results, `above` and `beside` what pads the images,
`down` and `across` tiles of an image, `tiles` of all; at `most` so many at once; wide: in whole vectors;
pitches: elements from one of the 36 matrices to the next; by: elements between neighbours in the filter."""
ENTRIES = ("convolve", "transform_filter", "differentiate")
PLACES = {
    "convolve": ("images", "filter", "bias", "results", "scratch", "strange", "zeros", "waste"),
    "transform_filter": ("filter", "transformed"),
    "differentiate": ("images", "gradient", "data", "results", "sums", "filter", "strange", "zeros"),
}
"""The addresses that each function takes after that of the numbers, in order."""
SKEW = 16
"""Elements between matrices in addition, lest all 36 lie in the same lines of the caches."""
_MATRICES = SIDE * SIDE


def row_counts(lanes: int) -> dict[int, int]:
    """By vectors in a row of a product, how many rows are multiplied at once: as registers allow."""
    return {4: 6, 3: 8, 2: 12, 1: 24} if lanes == 16 else {2: 6, 1: 12}


def tile_code(taps: int, lanes: int) -> str:
    """The text of the `ENTRIES` for square filters of so many taps."""
    return _Writer(taps, lanes).text()


class _Tile(NamedTuple):
    """Where a tile lies: the words of its image's height, width and channels, its rows and columns, how far
    apart tiles are, and the words of what pads the image."""

    height: str
    width: str
    channels: str
    side: int
    step: int
    padding: tuple[str, str] | None


class _Writer:
    def __init__(self, taps: int, lanes: int) -> None:
        self.taps, self.lanes, self.step = taps, lanes, SIDE + 1 - taps
        self.matrices = transforms(taps)
        self.widths = row_counts(lanes)
        self.declarations: dict[str, str] = {}
        self.parts: list[str] = []

    def text(self) -> str:
        for vectors, rows in self.widths.items():
            self.product(vectors, rows)
        step = self.step
        self.put("put_data", _Tile("height", "width", "channels", SIDE, step, ("above", "beside")),
                 self.matrices.data)  # fmt: skip
        self.put("put_gradient", _Tile("rows", "columns", "outputs", step, step, None),
                 _transposed(self.matrices.results))  # fmt: skip
        self.results()
        self.convolve_some()
        self.transform_some()
        self.tiles_of_some()
        self.sum_some()
        self.finish_some()
        for name, shares in (("convolve", "convolve_some"), ("transform_filter", "transform_some")):
            e = Code(name, ["ptr a"], self.lanes, self.declarations, is_public=True)
            share(e, shares)
            self.parts.append(e.text())
        self.differentiate()
        return "\n".join([*self.declarations.values(), *self.parts])

    # ---- products of matrices

    def product(self, vectors: int, rows: int) -> None:
        """``c = [c +] a b`` of so many rows and vectors, in registers. Elements of a are `ar` apart in a
        column and `ak` in a row, rows of b `bk`, of c `cr`."""
        parameters = [
            "ptr a",
            "i64 ar",
            "i64 ak",
            "ptr b",
            "i64 bk",
            "ptr c",
            "i64 cr",
            "i64 count",
            "i1 adds",
        ]
        e = Code(f"product{vectors}", parameters, self.lanes, self.declarations)
        places = [
            [e.at("%c", e.add(e.mul("%cr", r), v * self.lanes)) for v in range(vectors)] for r in range(rows)
        ]
        totals = [[e.variable(e.wide, "zeroinitializer") for _ in row] for row in places]
        starts = [e.at("%a", e.mul("%ar", r)) for r in range(rows)]
        with e.loop(0, "%count") as k:
            b = e.at("%b", e.mul(k, "%bk"))
            others = [e.read(e.at(b, v * self.lanes)) for v in range(vectors)]
            along = e.mul(k, "%ak")
            for row, start in zip(totals, starts):
                factor = e.splat(e.get("float", e.at(start, along)))
                for total, other in zip(row, others):
                    e.set(e.wide, total, e.fma(factor, other, e.get(e.wide, total)))
        pairs = [pair for row, found in zip(totals, places) for pair in zip(row, found)]
        with e.when("%adds"):  # at the end, for sums of sums lose fewer digits
            for total, place in pairs:
                e.set(e.wide, total, e.plus(e.get(e.wide, total), e.read(place)))
        for total, place in pairs:
            e.write(place, e.get(e.wide, total))
        self.parts.append(e.text())

    def by_width(self, e: Code, vectors: str) -> Iterator[tuple[int, int]]:
        """What is written for each (vectors, rows) runs where there are so many vectors."""
        for width, rows in self.widths.items():
            with e.when(e.let(f"icmp eq i64 {vectors}, {width}")):
                yield width, rows

    def blocks(self, e: Code, wide: str) -> str:
        """How many blocks of columns there are in rows of so many elements."""
        block = max(self.widths) * self.lanes
        return e.quotient(e.add(wide, block - 1), block)

    def block(self, e: Code, i: str, wide: str) -> tuple[str, str]:
        """The first column of a block, and its number of vectors."""
        block = max(self.widths) * self.lanes
        first = e.mul(i, block)
        return first, e.quotient(e.least(e.sub(wide, first), block), self.lanes)

    def filter_block(self, e: Code, start: str, number: str, column: str, channels: str) -> str:
        """Where the 36 matrices of a block of the filter's columns begin."""
        return e.at(start, e.mul(e.add(e.mul(column, channels), e.mul(number, SKEW)), _MATRICES))

    # ---- tiles

    def place_in_image(self, e: Code, tile: _Tile, words: dict[str, str]) -> tuple[str, str, str]:
        """Of the tile %t: its image, and its first row and column there."""
        image = e.quotient("%t", e.mul(words["down"], words["across"]))
        row = e.mul(e.rest(e.quotient("%t", words["across"]), words["down"]), tile.step)
        column = e.mul(e.rest("%t", words["across"]), tile.step)
        if tile.padding is not None:
            row, column = e.sub(row, words[tile.padding[0]]), e.sub(column, words[tile.padding[1]])
        return image, row, column

    def addresses(self, e: Code, tile: _Tile, words: dict[str, str], start: str, outside: str) -> str:
        """An array of the addresses of the tile's positions, `outside` for those out of the image."""
        image, row, column = self.place_in_image(e, tile, words)
        found = e.array("ptr", tile.side**2)
        height, width, channels = (words[name] for name in tile[:3])
        for i in range(tile.side):
            y = e.add(row, i)
            line = e.mul(e.add(e.mul(image, height), y), width)
            for j in range(tile.side):
                x = e.add(column, j)
                inside = e.let(f"and i1 {e.within(y, height)}, {e.within(x, width)}")
                place = e.at(start, e.mul(e.add(line, x), channels))
                place = e.let(f"select i1 {inside}, ptr {place}, ptr {outside}")
                e.set("ptr", e.at(found, i * tile.side + j, "ptr"), place)
        return found

    def put(self, name: str, tile: _Tile, matrix: Matrix) -> None:
        """A function that puts what tile %t becomes by the matrix into the 36 matrices."""
        parameters = ["ptr words", "ptr x", "ptr zeros", "i64 t", "ptr to", "i64 pitch"]
        e = Code(name, parameters, self.lanes, self.declarations)
        words = words_of(e, "%words", WORDS)
        found = self.addresses(e, tile, words, "%x", "%zeros")
        channels = words[tile.channels]
        with e.loop(0, channels, self.lanes) as c:
            mask = e.mask(e.sub(channels, c))
            values = [e.read(e.at(e.pointer(found, k), c), mask) for k in range(tile.side**2)]
            to = e.at("%to", c)
            for q, value in enumerate(transform(e, matrix, values)):
                e.write(e.at(to, e.mul("%pitch", q)), value)
        self.parts.append(e.text())

    def results(self) -> None:
        """``put_results``: of the 36 products of tile %t, in columns from %first on, the results."""
        parameters = ["ptr words", "ptr m", "i64 pitch", "ptr bias", "ptr y", "ptr waste", "i64 t",
                      "i64 first", "i64 vectors", "ptr strange"]  # fmt: skip
        e = Code("put_results", parameters, self.lanes, self.declarations)
        words = words_of(e, "%words", WORDS)
        tile = _Tile("rows", "columns", "outputs", self.step, self.step, None)
        found = self.addresses(e, tile, words, "%y", "%waste")
        with e.loop(0, "%vectors") as z:
            column = e.mul(z, self.lanes)
            m, c = e.at("%m", column), e.add("%first", column)
            left = e.sub(words["outputs"], c)
            mask = e.mask(left)
            bias = e.read(e.at("%bias", c), mask)
            values = [e.read(e.at(m, e.mul("%pitch", q))) for q in range(_MATRICES)]
            sums = [e.plus(x, bias) for x in transform(e, self.matrices.results, values)]
            self.note(e, sums, "%strange", mask)
            rectifies = e.let(f"icmp ne i64 {words['rectifies']}, 0")
            least = e.let(f"select i1 {rectifies}, float 0.0, float 0xFFF0000000000000")
            floor = e.splat(least)
            sums = [e.select(e.compare("fcmp ogt", "float32", x, floor), "float32", x, floor) for x in sums]
            places = [e.at(e.pointer(found, k), c) for k in range(self.step**2)]
            self.write_masked(e, places, sums, mask, left)
        self.parts.append(e.text())

    def note(self, e: Code, values: Sequence[str], place: str, mask: str) -> None:
        """Adds to `strange` what is 0 if all values are finite."""
        total = e.read(place)
        zero = e.number(0.0)
        for value in values:
            total = e.fma(e.select(mask, "float32", value, zero), zero, total)
        e.write(place, total)

    def write_masked(
        self, e: Code, places: Sequence[str], values: Sequence[str], mask: str, left: str
    ) -> None:
        """Writes vectors, as far as `left` elements go."""
        full = e.let(f"icmp sge i64 {left}, {self.lanes}")
        with e.when(full):
            for place, value in zip(places, values):
                e.write(place, value)
        with e.when(e.let(f"xor i1 {full}, true")):
            for place, value in zip(places, values):
                e.write(place, value, mask)

    # ---- the convolution

    def convolve_some(self) -> None:
        """A thread's tiles, at most so many at once: their data, products and results."""
        e = Code("convolve_some", ["ptr a"], self.lanes, self.declarations)
        a = places_of(e, PLACES["convolve"])
        words = words_of(e, a["words"], WORDS)
        unit = min(self.widths.values())
        units = e.quotient(e.add(words["tiles"], unit - 1), unit)
        me, start, end = my_part(e, units)
        start, end = e.mul(start, unit), e.least(e.mul(end, unit), words["tiles"])
        pitches = e.add(words["data_pitch"], words["result_pitch"])
        data = e.at(a["scratch"], e.mul(e.mul(me, pitches), _MATRICES))
        products = e.at(data, e.mul(words["data_pitch"], _MATRICES))
        strange = e.at(a["strange"], e.mul(me, self.lanes))
        with e.loop(start, end, words["most"]) as first:
            last = e.least(e.add(first, words["most"]), end)
            with e.loop(first, last) as t:
                row = e.at(data, e.mul(e.sub(t, first), words["wide_channels"]))
                e.do(f"call void @put_data(ptr {a['words']}, ptr {a['images']}, ptr {a['zeros']}, i64 {t}, "
                     f"ptr {row}, i64 {words['data_pitch']})")  # fmt: skip
            with e.loop(0, self.blocks(e, words["wide_outputs"])) as i:
                column, vectors = self.block(e, i, words["wide_outputs"])
                wide = e.mul(vectors, self.lanes)
                filters = self.filter_block(e, a["filter"], i, column, words["channels"])
                self.multiply(e, words, (data, filters, products), e.sub(last, first), vectors)
                with e.loop(first, last) as t:
                    m = e.at(products, e.mul(e.sub(t, first), wide))
                    e.do(f"call void @put_results(ptr {a['words']}, ptr {m}, i64 {words['result_pitch']}, "
                         f"ptr {a['bias']}, ptr {a['results']}, ptr {a['waste']}, i64 {t}, i64 {column}, "
                         f"i64 {vectors}, ptr {strange})")  # fmt: skip
        self.parts.append(e.text())

    def multiply(
        self, e: Code, words: dict[str, str], places: tuple[str, str, str], rows: str, vectors: str
    ) -> None:
        """All 36 products of rows by a block of columns; `places` of the data, the filter, the products."""
        data, filters, products = places
        channels, wide = words["channels"], e.mul(vectors, self.lanes)
        with e.loop(0, _MATRICES) as q:
            x = e.at(data, e.mul(q, words["data_pitch"]))
            u = e.at(filters, e.mul(q, e.add(e.mul(channels, wide), SKEW)))
            m = e.at(products, e.mul(q, words["result_pitch"]))
            for width, count in self.by_width(e, vectors):
                with e.loop(0, rows, count) as r:
                    left = e.at(x, e.mul(r, words["wide_channels"]))
                    to = e.at(m, e.mul(r, wide))
                    e.do(f"call void @product{width}(ptr {left}, i64 {words['wide_channels']}, i64 1, "
                         f"ptr {u}, i64 {wide}, ptr {to}, i64 {wide}, i64 {channels}, i1 false)")  # fmt: skip

    # ---- the filter

    def transform_some(self) -> None:
        """The filter's 36 matrices, in blocks of columns, for a thread's channels."""
        e = Code("transform_some", ["ptr a"], self.lanes, self.declarations)
        a = places_of(e, PLACES["transform_filter"])
        words = words_of(e, a["words"], WORDS)
        channels, lanes = words["channels"], self.lanes
        _, start, end = my_part(e, channels)
        held = e.array(e.wide, lanes * self.taps**2)
        blocks = self.blocks(e, words["wide_outputs"])
        with e.loop(start, end, lanes) as first, e.loop(0, blocks) as number:
            last = e.least(e.add(first, lanes), end)
            column, vectors = self.block(e, number, words["wide_outputs"])
            wide = e.mul(vectors, lanes)
            block = self.filter_block(e, a["transformed"], number, column, channels)
            with e.loop(0, wide, lanes) as z:
                self.hold(e, a["filter"], words, held, (first, last, e.add(column, z)))
                apart = e.add(e.mul(channels, wide), SKEW)
                with e.loop(first, last) as i:
                    kept = e.at(held, e.mul(e.sub(i, first), self.taps**2), e.wide)
                    values = [e.get(e.wide, e.at(kept, k, e.wide)) for k in range(self.taps**2)]
                    to = e.at(block, e.add(e.mul(i, wide), z))
                    for q, value in enumerate(transform(e, self.matrices.taps, values)):
                        e.write(e.at(to, e.mul(apart, q)), value)
        self.parts.append(e.text())

    def hold(
        self, e: Code, filters: str, words: dict[str, str], held: str, which: tuple[str, str, str]
    ) -> None:
        """Reads a vector of outputs for some channels, one tap after the other, since neighbouring channels
        may share lines of the caches. `which`: the first channel and the end, the first output."""
        first, last, output = which
        mask = e.mask(e.sub(words["outputs"], output))
        straight = e.let(f"icmp eq i64 {words['by_output']}, 1")
        for condition, gathers in ((straight, False), (e.let(f"xor i1 {straight}, true"), True)):
            with e.when(condition), e.loop(0, self.taps) as y, e.loop(0, self.taps) as x:
                tap = e.at(filters, e.add(e.mul(y, words["by_row"]), e.mul(x, words["by_column"])))
                tap = e.at(tap, e.mul(output, words["by_output"]))
                with e.loop(first, last) as i:
                    place = e.at(tap, e.mul(i, words["by_input"]))
                    value = e.gather(place, words["by_output"], mask) if gathers else e.read(place, mask)
                    kept = e.add(e.mul(e.sub(i, first), self.taps**2), e.add(e.mul(y, self.taps), x))
                    e.set(e.wide, e.at(held, kept, e.wide), value)

    # ---- the gradient by the filter

    def differentiate(self) -> None:
        """Some tiles after the others: their 36 matrices, and the sums of their products; then the filter."""
        e = Code("differentiate", ["ptr a"], self.lanes, self.declarations, is_public=True)
        place = e.pointer("%a", 0)
        words = words_of(e, place, WORDS)
        with e.loop(0, words["tiles"], words["most"]) as first:
            e.set("i64", e.at(place, WORDS.index("first"), "i64"), first)
            count = e.least(e.sub(words["tiles"], first), words["most"])
            e.set("i64", e.at(place, WORDS.index("count"), "i64"), count)
            share(e, "tiles_of_some")
            share(e, "sum_some")
        share(e, "finish_some")
        self.parts.append(e.text())

    def tiles_of_some(self) -> None:
        """The 36 matrices of the images and of the gradient, for a thread's tiles."""
        e = Code("tiles_of_some", ["ptr a"], self.lanes, self.declarations)
        a = places_of(e, PLACES["differentiate"])
        words = words_of(e, a["words"], WORDS)
        _, start, end = my_part(e, words["count"])
        with e.loop(start, end) as i:
            t = e.add(words["first"], i)
            row = e.at(a["data"], e.mul(i, words["wide_channels"]))
            e.do(f"call void @put_data(ptr {a['words']}, ptr {a['images']}, ptr {a['zeros']}, i64 {t}, "
                 f"ptr {row}, i64 {words['data_pitch']})")  # fmt: skip
            row = e.at(a["results"], e.mul(i, words["wide_outputs"]))
            e.do(f"call void @put_gradient(ptr {a['words']}, ptr {a['gradient']}, ptr {a['zeros']}, i64 {t}, "
                 f"ptr {row}, i64 {words['result_pitch']})")  # fmt: skip
        self.parts.append(e.text())

    def sum_some(self) -> None:
        """Adds up the products [outputs, channels] of a thread's blocks of columns."""
        e = Code("sum_some", ["ptr a"], self.lanes, self.declarations)
        a = places_of(e, PLACES["differentiate"])
        words = words_of(e, a["words"], WORDS)
        blocks = self.blocks(e, words["wide_channels"])
        _, start, end = my_part(e, e.mul(blocks, _MATRICES))
        adds = e.let(f"icmp ne i64 {words['first']}, 0")
        wide = words["wide_channels"]
        with e.loop(start, end) as unit:
            q = e.quotient(unit, blocks)
            column, vectors = self.block(e, e.rest(unit, blocks), wide)
            left = e.at(a["results"], e.mul(q, words["result_pitch"]))
            right = e.at(a["data"], e.add(e.mul(q, words["data_pitch"]), column))
            to = e.at(a["sums"], e.add(e.mul(q, words["sum_pitch"]), column))
            for width, rows in self.by_width(e, vectors):
                with e.loop(0, words["outputs"], rows) as n:
                    place = e.at(to, e.mul(n, wide))
                    e.do(f"call void @product{width}(ptr {e.at(left, n)}, i64 1, "
                         f"i64 {words['wide_outputs']}, ptr {right}, i64 {wide}, ptr {place}, i64 {wide}, "
                         f"i64 {words['count']}, i1 {adds})")  # fmt: skip
        self.parts.append(e.text())

    def finish_some(self) -> None:
        """The filter's gradient [outputs, height, width, channels], for a thread's outputs."""
        e = Code("finish_some", ["ptr a"], self.lanes, self.declarations)
        a = places_of(e, PLACES["differentiate"])
        words = words_of(e, a["words"], WORDS)
        channels = words["channels"]
        me, start, end = my_part(e, words["outputs"])
        strange = e.at(a["strange"], e.mul(me, self.lanes))
        matrix = _transposed(self.matrices.taps)
        with e.loop(start, end) as n, e.loop(0, channels, self.lanes) as c:
            left = e.sub(channels, c)
            mask = e.mask(left)
            m = e.at(a["sums"], e.add(e.mul(n, words["wide_channels"]), c))
            values = [e.read(e.at(m, e.mul(words["sum_pitch"], q))) for q in range(_MATRICES)]
            found = transform(e, matrix, values)
            self.note(e, found, strange, mask)
            first = e.mul(n, self.taps**2)
            places = [
                e.at(a["filter"], e.add(e.mul(e.add(first, k), channels), c)) for k in range(len(found))
            ]
            self.write_masked(e, places, found, mask, left)
        self.parts.append(e.text())


def _transposed(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix))
