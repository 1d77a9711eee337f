"""`tensorflow.python.ops.list_ops` and `saved_model.nested_structure_coder`: answers of TensorFlow 1.15.5."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

import flowstone as tf
from flowstone.compat.module_paths import register
from flowstone.framework.names.alias_modules import alias_module

register()
lists = alias_module("tensorflow.python.ops.list_ops")
coding = alias_module("tensorflow.python.saved_model.nested_structure_coder")


def values(fetches: Any) -> Any:
    with tf.Session() as session:
        return [each.tolist() for each in session.run(fetches)]


@pytest.mark.usefixtures("graph")
def test_elements_and_rows() -> None:
    whole = lists.tensor_list_from_tensor(tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), [2])
    shorter, last = lists.tensor_list_pop_back(whole, tf.float32)
    fetches = [
        lists.tensor_list_length(whole),
        lists.tensor_list_gather(whole, [2, 0], tf.float32),
        lists.tensor_list_get_item(whole, 1, tf.float32),
        last,
        lists.tensor_list_stack(shorter, tf.float32, element_shape=[None]),
        lists.tensor_list_concat(whole, tf.float32),
    ]
    assert values(fetches) == [3, [[5, 6], [1, 2]], [3, 4], [5, 6], [[1, 2], [3, 4]], [1, 2, 3, 4, 5, 6]]


@pytest.mark.usefixtures("graph")
def test_shapes_that_are_partly_known() -> None:
    empty = lists.empty_tensor_list(tf.TensorShape([None]), tf.float32, max_num_elements=2)
    one = lists.tensor_list_push_back(empty, tf.constant([1.0, 2.0]))
    two = lists.tensor_list_push_back(one, tf.constant([1.0]))
    parts = lists.tensor_list_split(tf.range(5), [None], tf.constant([2, 3], tf.int64))
    fetches = [
        lists.tensor_list_element_shape(two, tf.int32),
        lists.tensor_list_concat(two, tf.float32, element_shape=[None]),
        lists.tensor_list_get_item(parts, 1, tf.int32),
    ]
    assert values(fetches) == [[-1], [1, 2, 1], [2, 3, 4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="full list"):
        values([lists.tensor_list_length(lists.tensor_list_push_back(two, tf.constant([1.0])))])


@pytest.mark.usefixtures("graph")
def test_places_that_have_no_value_yet() -> None:
    reserved = lists.tensor_list_reserve([2], 3, tf.float32)
    rows = tf.constant([[1.0, 2.0]])
    put = lists.tensor_list_set_item(reserved, tf.constant(4), rows[0], resize_if_index_out_of_bounds=True)
    fetches = [
        lists.tensor_list_stack(lists.tensor_list_scatter(rows, [1], input_handle=reserved), tf.float32),
        lists.tensor_list_stack(lists.tensor_list_scatter(rows, [1], element_shape=[2]), tf.float32),
        lists.tensor_list_stack(put, tf.float32, element_shape=[2]),
    ]
    nothing = [0, 0]
    assert values(fetches) == [
        [nothing, [1, 2], nothing], [nothing, [1, 2]], [nothing, nothing, nothing, nothing, [1, 2]],
    ]  # fmt: skip


# ---- structures as messages

Point = namedtuple("Point", "x y")
STRUCTURE = [
    1, (2.5, None, True), Point("a", tf.float32), {"k": tf.TensorSpec([2, None], tf.int32, "n")},
    tf.TensorShape(None), tf.SparseTensorSpec([3], tf.int64),
    tf.data.DatasetSpec(tf.TensorSpec([], tf.int32)), [],
]  # fmt: skip
MESSAGE = (  # of TensorFlow
    "9a03c2010a0260020a16a203130a095900000000000004400a020a000a0270010a1eb2031b0a05506f696e7412080a017812036a01"
    "6112080a017912038002010a25aa03220a200a016b121b8a02180a016e121112020802120b08ffffffffffffffffff0118030a05fa"
    "010218010a2a92022708011211a2030e0a07fa0104120208030a038002091a1053706172736554656e736f72537065630a25920222"
    "08051211a2030e0a078a0204120018030a03fa01001a0b44617461736574537065630a039a0300"
)


def test_a_structure_is_the_message_of_tensorflow() -> None:
    coder = coding.StructureCoder()
    message = coder.encode_structure(STRUCTURE)
    assert message.SerializeToString().hex() == MESSAGE
    read = coder.decode_proto(type(message).FromString(bytes.fromhex(MESSAGE)))
    assert repr(read) == repr(STRUCTURE) and read[2]._fields == ("x", "y")
    assert read[3]["k"] == STRUCTURE[3]["k"] and read[5:7] == STRUCTURE[5:7]


def test_what_no_message_holds() -> None:
    coder = coding.StructureCoder()
    for value in (b"bytes", [slice(1)], 1j, {"a": object()}):
        assert not coder.can_encode(value)
        with pytest.raises(coding.NotEncodableError, match="No encoder for object"):
            coder.encode_structure(value)
    assert coder.can_encode(STRUCTURE)
    with pytest.raises(ValueError):
        coder.encode_structure(2**70)
    with pytest.raises(coding.NotEncodableError, match="No decoder"):
        coder.decode_proto(type(coder.encode_structure(1))())
