"""Python functions called by programs."""

import ctypes
import threading
from typing import Any, Callable, Dict, List, Optional, TypeVar

from . import _numpy, _structs
from ._arrays import Shape
from ._dtypes import DType, dtype_name
from ._handle import held
from ._library import KilnError, lib
from ._table import FUNCTIONS, Code

T = TypeVar('T')

# A function of its own, which hands the error over instead of raising it.
_make_error = lib['kiln_error_create']
_make_error.restype = ctypes.c_void_p
_make_error.argtypes = FUNCTIONS['kiln_error_create'][1]


def _attribute(struct: _structs.CallAttribute) -> Any:
    """The value of an attribute."""
    if struct.kind == 4:
        return _attributes(struct.members, struct.count)
    if struct.kind == 3:
        return ctypes.string_at(struct.data, struct.count)
    kind = dtype_name(struct.dtype)
    shape = Shape(kind, (struct.count,), struct.count * DType(kind).itemsize)
    values = _numpy.array_of(_numpy.Memory(None, struct.data or 0, shape, True), kind).tolist()
    return values[0] if struct.kind == 1 else values


def _attributes(structs: Any, count: int) -> Dict[str, Any]:
    made = (structs[i].contents for i in range(count))
    return {ctypes.string_at(s.name, s.name_length).decode('utf-8', 'replace'): _attribute(s)
            for s in made}


class CallArray:
    """An array of a custom call: `numpy.asarray` of it is the same memory, in the layout that the
    call demands, valid until the function returns.

    Attributes:
        shape: element type, sizes and bytes
    """

    def __init__(self, struct: _structs.CallArray, readonly: bool) -> None:
        self.shape = Shape(dtype_name(struct.dtype), tuple(struct.dims[:struct.rank]),
                           struct.byte_size)
        self._address, self._readonly = struct.data or 0, readonly
        self._minor_to_major = tuple(struct.minor_to_major[:struct.rank])

    @property
    def dtype(self) -> DType:
        """Its element type."""
        return DType(self.shape.dtype)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        order = self._minor_to_major[::-1]  # of the dimensions in memory
        shape = Shape(self.shape.dtype, tuple(self.shape.dims[d] for d in order),
                      self.shape.byte_size)
        memory = _numpy.Memory(self, self._address, shape, self._readonly)
        array = _numpy.array_of(memory, shape.dtype)
        array = array.transpose(tuple(order.index(d) for d in range(len(order))))
        return _numpy.converted(array, dtype, copy)

    def __repr__(self) -> str:
        return '<kiln.CallArray {!r}>'.format(self.shape)


class CustomCall:
    """The argument of functions registered with `Context.register_call`.

    Attributes:
        target: the name in the call
        backend_config: the op's text for the function
        attributes: of a typed call, by name: numbers, `bytes`, lists of numbers and dictionaries
        operands: the arrays to read, `CallArray`s
        results: the arrays to fill in, `CallArray`s
    """

    def __init__(self, struct: _structs.CustomCall) -> None:
        def string(data: int, length: int) -> str:
            return ctypes.string_at(data, length).decode('utf-8', 'replace')

        self.target = string(struct.target, struct.target_length)
        self.backend_config = string(struct.backend_config, struct.backend_config_length)
        self.attributes = _attributes(struct.attributes, struct.attribute_count)
        self.operands: List[CallArray] = [
            CallArray(struct.operands[i].contents, True) for i in range(struct.operand_count)]
        self.results: List[CallArray] = [
            CallArray(struct.results[i].contents, False) for i in range(struct.result_count)]


def _call(number: int, address: int) -> Optional[int]:
    """Calls the function registered under a number; an exception becomes the call's error."""
    function: Callable[[CustomCall], None] = held(number)
    try:
        function(CustomCall(_structs.CustomCall.from_address(address)))
        return None
    except BaseException as error:  # pylint: disable=broad-except
        if _scope.is_open:
            _scope.cause = error
        if isinstance(error, KilnError):
            code, message = error.code, error.message
        else:
            code, message = Code.UNKNOWN, '{}: {}'.format(type(error).__name__, error)
    data = message.encode('utf-8', 'replace')
    made: int = _make_error(code, data, len(data))
    return made


call_held = _structs.CallFunction(_call)


class _Scope(threading.local):
    """Whether this thread runs a program, and the exception of a Python function called by it."""

    is_open = False
    cause: Optional[BaseException] = None


_scope = _Scope()


def with_causes(function: Callable[[], T]) -> T:
    """Calls a function that runs a program. If it fails because of a Python function called in this
    thread, that function's exception is the error's cause; KeyboardInterrupt and the like replace
    the error.
    """
    _scope.is_open = True
    try:
        return function()
    except KilnError as error:
        cause = _scope.cause
        if cause is None or cause is error:
            raise
        if not isinstance(cause, Exception):
            raise cause from None
        raise error from cause
    finally:
        _scope.is_open, _scope.cause = False, None
