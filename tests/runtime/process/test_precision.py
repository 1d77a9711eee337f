"""The choice of TF32 for a GPU's float32 products: in force while steps run, and torch's own outside."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

import flowstone as tf
from flowstone.runtime.process.precision import with_precision

PRODUCTS, CONVOLUTIONS = torch.backends.cuda.matmul, torch.backends.cudnn
choose = tf.config.experimental.enable_tensor_float_32_execution


@pytest.fixture(autouse=True)
def chosen() -> Iterator[None]:
    yield
    choose(False)
    PRODUCTS.allow_tf32, CONVOLUTIONS.allow_tf32 = False, True  # torch's defaults


def setting() -> tuple[bool, bool]:
    return PRODUCTS.allow_tf32, CONVOLUTIONS.allow_tf32


def test_steps_are_exact_unless_the_user_chooses():
    assert not tf.config.experimental.tensor_float_32_execution_enabled()
    step = with_precision(lambda *values: (*values, *setting()))
    assert step(1, 2) == (1, 2, False, False)
    choose(True)
    assert tf.config.experimental.tensor_float_32_execution_enabled()
    assert step() == (True, True)


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("own", [(False, True), (True, True), (True, False), (False, False)])
def test_the_setting_of_other_code_is_put_back(enabled, own):
    choose(enabled)
    PRODUCTS.allow_tf32, CONVOLUTIONS.allow_tf32 = own
    step = with_precision(setting)
    assert step() == (enabled, enabled) and setting() == own


def test_a_failed_step_puts_it_back():
    def fail():
        assert setting() == (False, False)
        raise ValueError

    with pytest.raises(ValueError):
        with_precision(fail)()
    assert setting() == (False, True)


def test_the_last_of_several_steps_puts_it_back():
    first, second, seen = threading.Event(), threading.Event(), []

    def long():
        first.set()
        second.wait(10)
        seen.append(setting())

    thread = threading.Thread(target=with_precision(long))
    thread.start()
    first.wait(10)
    assert with_precision(setting)() == (False, False)
    second.set()
    thread.join()
    assert seen == [(False, False)] and setting() == (False, True)


def test_settings_of_single_operations_stay():
    if not hasattr(CONVOLUTIONS, "conv"):
        pytest.skip("this torch has no settings of single operations")
    own = CONVOLUTIONS.conv.fp32_precision
    CONVOLUTIONS.conv.fp32_precision = "ieee"
    try:
        assert with_precision(lambda: CONVOLUTIONS.conv.fp32_precision)() == "ieee"
        assert CONVOLUTIONS.rnn.fp32_precision == "tf32"
    finally:
        CONVOLUTIONS.conv.fp32_precision = own
