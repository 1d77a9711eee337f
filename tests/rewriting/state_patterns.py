"""Random programs with state (`state_programs.py`): what passes look for, with changes of state between.

`program(seed)` draws one. It strings together a few of `PATTERNS`, each of which is what some pass of
`flowstone.rewriting.passes` knows; between any two parts (`Drawer.between`) there may be a change of a
variable that the pattern reads, a use of a queue, or another disturbance, after what came before and before
what comes.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

from state_drawing import Drawer
from state_kinds import KINDS
from state_programs import MATRIX, Ambiguous, Order, Program, Run, Statement, check, outer_names

VECTOR = (4,)
IMAGES = (2, 4, 4, 4)
FILTER = (3, 3, 4, 4)
POINT = (1, 1, 4, 4)


def products(d: Drawer) -> str:
    x, w = d.value(*MATRIX), d.variable(*MATRIX)
    a, b = d.pick((False, False), (True, False), (False, True))
    y = d.add("matmul", *d.rng.sample([x, w], 2), a=a, b=b)
    bias = d.variable(4) if d.chance(0.7) else d.variable(*MATRIX)
    d.between(w, bias)
    is_vector = d.dims(bias) == VECTOR
    y = d.add(
        "bias_add" if is_vector and d.chance(0.5) else "add", *([y, bias] if is_vector else d.mixed(y, bias))
    )
    d.between(w, bias)
    return d.add(d.pick("relu", "tanh", "sigmoid", "square"), y)


def matrix(d: Drawer, pooled: str) -> str:
    """[2, 2, 2, 4] as [4, 4]."""
    flat = d.add("reshape", pooled, to=(8, 4), dims=(8, 4))
    return d.add("rows", flat, first=2, last=6)


def convolutions(d: Drawer) -> str:
    w, bias = d.variable(*d.pick(FILTER, POINT)), d.variable(4)
    x = d.value(*IMAGES)
    y = d.add("conv", x, w, dims=IMAGES)
    if d.chance(0.4):
        d.between(w, bias)
        scales = [d.variable(4) for _ in range(4)]
        kind = d.pick("normalised", "mul", "fused_normalised" if d.dtype == "float32" else "mul")
        if kind == "mul":
            y = d.add("mul", y, scales[0], dims=IMAGES)
        elif kind == "normalised":
            y = d.add(kind, y, *scales, dims=IMAGES)
        else:
            y = d.add(kind, y, *scales, training=d.chance(0.3), dims=IMAGES)
    d.between(w, bias)
    y = d.add(d.pick("bias_add", "add"), y, bias, dims=IMAGES)
    d.between(w, bias)
    y = d.add(d.pick("relu", "tanh", "relu6", "square"), y, dims=IMAGES)
    d.between(w, bias)
    y = d.add(d.pick("max_pool", "max_pool", "avg_pool"), y, dims=(2, 2, 2, 4))
    if d.chance(0.3):
        d.between(w, bias)
        y = d.add("relu", y, dims=(2, 2, 2, 4))
    return matrix(d, y)


def turned_convolutions(d: Drawer) -> str:
    w, bias = d.variable(*FILTER), d.variable(4)
    x = d.add("turned_images", d.value(*IMAGES), first=False, dims=IMAGES)
    d.between(w, bias)
    y = d.add("conv", x, w, dims=IMAGES)
    d.between(w, bias)
    y = d.add("turned_images", d.add("add", y, bias, dims=IMAGES), first=True, dims=IMAGES)
    d.between(w, bias)
    y = d.add("turned_images", d.add("relu", y, dims=IMAGES), first=False, dims=IMAGES)
    return matrix(d, d.add("max_pool", y, dims=(2, 2, 2, 4)))


def many_convolutions(d: Drawer) -> str:
    """Several filters of the same images, and their gradients."""
    shape = d.pick(FILTER, POINT)
    x, filters = d.value(*IMAGES), [d.variable(*shape, fresh=d.chance(0.8)) for _ in range(2)]
    ys = []
    for w in filters:
        ys.append(d.add("relu", d.add("conv", x, w, dims=IMAGES), dims=IMAGES))
        d.between(*filters)
    y = d.add("concat", *ys, axis=3, dims=(2, 4, 4, 8))
    d.between(*filters)
    total = d.add("sum_all", d.add("square", y, dims=(2, 4, 4, 8)), dims=())
    d.between(*filters)
    if not d.has_gradient(total):
        return d.spread(total)
    if d.chance(0.5):
        return d.spread(d.add("gradients", total, *dict.fromkeys([x, *filters]), dims=()))
    source = d.pick(x, *filters)
    g = d.add("gradient", total, source, dims=IMAGES if source == x else shape)
    return d.spread(d.add("sum_all", g, dims=()))


def sums(d: Drawer) -> str:
    x, w = d.value(*MATRIX), d.variable(*MATRIX)
    source = d.pick(x, w)
    if d.chance(0.4):
        d.between(w)
        y = d.add("product_of_ones", source, dims=(4, 1))
    else:
        y = d.add("sum_columns", source, keep=True, dims=(4, 1))
    d.between(w)
    if d.chance(0.5):
        return d.spread(d.add(d.pick("sum_all", "mean_all"), y, dims=()))
    if d.chance(0.5):
        y = d.add("column_repeated", y)
        d.between(w)
        return d.add("add", y, w)
    y = d.add("broadcast", y, to=MATRIX)
    d.between(w)
    return d.add(d.pick("mul", "add", "sub"), *d.mixed(y, d.pick(w, x)))


def identities(d: Drawer) -> str:
    v = d.variable(*MATRIX)
    y = d.add(d.pick("times_one", "plus_zero", "over_one", "identity", "stop", "sum_nothing"), v)
    d.between(v)
    if d.chance(0.5) and d.usable(y):
        y = d.add(d.pick("times_one", "plus_zero", "identity", "transpose"), y)
        d.between(v)
    y = y if d.usable(y) else v
    z = d.value(*MATRIX)
    return d.add(d.pick("add", "mul", "sub", "maximum"), *d.mixed(y, z))


def transposes(d: Drawer) -> str:
    v = d.variable(*MATRIX)
    source = d.pick(v, d.plain(*MATRIX))
    y = d.add("transpose", source)
    if d.usable(y) and d.chance(0.5):
        y = d.add(d.pick("relu", "tanh", "neg"), y)
        d.between(v)
    other = d.pick(v, d.value(*MATRIX))
    if d.usable(y):
        y = d.add(d.pick("add", "mul"), *d.mixed(y, other))
        d.between(v)
        y = d.add("transpose", y)
    else:
        y = d.add("transpose", other)
    if d.usable(y):
        y = d.add(d.pick("matmul", "add"), *d.mixed(y, d.pick(v, d.value(*MATRIX))))
        d.between(v)
    return y


def broadcasts(d: Drawer) -> str:
    b, v, scalar = d.variable(4), d.variable(*MATRIX), d.variable()
    y = d.add("broadcast", b, to=MATRIX)
    d.between(b, v)
    if d.chance(0.5):
        y = d.add(d.pick("add", "mul"), *d.mixed(y, scalar))
        d.between(b, v, scalar)
    if d.chance(0.3):
        y = d.add("reshape", y, to=(4, 1, 4), dims=(4, 1, 4))
        d.between(b, v)
        y = d.add("squeeze", y, axis=1)
    y = d.add(d.pick("add", "mul", "sub"), *d.mixed(y, v))
    d.between(b, v)
    return d.add("plus_one", y)


def equal_parts(d: Drawer) -> str:
    """Common subexpressions that a change may tell apart."""
    v, x = d.variable(*MATRIX), d.value(*MATRIX)
    kind = d.pick("mul", "add", "matmul", "maximum")
    first = d.add(kind, x, v)
    d.between(v)
    second = d.add(kind, x, v)
    d.between(v)
    third = d.add("identity", v)
    return d.add("sub", d.add("add", first, d.add("square", second)), third)


def joined_products(d: Drawer) -> str:
    """Products by one matrix of independent operands, as an unrolled network's."""
    w, b = d.variable(*MATRIX), d.variable(4)
    ys = []
    for _ in range(d.pick(2, 3)):
        y = d.add("matmul", d.value(*MATRIX), w)
        d.between(w, b)
        if d.chance(0.6):
            y = d.add("relu", d.add("bias_add", y, b))
            d.between(w, b)
        ys.append(y)
    return d.add("add_n", *ys)


