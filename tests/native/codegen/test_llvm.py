"""LLVM by its functions in C: the code that llvmlite's module for Python makes, from several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from llvmlite import binding

from flowstone.native.codegen import host, llvm
from flowstone.native.networks import tile_code

PASSES = ("SROA", "SimplifyCFG", "InstCombine")
TEXT = tile_code.tile_code(3, host.lanes())


def by_llvmlite(text: str, level: int, passes: tuple[str, ...]) -> bytes:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    name, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(cpu=name, features=features, opt=level)
    options = binding.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = False
    builder = binding.create_pass_builder(machine, options)
    manager = builder.getModulePassManager()
    if passes is not llvm.EVERY:
        manager = binding.create_new_module_pass_manager()
        manager.add_sroa_pass()
    if passes is PASSES:
        manager.add_simplify_cfg_pass()
        manager.add_instruction_combine_pass()
    module = binding.parse_assembly(text)
    manager.run(module, builder)
    return bytes(machine.emit_object(module))


def test_the_processor_is_called_as_llvmlite_calls_it() -> None:
    assert llvm.processor() == (binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten())


@pytest.mark.parametrize(("level", "passes"), [(0, PASSES[:1]), (2, PASSES), (2, llvm.EVERY)])
def test_code_is_that_of_llvmlite(level: int, passes: tuple[str, ...]) -> None:
    assert llvm.object_code(TEXT, llvm.processor(), level, passes) == by_llvmlite(TEXT, level, passes)


def test_threads_make_code_at_once() -> None:
    processor = llvm.processor()
    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(lambda _: llvm.object_code(TEXT, processor, 0, PASSES), range(8)))
    assert set(codes) == {llvm.object_code(TEXT, processor, 0, PASSES)}


WRONG = """define i64 @f(i64 %x) {
 br label %end
end:
 %y = add i64 %z, 1
 br label %end
more:
 %z = add i64 %x, 1
 ret i64 %z
}"""


@pytest.mark.parametrize(("text", "why"), [("define i64 @f( {", "expected"), (WRONG, "dominate")])
def test_what_is_refused_has_a_reason(text: str, why: str) -> None:
    with pytest.raises(RuntimeError, match=why):
        llvm.object_code(text, llvm.processor(), 2, PASSES)
