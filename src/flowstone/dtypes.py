"""`flowstone.dtypes`: element types and casts."""

from flowstone.framework.names.late_names import late_names as _late_names
from flowstone.framework.types.dtypes import (
    QUANTIZED_DTYPES,
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from flowstone.ops.numbers.casts import cast, saturate_cast
from flowstone.ops.numbers.complex_numbers import complex

__getattr__, __dir__ = _late_names(
    globals(),
    {
        "flowstone.framework.names.small_types": "experimental",
        "flowstone.ops.strings.number_texts": "as_string",
    },
)