def slices(d: Drawer) -> str:
    """Parts of one tensor, and the gradient by it."""
    v = d.variable(*MATRIX)
    source = d.pick(v, d.plain(*MATRIX))
    kind = d.pick("part", "rows", "split")
    if kind == "part":
        parts = [d.add("part", source, begin=(i, 0), size=(2, 4), dims=(2, 4)) for i in (0, 2)]
    elif kind == "rows":
        parts = [d.add("rows", source, first=i, last=i + 2, dims=(2, 4)) for i in (0, 2)]
    else:
        parts = [d.add("split", source, i=i, dims=(2, 4)) for i in (0, 1)]
    if d.chance(0.6):
        parts = [d.add("square", part, dims=(2, 4)) for part in parts]
        d.between(v)
    parts = [d.add("tanh", part, dims=(2, 4)) for part in parts if d.usable(part)]
    if len(parts) < 2:
        return d.add("plus_one", source)
    d.between(v)
    y = d.add("concat", *parts)
    if d.chance(0.5):
        total = d.add("sum_all", d.add("square", y), dims=())
        d.between(v)
        if d.has_gradient(total):
            return d.add("gradient", total, source)
    return y


def recurrence(d: Drawer) -> str:
    """A few steps by the same weights, and the gradient by these: sums of products."""
    w, b, h = d.variable(*MATRIX), d.variable(4), d.value(*MATRIX)
    for _ in range(3):
        x = d.value(*MATRIX)
        h = d.add("tanh", d.add("add", d.add("matmul", h, w), d.pick(x, b)))
        d.between(w, b)
    total = d.add("sum_all", h, dims=())
    d.between(w, b)
    return d.add("gradient", total, w) if d.has_gradient(total) else h


