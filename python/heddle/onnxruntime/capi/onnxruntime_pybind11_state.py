"""Exceptions under the names by which programs for ONNX Runtime catch them. Each is an exception of
heddle too. SPDX-License-Identifier: Apache-2.0
"""

import contextlib

from ...library import Error, InternalError, LimitError, RefusedError, UsageError


class Fail(Error):
    """A failure that is none of the others."""


class InvalidArgument(UsageError, Fail):
    """Feeds, names of outputs or places that do not fit the model."""


class NoSuchFile(UsageError, Fail):
    """The model's file is not there."""


class NoModel(Fail):
    """Not raised; for programs that catch it."""


class InvalidProtobuf(RefusedError, Fail):
    """The model is no protobuf of ONNX's."""


class InvalidGraph(RefusedError, Fail):
    """The model is not accepted. A refusal is both this and NotImplemented: which of the two ONNX
    Runtime would raise for a model, only ONNX Runtime knows."""


class NotImplemented(RefusedError, Fail):  # noqa: A001: ONNX Runtime's name
    """The model has what is not supported."""


class Refused(InvalidGraph, NotImplemented):
    """A refusal by the compiler."""


class RuntimeException(Fail):
    """A run that failed: out of memory, or a mistake in Heddle."""


class OutOfMemory(LimitError, RuntimeException):
    """Sizes that this machine has no memory for."""


class EPFail(Fail):
    """Not raised; for programs that catch it."""


NotFound = EngineError = ModelLoaded = ModelLoadCanceled = EPFail
DeviceReset = ModelRequiresCompilation = EPFail
OURS = ((UsageError, InvalidArgument), (RefusedError, Refused), (LimitError, OutOfMemory),
        (InternalError, RuntimeException), (Error, Fail))


def renamed(error):
    """An exception of heddle as one of these."""
    if isinstance(error, Fail):
        return error
    return next(new for old, new in OURS if isinstance(error, old))(str(error))


@contextlib.contextmanager
def named():
    """Within it, exceptions of heddle are raised under ONNX Runtime's names."""
    try:
        yield
    except Error as error:
        raise renamed(error) from error
