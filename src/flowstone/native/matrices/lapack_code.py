"""LLVM's text that calls a function of LAPACK for each of many matrices, which a team shares.

A function of LAPACK takes addresses alone. Of each argument the call says where it is for the first matrix
and the first thread, and how many bytes further for the next of both: a size stays, a matrix moves with the
number of the matrix, scratch memory with that of the thread. Within a team, a library of LAPACK that has
threads of its own runs on the thread that calls it.
"""

from __future__ import annotations

from flowstone.native.codegen.code_library import my_part, places_of, share, words_of
from flowstone.native.codegen.structured import Code

__all__ = ["ARGUMENTS", "MOST", "WORDS", "lapack_code"]

_VECTORS = "vl ldvl vr ldvr work lwork"
ARGUMENTS = {
    **dict.fromkeys(["ssyevd", "dsyevd"], "jobz uplo n a lda w work lwork iwork liwork info"),
    **dict.fromkeys(["cheevd", "zheevd"], "jobz uplo n a lda w work lwork rwork lrwork iwork liwork info"),
    **dict.fromkeys(["sgeev", "dgeev"], f"jobvl jobvr n a lda wr wi {_VECTORS} info"),
    **dict.fromkeys(["cgeev", "zgeev"], f"jobvl jobvr n a lda w {_VECTORS} rwork info"),
    **dict.fromkeys(["sgesdd", "dgesdd"], "jobz m n a lda s u ldu vt ldvt work lwork iwork info"),
    **dict.fromkeys(["cgesdd", "zgesdd"], "jobz m n a lda s u ldu vt ldvt work lwork rwork iwork info"),
}
"""What each function takes, by the names of LAPACK's documentation."""
MOST = max(len(names.split()) for names in ARGUMENTS.values())
WORDS = ("threads", "matrices", *(f"{step}{i}" for step in ("matrix", "thread") for i in range(MOST)))
"""The numbers of a call: the bytes from argument i of a matrix, and of a thread, to that of the next."""


def lapack_code(name: str) -> str:
    """The text of the function `name`, which takes the address of those of the words and of the arguments."""
    declarations: dict[str, str] = {}
    some = Code(f"{name}_some", ["ptr a"], 1, declarations)
    arguments = ARGUMENTS[name].split()
    places = places_of(some, arguments)
    words = words_of(some, places["words"], WORDS)
    me, start, end = my_part(some, words["matrices"])
    own = [some.at(places[each], some.mul(me, words[f"thread{i}"]), "i8") for i, each in enumerate(arguments)]
    with some.loop(start, end) as matrix:
        moved = [some.at(each, some.mul(matrix, words[f"matrix{i}"]), "i8") for i, each in enumerate(own)]
        some.do(f"call void @{name}_({', '.join(f'ptr {each}' for each in moved)})")
    declarations[name] = f"declare void @{name}_({', '.join(['ptr'] * len(arguments))})"
    e = Code(name, ["ptr a"], 1, declarations, is_public=True)
    share(e, f"{name}_some")
    return "\n".join([*declarations.values(), some.text(), e.text()])