def lstm(d: Drawer) -> str:
    w, b = d.variable(8, 16), d.variable(16)
    y = d.add(d.pick("lstm", "lstm", "dynamic_rnn"), d.value(*MATRIX), w, b)
    d.between(w, b)
    if d.chance(0.5):
        total = d.add("sum_all", y, dims=())
        d.between(w, b)
        if d.has_gradient(total):
            g = d.add("gradient", total, w, dims=(8, 16))
            d.between(w, b)
            return d.add("add", y, d.add("part", g, begin=(0, 0), size=MATRIX))
    return y


def losses(d: Drawer) -> str:
    w, b = d.variable(*MATRIX), d.variable(4)
    logits = d.add("bias_add", d.add("matmul", d.value(*MATRIX), w), b)
    d.between(w, b)
    if d.chance(0.3):
        loss = d.add("mean_all", d.add("sigmoid_loss", logits, *d.pick((), (d.value(*MATRIX),))), dims=())
    else:
        loss = d.add(d.pick("dense_loss", "sparse_loss"), logits, dims=())
    d.between(w, b)
    if d.chance(0.7) and d.has_gradient(loss):
        g = d.add("gradient", loss, d.pick(w, logits))
        d.between(w, b)
        return g
    return d.spread(loss)


def training(d: Drawer) -> str:
    """A network's optimiser; what is read of its variables before, between and after."""
    w, u, b = d.variable(*MATRIX), d.variable(*MATRIX, fresh=True), d.variable(4)
    y = d.add("matmul", d.value(*MATRIX), w)
    d.between(w)
    y = d.add(d.pick("relu", "tanh"), d.add("add", y, b))
    d.between(u, b)
    y = d.add("matmul", y, u)
    loss = (
        d.add("mean_all", d.add("square", y), dims=()) if d.chance(0.5) else d.add("dense_loss", y, dims=())
    )
    d.between(w, u, b)
    if not d.has_gradient(loss):
        return y
    variables = d.rng.sample(sorted({w, u, b}), d.pick(1, len({w, u, b})))
    gates = len(variables) > 1 and any(d.is_reference(name) for name in variables)
    train = d.add(
        f"minimise_{len(variables)}",
        loss,
        *variables,
        optimizer=d.optimizer("descent"),
        gates=gates or d.chance(0.2),
        dims=None,
    )
    if d.chance(0.5):
        d.awaited = (train,)
    d.between(w, u, b)
    return d.add("add", d.pick(w, u), y)


