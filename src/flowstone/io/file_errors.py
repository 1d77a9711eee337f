"""Python's errors of files as TensorFlow's: class by `errno`, and the path in the message."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from flowstone.framework import errors

_CLASSES: dict[int, type[errors.OpError]] = {
    errno.ENOENT: errors.NotFoundError,
    errno.ENODEV: errors.NotFoundError,
    errno.ENXIO: errors.NotFoundError,
    errno.ESRCH: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EROFS: errors.PermissionDeniedError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.EBADF: errors.FailedPreconditionError,
    errno.EBUSY: errors.FailedPreconditionError,
    errno.ETXTBSY: errors.FailedPreconditionError,
    errno.EPIPE: errors.FailedPreconditionError,
    errno.EINVAL: errors.InvalidArgumentError,
    errno.ENAMETOOLONG: errors.InvalidArgumentError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.EMFILE: errors.ResourceExhaustedError,
    errno.ENFILE: errors.ResourceExhaustedError,
    errno.ENOMEM: errors.ResourceExhaustedError,
    errno.EFBIG: errors.OutOfRangeError,
    errno.EXDEV: errors.UnimplementedError,
    errno.ETIMEDOUT: errors.DeadlineExceededError,
    errno.EAGAIN: errors.UnavailableError,
    errno.ECONNREFUSED: errors.UnavailableError,
    errno.ECONNRESET: errors.UnavailableError,
    errno.EHOSTUNREACH: errors.UnavailableError,
    errno.ENETUNREACH: errors.UnavailableError,
}
# What stores raise that give no `errno`.
_NUMBERS: tuple[tuple[type[OSError], int], ...] = (
    (FileNotFoundError, errno.ENOENT),
    (FileExistsError, errno.EEXIST),
    (PermissionError, errno.EACCES),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
    (TimeoutError, errno.ETIMEDOUT),
    (ConnectionError, errno.ECONNRESET),
)


def file_error(path: str, error: OSError) -> errors.OpError:
    """The error of TensorFlow's class that says what `error` does about the file `path`."""
    number = error.errno or next((n for kind, n in _NUMBERS if isinstance(error, kind)), None)
    cls = _CLASSES.get(number or 0, errors.UnknownError)
    return cls(None, None, f"{path}; {os.strerror(number) if number else error}")  # type: ignore[call-arg]


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Inside it, an OSError becomes the error of TensorFlow's class that names `path`."""
    try:
        yield
    except OSError as error:
        raise file_error(path, error) from error
