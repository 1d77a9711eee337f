"""Calls of the public members of the classes of `tf.errors`."""

from class_calls import ClassCalls, product

CODES = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
]
NAMES = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]
MEMBERS = {
    "__init__": "[type(it).__mro__[1].__name__, str(it).split('\\n')[0], isinstance(it, Exception)]",
    "args": "[each is node.node_def or each is node or each for each in it.args]",
    "error_code": "it.error_code",
    "message": "it.message",
    "node_def": "it.node_def.name",
    "op": "it.op is node",
}
SETUP = (
    "node = tf.constant(1.0, name='made').op\nit = tf.errors.{}(node.node_def, op=node, message='went wrong')"
)
MODULE = ClassCalls(
    "tf.errors",
    "",
    {
        **{code: f"tf.errors.{code}" for code in CODES},
        "error_code_from_exception_type": (
            f"[tf.errors.error_code_from_exception_type(getattr(tf.errors, name)) for name in {NAMES}]"
        ),
        "exception_type_from_error_code": "[tf.errors.exception_type_from_error_code(c) for c in [1, 9, 16]]",
    },
)
TABLES = [
    *product("tf.errors", {name: SETUP.format(name) for name in NAMES}, MEMBERS, {}),
    *product(
        "tf.errors",
        {"OpError": SETUP.format("OpError").replace("wrong')", "wrong', error_code=11)")},
        MEMBERS,
        {},
    ),
    MODULE,
    ClassCalls(
        "tf.errors.raise_exception_on_not_ok_status",
        "ran = []\nwith tf.errors.raise_exception_on_not_ok_status():\n    ran.append(1)",
        {"__init__": "ran"},
    ),
]