def many_updates(d: Drawer) -> str:
    """Small updates with the same numbers."""
    variables = list(dict.fromkeys(d.variable(4, fresh=d.chance(0.8)) for _ in range(3)))
    optimizer = d.optimizer("descent")
    for v in variables:
        d.add("apply", d.plain(4), v, optimizer=optimizer, dims=None)
        d.between(*variables)
    return d.add("add", d.value(*MATRIX), d.pick(*variables))


def rows_of_a_table(d: Drawer) -> str:
    v = d.variable(*MATRIX)
    y = d.add("lookup", v)
    d.between(v)
    total = d.add("sum_all", d.add("square", y), dims=())
    d.between(v)
    if d.has_gradient(total):
        if d.chance(0.6):
            optimizer = d.pick("descent", "momentum", "adagrad", "adam", "rmsprop", "ftrl")
            d.add("minimise_1", total, v, optimizer=optimizer, gates=False, dims=None)
        else:
            y = d.add("gradient", total, v)
        d.between(v)
    return d.add("add", y, v)


def moving_averages(d: Drawer) -> str:
    """Batch normalisation with its averages."""
    x, mean, variance, offset, scale = (
        d.value(*MATRIX),
        *(d.variable(4, fresh=d.chance(0.7)) for _ in range(4)),
    )
    d.add("moving_average", mean, d.add("mean_rows", x, dims=VECTOR), dims=None)
    d.between(mean, variance)
    d.add("moving_average", variance, d.add("moments", x, dims=VECTOR), dims=None)
    d.between(mean, variance)
    y = d.add("normalised", x, mean, variance, offset, scale)
    d.between(mean, variance, offset)
    return d.add("relu", y)


def arrays(d: Drawer) -> str:
    v = d.variable(*MATRIX)
    if d.chance(0.5):
        y = d.add("array", d.plain(*MATRIX), d.plain(*MATRIX))
    else:
        y = d.add("unpacked", d.pick(v, d.value(*MATRIX)))
    d.between(v)
    return d.add("mul", y, v)


def queues(d: Drawer) -> str:
    v = d.variable(*MATRIX)
    y = d.add("relu", d.add("matmul", v, d.value(*MATRIX)))
    z = d.queue()
    d.between(v)
    return d.add("add", d.add("add", y, z), v)


def hits(d: Drawer) -> str:
    v = d.variable(*MATRIX)
    y = d.add("hits", d.add("matmul", d.value(*MATRIX), v))
    d.between(v)
    return d.add("maximum", y, v)


def branches(d: Drawer) -> str:
    """A conditional whose branches are patterns, with changes in them."""
    bodies = [d.body(lambda inner: inner.pick(*INNER)(inner), MATRIX) for _ in range(2)]
    y = d.add("cond", d.value(*d.pick(MATRIX, VECTOR)), bodies=bodies)
    d.between(*[s.name for s in d.states[-2:]])
    return d.add("plus_one", y)


