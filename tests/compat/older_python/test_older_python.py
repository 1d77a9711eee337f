"""Names that Python and NumPy have dropped, in a program that `flowstone run` runs; and only there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from google.protobuf import descriptor_pb2

from flowstone.compat.older_python import python_2, scientific
from installed_programs import SOURCE, run_as_program


def test_names_of_the_library_and_of_numpy(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import asyncio, collections, base64, fractions, inspect, threading, time, unittest
        import cgi, imp, io
        from collections import Mapping, Iterable
        import numpy as np
        assert isinstance({}, Mapping) and isinstance({}, collections.MutableMapping)
        assert isinstance([], Iterable)
        assert inspect.getargspec(lambda a, b=1, *c, **d: 0) == (["a", "b"], "c", "d", (1,))
        assert fractions.gcd(12, 18) == 6 and time.clock() <= time.clock()
        assert list(asyncio.coroutine(lambda: (yield 3))()) == [3]
        assert base64.decodestring(base64.encodestring(b"abc")) == b"abc"
        assert cgi.escape("<a>") == "&lt;a&gt;"
        thread = threading.Thread(target=int)
        assert not thread.isAlive()
        unittest.TestCase().assertEquals(1, 1)
        unittest.TestCase().assertItemsEqual([1, 2], [2, 1])
        assert np.zeros(2, np.float).dtype == np.float64
        assert np.array([1], np.int).dtype == np.array([1]).dtype
        assert np.bool is bool or np.bool is np.bool_
        assert np.asscalar(np.array([3])) == 3 and np.product([2, 3]) == 6 and np.alltrue([True])
        assert np.in1d([1, 2], [2]).tolist() == [False, True] and np.Inf == np.inf and np.NaN != np.NaN
        assert np.float_ is np.float64 and np.unicode_ is np.str_ and np.mat([[1]]).shape == (1, 1)
        assert np.row_stack([[1], [2]]).shape == (2, 1) and np.trapz([1, 1, 1]) == 2
        assert 1 <= np.random.random_integers(3) <= 3
        assert np.asfarray([1, 2]).dtype == float and np.rank([[1]]) == 2
        assert np.msort([2, 1]).tolist() == [1, 2] and np.expand_dims([1], 3).shape == (1, 1)
        assert np.array([[1], [2, 3]]).dtype == object and np.asarray([[1], [2, 3]]).shape == (2,)
        assert np.copy([[1], [2, 3]]).dtype == object and np.asanyarray([[1], [2, 3]]).shape == (2,)
        file = io.BytesIO()
        np.savez(file, params=[np.ones((2, 3)), np.ones(3)])
        file.seek(0)
        assert [w.shape for w in np.load(file, allow_pickle=True)["params"]] == [(2, 3), (3,)]
        assert np.array([[1, 2], [3, 4]]).shape == (2, 2)
        grids = [np.meshgrid(number, np.arange(2)) for number in (7, 8)]
        assert np.block(grids).tolist() == [[7, 0], [7, 1], [8, 0], [8, 1]]
        assert type(np.broadcast_arrays([1], [2, 3])) is list and type(np.atleast_2d(1, 2)) is list
        assert np.issubdtype(np.float32, float) and np.issubdtype(np.int8, np.int)
        assert not np.issubdtype(np.int32, np.float) and not np.issubdtype(np.float32, np.float64)
        print(imp.new_module("m").__name__)
        """,
        tmp_path,
    )
    assert result.stdout == "m\n", result.stderr


def test_products_of_stacks(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import numpy as np
        from numpy.core.umath_tests import inner1d, matrix_multiply
        x = np.arange(6.0).reshape(2, 3)
        print(inner1d(x, x).tolist(), matrix_multiply(x[None], x.T[None]).tolist())
        """,
        tmp_path,
    )
    assert result.stdout == "[5.0, 50.0] [[[5.0, 14.0], [14.0, 50.0]]]\n", result.stderr


def test_modules_under_their_former_names(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import numpy as np
        from numpy.testing.utils import assert_almost_equal
        from numpy.lib.function_base import _quantile_is_valid, angle
        import numpy.lib.index_tricks, numpy.lib.stride_tricks
        print(angle is np.angle, assert_almost_equal is np.testing.assert_almost_equal)
        print(numpy.lib.index_tricks.r_ is np.r_, numpy.lib.stride_tricks.as_strided([1], (2,), (0,)))
        """,
        tmp_path,
    )
    assert result.stdout == "True True\nTrue [1 1]\n", result.stderr


