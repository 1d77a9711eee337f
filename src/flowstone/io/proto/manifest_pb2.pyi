from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Signatures(_message.Message):
    __slots__ = ("default_signature", "named_signatures")
    class NamedSignaturesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Signature
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Signature, _Mapping]] = ...) -> None: ...
    DEFAULT_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    NAMED_SIGNATURES_FIELD_NUMBER: _ClassVar[int]
    default_signature: Signature
    named_signatures: _containers.MessageMap[str, Signature]
    def __init__(self, default_signature: _Optional[_Union[Signature, _Mapping]] = ..., named_signatures: _Optional[_Mapping[str, Signature]] = ...) -> None: ...

class TensorBinding(_message.Message):
    __slots__ = ("tensor_name",)
    TENSOR_NAME_FIELD_NUMBER: _ClassVar[int]
    tensor_name: str
    def __init__(self, tensor_name: _Optional[str] = ...) -> None: ...

class AssetFile(_message.Message):
    __slots__ = ("tensor_binding", "filename")
    TENSOR_BINDING_FIELD_NUMBER: _ClassVar[int]
    FILENAME_FIELD_NUMBER: _ClassVar[int]
    tensor_binding: TensorBinding
    filename: str
    def __init__(self, tensor_binding: _Optional[_Union[TensorBinding, _Mapping]] = ..., filename: _Optional[str] = ...) -> None: ...

class Signature(_message.Message):
    __slots__ = ("regression_signature", "classification_signature", "generic_signature")
    REGRESSION_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    CLASSIFICATION_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    GENERIC_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    regression_signature: RegressionSignature
    classification_signature: ClassificationSignature
    generic_signature: GenericSignature
    def __init__(self, regression_signature: _Optional[_Union[RegressionSignature, _Mapping]] = ..., classification_signature: _Optional[_Union[ClassificationSignature, _Mapping]] = ..., generic_signature: _Optional[_Union[GenericSignature, _Mapping]] = ...) -> None: ...

class RegressionSignature(_message.Message):
    __slots__ = ("input", "output")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    input: TensorBinding
    output: TensorBinding
    def __init__(self, input: _Optional[_Union[TensorBinding, _Mapping]] = ..., output: _Optional[_Union[TensorBinding, _Mapping]] = ...) -> None: ...

class ClassificationSignature(_message.Message):
    __slots__ = ("input", "classes", "scores")
    INPUT_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    input: TensorBinding
    classes: TensorBinding
    scores: TensorBinding
    def __init__(self, input: _Optional[_Union[TensorBinding, _Mapping]] = ..., classes: _Optional[_Union[TensorBinding, _Mapping]] = ..., scores: _Optional[_Union[TensorBinding, _Mapping]] = ...) -> None: ...

class GenericSignature(_message.Message):
    __slots__ = ("map",)
    class MapEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: TensorBinding
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[TensorBinding, _Mapping]] = ...) -> None: ...
    MAP_FIELD_NUMBER: _ClassVar[int]
    map: _containers.MessageMap[str, TensorBinding]
    def __init__(self, map: _Optional[_Mapping[str, TensorBinding]] = ...) -> None: ...