def loops(d: Drawer) -> str:
    """A loop whose body is a pattern, with changes in it."""
    argument = d.name("i")

    def draw(inner: Drawer) -> str:
        y = inner.pick(*INNER)(inner)
        y = inner.add("add", y, argument)
        inner.between(*[s.name for s in inner.states[-2:]])
        return inner.add("half", inner.add("clip", y))

    y = d.add("loop", d.plain(*MATRIX), bodies=[d.body(draw, MATRIX, argument)], count=d.pick(1, 2, 3))
    d.between(*[s.name for s in d.states[-2:]])
    return y


def counting(d: Drawer) -> str:
    n = d.variable()
    y = d.add("mul", d.value(*MATRIX), n)
    d.between(n)
    z = d.add("count_up", n, limit=d.pick(2.0, 7.0), dims=())
    d.between(n)
    return d.add("add", y, d.add("add", n, z, dims=()))


def pooled_gradients(d: Drawer) -> str:
    """A convolution, its bias, activation and pooling, and the gradient or descent by the filter."""
    w, b, x = d.variable(*FILTER), d.variable(4), d.value(*IMAGES)
    y = d.add("conv", x, w, dims=IMAGES)
    d.between(w, b)
    y = d.add("relu", d.add("bias_add", y, b, dims=IMAGES), dims=IMAGES)
    d.between(w, b)
    y = d.add("max_pool", y, dims=(2, 2, 2, 4))
    d.between(w, b)
    total = d.add("sum_all", d.add("square", y, dims=(2, 2, 2, 4)), dims=())
    d.between(w, b)
    if d.has_gradient(total) and d.chance(0.5):
        d.add("minimise_1", total, d.pick(w, b), optimizer=d.optimizer("descent"), gates=False, dims=None)
    elif d.has_gradient(total):
        source = d.pick((w, FILTER), (x, IMAGES), (b, VECTOR))
        g = d.add("gradient", total, source[0], dims=source[1])
        d.between(w, b)
        return d.spread(d.add("sum_all", g, dims=()))
    return matrix(d, y)


def dropped(d: Drawer) -> str:
    """Dropout, and the gradient through it."""
    w = d.variable(*MATRIX)
    y = d.add("dropout", d.add("matmul", d.value(*MATRIX), w))
    d.between(w)
    total = d.add("sum_all", d.add("square", y), dims=())
    d.between(w)
    return d.add("gradient", total, w) if d.has_gradient(total) else y


def channels_first(d: Drawer) -> str:
    w, b, x = d.variable(*FILTER), d.variable(4), d.value(*IMAGES)
    y = d.add("images_first", x, w, dims=IMAGES)
    d.between(w, b)
    y = d.add("bias_first", y, b, dims=IMAGES)
    d.between(w, b)
    y = d.add("images_first", d.add("relu", y, dims=IMAGES), w, dims=IMAGES)
    return d.spread(d.add("sum_all", y, dims=()))


def looped(d: Drawer) -> str:
    """A loop over an array, and its gradient by what its body multiplies by."""
    w, x = d.variable(*MATRIX), d.value(*MATRIX)
    y = d.add("looped_cells", x, w)
    d.between(w)
    total = d.add("sum_all", y, dims=())
    if d.has_gradient(total):
        y = d.add("gradient", total, d.pick(w, x))
    d.between(w)
    return d.add("add", y, w)


def computed_again(d: Drawer) -> str:
    """Activations that gradients take, worth computing again."""
    w, h = d.variable(*MATRIX), d.value(*MATRIX)
    kinds = ["hinted_relu", "tanh"] if d.alone else ["relu", "tanh"]
    for _ in range(4):
        h = d.add(d.pick(*kinds), d.add("matmul", h, w))
        d.between(w)
    total = d.add("sum_all", h, dims=())
    d.between(w)
    return d.add("gradient", total, w) if d.has_gradient(total) else h


def decided(d: Drawer) -> str:
    """A conditional that is known before the step."""
    bodies = [d.body(lambda inner: inner.pick(*INNER)(inner), MATRIX) for _ in range(2)]
    y = d.add("cond", d.value(*MATRIX), bodies=bodies, decided=d.pick("first", "second"))
    d.between(*[s.name for s in d.states[-2:]])
    return d.add("plus_one", y)


