"""Functions of Python's that programs call."""

import ctypes
from typing import Any, Callable, Dict, List, Optional

from . import _structs
from ._arrays import Shape, dtype_number, dtype_name, type_string
from ._handle import held
from ._library import Code, KilnError, lib
from ._table import FUNCTIONS

# A function of its own, which hands the error over instead of raising it.
_make_error = lib['kiln_error_create']
_make_error.restype = ctypes.c_void_p
_make_error.argtypes = FUNCTIONS['kiln_error_create'][1]


class CallArray:
    """An array of a custom call, with NumPy's array interface. Its memory is there until the
    function returns.

    Attributes:
        shape: element type, sizes and bytes
    """

    def __init__(self, struct: _structs.CallArray, readonly: bool) -> None:
        self.shape = Shape(dtype_name(struct.dtype), tuple(struct.dims[:struct.rank]),
                           struct.byte_size)
        self._data = (struct.data or 0, readonly)

    @property
    def __array_interface__(self) -> Dict[str, Any]:
        item_size = lib.kiln_dtype_bits(dtype_number(self.shape.dtype)) // 8
        return {'version': 3, 'shape': self.shape.dims,
                'typestr': type_string(self.shape.dtype, item_size), 'data': self._data}


class CustomCall:
    """What a function that is registered with `Context.register_call` gets.

    Attributes:
        target: the name that is called
        backend_config: the text that the op has for the function
        operands: the arrays to read, `CallArray`s
        results: the arrays to fill in, `CallArray`s
    """

    def __init__(self, struct: _structs.CustomCall) -> None:
        def string(data: int, length: int) -> str:
            return ctypes.string_at(data, length).decode('utf-8', 'replace')

        self.target = string(struct.target, struct.target_length)
        self.backend_config = string(struct.backend_config, struct.backend_config_length)
        self.operands: List[CallArray] = [
            CallArray(struct.operands[i].contents, True) for i in range(struct.operand_count)]
        self.results: List[CallArray] = [
            CallArray(struct.results[i].contents, False) for i in range(struct.result_count)]


@_structs.CallFunction
def call_held(number: int, address: int) -> Optional[int]:
    """Calls the function that is held under a number; an exception is the call's error."""
    function: Callable[[CustomCall], None] = held(number)
    try:
        function(CustomCall(_structs.CustomCall.from_address(address)))
        return None
    except KilnError as error:
        code, message = error.code, error.message
    except BaseException as error:  # pylint: disable=broad-except
        code, message = Code.UNKNOWN, '{}: {}'.format(type(error).__name__, error)
    data = message.encode('utf-8', 'replace')
    return _make_error(code, data, len(data))