def test_methods_of_arrays(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import numpy as np
        class Own(np.ndarray):
            pass
        x = np.array([[1, 2], [3, 5]], np.uint8)
        assert x.tostring() == b"\\1\\2\\3\\5" and x.tostring("F") == b"\\1\\3\\2\\5"
        assert np.float32(1).tostring() == np.ones([], np.float32).tobytes()
        assert x.view(Own).tostring() == x.tobytes()
        copied = np.fromstring(b"\\1\\2\\3", dtype=np.uint8)
        copied += 1
        assert copied.tolist() == [2, 3, 4] and np.fromstring("1 2", int, sep=" ").tolist() == [1, 2]
        x.itemset(1, 7)
        x.itemset((1, 0), 8)
        x.itemset(1, 1, 9)
        y = np.array(0.0)
        y.itemset(4)
        assert x.tolist() == [[1, 7], [8, 9]] and y == 4
        assert np.array([1, 2], copy=False).tolist() == [1, 2] and np.array(y, copy=False) is y
        assert x.ptp() == 8 and x.ptp(axis=0).tolist() == [7, 2] and x.ptp(1, keepdims=True).shape == (2, 1)
        assert np.array([1], np.int16).newbyteorder().tolist() == [256]
        assert np.int16(1).newbyteorder() == 256
        assert np.reshape(x, newshape=[4]).shape == np.reshape(x, [4]).shape == (4,)
        try:
            x.itemset(3)
        except ValueError:
            print("done")
        """,
        tmp_path,
    )
    assert result.stdout == "done\n", result.stderr


def test_scalars_are_printed_without_their_types(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import numpy as np
        print([np.float32(0.5), np.int64(3), np.bool_(True)], {"loss": np.float64(1.25)}, repr(np.str_("a")))
        """,
        tmp_path,
    )
    assert result.stdout == "[0.5, 3, True] {'loss': 1.25} 'a'\n", result.stderr


def test_python_stays_as_it_is_without_the_command() -> None:
    program = "import flowstone, collections, inspect, numpy, sys; "
    program += "from flowstone.compat.tensorflow import install; install(); "
    program += "print(hasattr(collections, 'Mapping'), 'float' in vars(numpy), hasattr(inspect, 'ArgSpec'))"
    before = subprocess.run(
        [sys.executable, "-c", "import inspect; print(hasattr(inspect, 'ArgSpec'))"],
        capture_output=True,
        text=True,
    )
    after = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": SOURCE},
        timeout=120,
    )
    assert after.stdout == f"False False {before.stdout}", after.stderr


def test_a_module_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text("rate = 0.5\n")
    result = run_as_program(
        f"""
        import imp
        settings = imp.load_source("settings", {str(tmp_path / "settings.py")!r})
        found = imp.find_module("settings", [{str(tmp_path)!r}])
        print(settings.rate, imp.load_module("again", *found).rate)
        """,
        tmp_path,
    )
    assert result.stdout == "0.5 0.5\n", result.stderr


def test_pictures_as_scipy_had_them(tmp_path: Path) -> None:
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    path = str(tmp_path / "a.png")
    scientific.imsave(path, grey)
    assert np.array_equal(scientific.imread(path), grey)
    colours = np.dstack([grey, grey, 255 - grey])
    scientific.imsave(path, colours)
    assert np.array_equal(scientific.imread(path), colours)
    assert scientific.imread(path, flatten=True).dtype == np.float32
    assert scientific.imread(path, mode="L").shape == (3, 4)
    assert scientific.imresize(grey, (6, 8)).shape == (6, 8)
    assert scientific.imresize(grey, 50).shape == (1, 2)
    assert scientific.imresize(colours, 2.0, "nearest").shape == (6, 8, 3)
    assert np.array_equal(scientific.imrotate(grey, 180), grey[::-1, ::-1])
    assert scientific.bytescale(np.array([0.0, 0.5, 1.0])).tolist() == [0, 128, 255]
    assert scientific.toimage(np.zeros([3, 5, 6])).size == (6, 5)
    with pytest.raises(ValueError, match="suitable array shape"):
        scientific.toimage(np.zeros([2, 2, 2]))
    with pytest.raises(ValueError, match="larger than `cmin`"):
        scientific.bytescale(np.zeros(3), cmin=2, cmax=1)