INNER: list[Callable[[Drawer], str]] = [
    products, sums, identities, transposes, broadcasts, equal_parts, joined_products, slices, convolutions,
    many_updates, rows_of_a_table, moving_averages, arrays,
]  # fmt: skip
PATTERNS: list[Callable[[Drawer], str]] = [
    *INNER, turned_convolutions, many_convolutions, recurrence, lstm, losses, training, queues, hits,
    branches, branches, loops, loops, counting, pooled_gradients, looped, decided, computed_again,
]  # fmt: skip


ALONE: list[Callable[[Drawer], str]] = [dropped, channels_first, *[computed_again] * 3, training, products]


def program(seed: int) -> Program:
    """The program of this number."""
    for attempt in range(100):
        try:
            return _drawn(random.Random(f"{seed} {attempt}"))
        except Ambiguous:
            continue
    raise ValueError(f"no program for {seed}")


def _drawn(rng: random.Random) -> Program:
    d = Drawer(rng, Order([]))
    d.alone = rng.random() < 0.06
    known = PATTERNS if not d.alone else ALONE
    for pattern in rng.choices(known, k=rng.choice([1, 1, 2, 2, 3])):
        pattern(d)
        d.between(*[s.name for s in d.states[-2:]])
    drawn = Program(d.dtype, tuple(d.states), tuple(d.placeholders), tuple(d.statements), ())
    found = Program(d.dtype, drawn.states, drawn.placeholders, drawn.statements, _runs(rng, drawn))
    check(found)
    return found


def _runs(rng: random.Random, drawn: Program) -> tuple[Run, ...]:
    order = Order(drawn.states)
    edges = {s.name: {*order.add(s), *s.after} for s in drawn.statements}
    waits = {s.name: {*edges[s.name], *outer_names(s)} for s in drawn.statements}
    # who takes a value needs no control edge besides, and would not wait if it were fed
    order_by_values = {x for s in drawn.statements for x in edges[s.name] & {*s.arguments}}
    fetched = [s.name for s in drawn.statements if order.may_be_fetched(s.name)]
    fed = [s.name for s in drawn.statements if _may_be_fed(s) and s.name not in order_by_values]
    runs = []
    for i in range(rng.choice([2, 3, 4])):
        count = rng.choice([1, 2, 3, len(fetched)])
        chosen = rng.sample(fetched, min(count, len(fetched)))
        if rng.random() < 0.6:
            chosen = list(dict.fromkeys([*chosen, fetched[-1]]))
        inner = tuple(rng.sample(fed, 1)) if fed and rng.random() < 0.2 else ()
        run = Run(tuple(sorted({*chosen} - {*inner})), inner, seed=10 * i)
        runs.append(_in_parts(rng, run, drawn, order, waits) if rng.random() < 0.15 else run)
    return tuple(runs)


def _in_parts(rng: random.Random, run: Run, drawn: Program, order: Order, waits: dict[str, set[str]]) -> Run:
    """The same in two calls, if some of it does not need all that is fed."""
    names = [name for name, _ in drawn.placeholders]
    has_value = {s.name for s in drawn.statements if s.dims is not None}
    shown = {name: order.shown_by(name) for name in run.fetches}
    fetches = tuple(
        name
        for name in run.fetches
        if name in has_value and not shown[name].shows and not shown[name].may_show
    )
    if not names:
        return run
    late = rng.choice(names)
    early = tuple(name for name in fetches if late not in _needed_by(name, waits))
    if not early or len(early) == len(fetches) or run.fed:
        return run
    return dataclasses.replace(
        run, fetches=early + tuple(x for x in fetches if x not in early), early=early, late=(late,)
    )


def _needed_by(name: str, waits: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    stack = [name]
    while stack:
        top = stack.pop()
        if top not in found:
            found.add(top)
            stack.extend(waits.get(top, ()))
    return found


def _may_be_fed(statement: Statement) -> bool:
    return statement.dims is not None and not KINDS[statement.kind].changes and not statement.bodies
