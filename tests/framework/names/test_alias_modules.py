"""Modules of TensorFlow's that have no file here."""

from __future__ import annotations

from types import ModuleType

from flowstone.contrib import framework
from flowstone.framework.names.alias_modules import alias_module

OPS = "tensorflow.contrib.framework.python.ops"


def test_a_function_hides_the_module_of_its_name() -> None:
    ops, module = alias_module(OPS), alias_module(f"{OPS}.arg_scope")
    assert ops is not None and module is not None
    assert ops.arg_scope is module.arg_scope is framework.arg_scope
    ops.arg_scope = module  # as Python does when that module is imported
    assert ops.arg_scope is framework.arg_scope


def test_a_module_is_not_hidden_by_a_module() -> None:
    ops = alias_module(OPS)
    assert ops is not None and isinstance(ops.variables, ModuleType)
    assert ops.variables.model_variable is framework.model_variable


def test_the_names_of_a_module_as_a_dictionary() -> None:
    """Programs evaluate texts among the names of a module."""
    ops = alias_module(OPS)
    assert ops is not None and "VariableDeviceChooser" in dir(ops)
    assert vars(ops)["VariableDeviceChooser"] is framework.VariableDeviceChooser
    assert eval("arg_scope", dict(vars(ops))) is framework.arg_scope
