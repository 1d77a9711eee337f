"""What few programs use is imported when it is first asked for: names, and ops that are not declared yet."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from flowstone.framework.declarations.operation import OpDeclaration, Registry
from flowstone.framework.names.late_names import late_names


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_a_name_is_taken_from_its_file_once() -> None:
    module: dict[str, Any] = {"__name__": "flowstone.example"}
    get, names = late_names(module, {"statistics": "mean average=mean"}, "late")
    average = get("average")
    assert average is get("mean") is module["average"]
    assert average([1, 3]) == 2
    assert set(names()) >= {"average", "late", "mean"}
    with pytest.raises(AttributeError, match=r"flowstone\.example has no name 'mode'"):
        get("mode")


def test_a_namespace_is_imported_when_it_is_asked_for() -> None:
    code = (
        "import sys, flowstone as tf; before = 'flowstone.linalg' in sys.modules;"
        "print(before, tf.linalg.__name__)"
    )
    assert run(code).split() == ["False", "flowstone.linalg"]


def test_a_registry_loads_late_for_an_ops_name_that_it_lacks_and_once() -> None:
    registry, loads = Registry(), []
    registry.load_late_by(lambda: loads.append(1))
    assert registry.get("a_function") is None
    assert not loads
    assert "Missing" not in registry
    assert "Another" not in registry
    assert loads == [1]
    with pytest.raises(KeyError, match="Missing"):
        registry["Missing"]


def complete(name: str) -> OpDeclaration:
    declaration = OpDeclaration(name, "x: T -> y: T", T=None).not_differentiable()
    declaration.infer(lambda node: node.dims(0))
    declaration.kernel("CPU")(lambda node, env: lambda x: x)
    return declaration


@pytest.mark.parametrize("question", [len, lambda registry: len(list(registry))])
def test_all_that_counts_or_lists_the_ops_sees_the_late_ones(question: Any) -> None:
    late, registry = complete("_LateExample"), Registry()
    registry.load_late_by(lambda: registry.add(late) and None)
    assert question(registry) == 1


def test_a_late_declaration_that_lacks_a_part_is_an_error() -> None:
    registry = Registry()
    registry.load_late_by(lambda: registry.add(OpDeclaration("Incomplete", "x: T -> y: T", T=None)) and None)
    with pytest.raises(TypeError, match="Incomplete lacks: infer, kernel, gradient"):
        registry.get("Incomplete")


def test_files_that_may_declare_an_op_are_imported_before_all_of_them() -> None:
    registry, loads = Registry(), []

    def load_with(name: str) -> None:
        loads.append(name)
        if name == "Here":
            registry.add(complete("Here"))

    registry.load_late_by(lambda: loads.append("all"), load_with)
    assert registry["Here"] is registry["Here"]
    assert loads == ["Here"]
    assert "Missing" not in registry
    assert "Another" not in registry
    assert loads == ["Here", "Missing", "all"]


def test_ops_of_datasets_import_no_readers_of_images_and_databases() -> None:
    code = (
        "import sys, flowstone as tf; dataset = tf.data.Dataset.range(4).batch(2);"
        "x = dataset.make_one_shot_iterator().get_next(); print(tf.Session().run(x).tolist());"
        "print([name in sys.modules for name in ('PIL', 'sqlite3')])"
    )
    assert run(code).splitlines() == ["[0, 1]", "[False, False]"]


def test_an_op_of_a_late_file_is_the_same_however_it_is_asked_for() -> None:
    """Its file alone declares all that hangs on it."""
    code = (
        "import sys, flowstone as tf; from flowstone.framework.declarations.operation import registry;"
        "first = registry['SqlDataset']; late = 'flowstone.ops.forests' in sys.modules;"
        "print('sqlite3' in sys.modules, late, len(registry) > 1000, registry['SqlDataset'] is first)"
    )
    assert run(code).split() == ["True", "False", "True", "True"]


def test_late_names_are_in_the_modules_dictionary() -> None:
    """Programs look an optimiser up in the dictionary of `tf.train`."""
    program = """if True:
        import sys
        import flowstone as tf
        from flowstone.contrib import rnn
        assert "LSTMBlockFusedCell" in dir(rnn) and "flowstone.contrib.rnn.lstm_ops" not in sys.modules
        print(vars(rnn)["LSTMBlockFusedCell"] is rnn.LSTMBlockFusedCell, vars(rnn) is rnn.__dict__)
        print(tf.train.__dict__["AdamOptimizer"] is tf.train.AdamOptimizer)
    """
    assert run(program) == "True True\nTrue\n"