def test_the_six_of_scipy(tmp_path: Path) -> None:
    pytest.importorskip("six")
    (tmp_path / "scipy" / "_lib").mkdir(parents=True)
    for package in ("scipy", "scipy/_lib"):
        (tmp_path / package / "__init__.py").write_text("")
    program = """
        from scipy._lib.six import callable, string_types, xrange
        print(list(xrange(2)), callable(len), isinstance("a", string_types))
        """
    result = run_as_program(program, tmp_path)
    assert result.stdout == "[0, 1] True True\n", result.stderr


def test_private_names_of_modules_of_scipy_that_have_moved(tmp_path: Path) -> None:
    """In a module that is left under the old name, in one that is gone, and in one that never moved."""
    files = {
        "__init__": "",
        "optimize/__init__": "",
        "optimize/_optimize": "_status_message = 1",
        "optimize/optimize": "__all__ = []",
        "optimize/_linesearch": "_status_message = 2",
        "optimize/lbfgsb": "_status_message = 3",
    }
    for name, text in files.items():
        path = tmp_path / "scipy" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    program = """
        from scipy.optimize import lbfgsb, linesearch, optimize
        print(optimize._status_message, linesearch._status_message, lbfgsb._status_message)
        """
    result = run_as_program(program, tmp_path)
    assert result.stdout == "1 2 3\n", result.stderr


def test_names_of_pillow(tmp_path: Path) -> None:
    result = run_as_program("from PIL import Image; print(int(Image.ANTIALIAS))", tmp_path)
    assert result.stdout == "1\n", result.stderr


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("print 'x'", "a print statement"),
        ("print >>f, x", "a print statement"),
        ("except ValueError, e:", "an except clause with a comma"),
        ("raise ValueError, 'x'", "a raise statement with a comma"),
        ("exec 'x = 1'", "an exec statement"),
        ("if a <> b:", "the operator <>"),
        ("x = `y`", "backquotes"),
        ("mode = 0755", "an octal number without 0o"),
        ("n = 10L", "a long number"),
        ("def f(a, (b, c)):", "a tuple among the parameters"),
    ],
)
def test_what_is_said_of_python_2(line: str, what: str) -> None:
    text = python_2.describe(SyntaxError("invalid syntax", ("a.py", 7, 1, f"  {line}\n")))
    assert text is not None and text.startswith(f"a.py:7: this is Python 2: {what}.\n    {line}\n")
    assert "flowstone convert a.py" in text


def test_other_mistakes_are_pythons_own() -> None:
    assert python_2.describe(SyntaxError("invalid syntax", ("a.py", 7, 1, "x = = 1\n"))) is None


def test_a_program_of_python_2_is_not_run(tmp_path: Path) -> None:
    result = run_as_program("import tensorflow as tf\nprint 'hello'\n", tmp_path)
    assert result.returncode == 1 and result.stdout == ""
    assert "program.py:2: this is Python 2: a print statement." in result.stderr
    assert "Traceback" not in result.stderr


def test_an_array_of_one_element_is_a_number(tmp_path: Path) -> None:
    result = run_as_program(
        """
        import math
        import numpy as np
        import tensorflow as tf
        loss = tf.Session().run(tf.constant([4.0]))
        assert float(loss) == 4 and int(np.array([[3]])) == 3 and complex(loss) == 4 and math.sqrt(loss) == 2
        row = np.zeros(2, np.float32)
        row[1] = loss
        try:
            float(np.zeros(2))
        except TypeError as error:
            print("%.1f" % loss, row.tolist(), error)
        """,
        tmp_path,
    )
    said = "only size-1 arrays can be converted to Python scalars"
    assert result.stdout == f"4.0 [0.0, 4.0] {said}\n", result.stderr


