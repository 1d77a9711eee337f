"""What LLVM says of a text of machine code."""

from __future__ import annotations

from llvmlite import binding as llvm


def shown_functions(text: str) -> set[str]:
    """The functions that a valid text defines for others; an error for a text that is not valid."""
    module = llvm.parse_assembly(text)
    module.verify()
    defined = {each.name for each in module.functions if not each.is_declaration}
    return {each.name for each in module.functions if each.linkage == llvm.Linkage.external} & defined