OLDER_MESSAGES = """
import sys
_b=sys.version_info[0]<3 and (lambda x:x) or (lambda x:x.encode('latin1'))
from google.protobuf import descriptor as _descriptor
from google.protobuf import reflection as _reflection
DESCRIPTOR = _descriptor.FileDescriptor(
  name='older.proto', package='older',
  serialized_pb=_b(%r)
)
_ITEM = _descriptor.Descriptor(
  name='Item', full_name='older.Item', filename=None, file=DESCRIPTOR, containing_type=None,
  fields=[_descriptor.FieldDescriptor(name='size', full_name='older.Item.size', index=0, number=1, type=5,
    cpp_type=1, label=1, has_default_value=False, default_value=0, message_type=None, enum_type=None,
    containing_type=None, is_extension=False, extension_scope=None)],
  extensions=[], nested_types=[], enum_types=[], is_extendable=False, extension_ranges=[], oneofs=[])
Item = _reflection.GeneratedProtocolMessageType('Item', (object,), dict(DESCRIPTOR=_ITEM))
"""


def test_messages_that_an_older_protoc_generated(tmp_path: Path) -> None:
    description = descriptor_pb2.FileDescriptorProto(name="older.proto", package="older")
    message = description.message_type.add(name="Item")
    message.field.add(name="size", number=1, type=5, label=1)
    description.enum_type.add(name="Kind").value.add(name="FIRST", number=0)
    text = description.SerializeToString().decode("latin1")
    (tmp_path / "older_pb2.py").write_text(OLDER_MESSAGES % text)
    result = run_as_program(
        """
        from google.protobuf import descriptor_pb2  # a newer file that describes each field once more
        import older_pb2
        item = older_pb2.Item(size=3)
        again = older_pb2.Item.FromString(item.SerializeToString())
        print(again.size, older_pb2.FIRST, older_pb2.Kind.Name(0))
        """,
        tmp_path,
    )
    assert result.stdout == "3 0 FIRST\n", result.stderr


NEWER_MESSAGES = """
from google.protobuf import descriptor_pool as _descriptor_pool
from google.protobuf.internal import builder as _builder
from tensorflow.core.framework import tensor_pb2 as tensorflow_dot_core_dot_framework_dot_tensor__pb2
DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(%r.encode("latin1"))
_builder.BuildMessageAndEnumDescriptors(DESCRIPTOR, globals())
"""


@pytest.mark.parametrize("form", [OLDER_MESSAGES, NEWER_MESSAGES], ids=["older", "newer"])
def test_messages_of_other_packages_hold_ours(form: str, tmp_path: Path) -> None:
    description = descriptor_pb2.FileDescriptorProto(name="served.proto", package="tensorflow.served")
    for core in ("framework/tensors/tensor", "framework/types", "lib/core/error_codes"):
        description.dependency.append(f"tensorflow/core/{core}.proto")
    message = description.message_type.add(name="Item")
    message.field.add(name="name", number=1, type=9, label=1)
    message.field.add(name="value", number=2, type=11, label=1, type_name=".tensorflow.TensorProto")
    inner = message.nested_type.add(name="Inner")
    inner.field.add(name="dtype", number=1, type=14, label=1, type_name=".tensorflow.DataType")
    inner.field.add(name="code", number=2, type=14, label=1, type_name=".tensorflow.error.Code")
    message.field.add(name="inner", number=3, type=11, label=1, type_name=".tensorflow.served.Item.Inner")
    text = description.SerializeToString().decode("latin1")
    (tmp_path / "served_pb2.py").write_text(form % text)
    result = run_as_program(
        """
        import tensorflow as tf
        from tensorflow.core.lib.core import error_codes_pb2
        import served_pb2
        item = served_pb2.Item(name="x", value=tf.make_tensor_proto([1.0, 2.0]))
        item.inner.dtype, item.inner.code = tf.int32.as_datatype_enum, error_codes_pb2.ABORTED
        again = served_pb2.Item.FromString(item.SerializeToString())
        print(again.name, tf.make_ndarray(again.value), again.inner)
        """,
        tmp_path,
    )
    assert result.stdout == "x [1. 2.] dtype: DT_INT32\ncode: ABORTED\n\n", result.stderr
