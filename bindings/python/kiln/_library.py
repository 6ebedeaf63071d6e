"""The library, loaded, and the conversions that its functions want."""

import ctypes
import enum
import os
from typing import Any, Callable, Iterable, Optional, Tuple, Type, TypeVar

from ._schema import ErrorPointer
from ._table import CODES, FUNCTIONS, VERSION

S = TypeVar('S', bound=ctypes.Structure)

Code = enum.IntEnum('Code', CODES)  # type: ignore[misc]
Code.__doc__ = 'What kind of failure.'


class KilnError(Exception):
    """A failure that the library tells.

    Attributes:
        code: what kind of failure, a `Code`
        message: what it was about
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return '{}: {}'.format(self.code.name, self.message)


def _load() -> ctypes.CDLL:
    """Loads the library that KILN_LIBRARY names, or that lies in the package, or is installed."""
    soname = 'libkiln.so.{}'.format(VERSION[0])
    beside = os.path.join(os.path.dirname(__file__), soname)
    path = os.environ.get('KILN_LIBRARY') or (beside if os.path.exists(beside) else soname)
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError('{}; set KILN_LIBRARY to the path of libkiln.so'.format(error)) from None
    version = loaded.kiln_version()
    if version // 1000000 != VERSION[0] or version // 1000 % 1000 < VERSION[1]:
        raise ImportError('{} has version number {}; expected {}.{}'.format(
            path, version, *VERSION[:2]))
    for name, (result, parameters) in FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = parameters
        if result is ErrorPointer:
            function.errcheck = _raise
    return loaded


def _raise(returned: ErrorPointer, _function: Any, _arguments: Any) -> None:
    if returned:
        try:
            raise borrowed_error(returned)
        finally:
            lib.kiln_error_release(returned)


def borrowed_error(pointer: Any) -> KilnError:
    """An exception with the contents of a kiln_error, which stays the caller's."""
    return KilnError(Code(lib.kiln_error_code(pointer)),
                     decoded(lib.kiln_error_message, pointer) or '')


def text(string: str) -> Tuple[bytes, int]:
    """The pair of arguments that a text is."""
    data = string.encode()
    return data, len(data)


def decoded(function: Callable[..., Optional[bytes]], *arguments: Any) -> Optional[str]:
    """The text that a function returns, whose length is its last parameter; None for NULL."""
    data = function(*arguments, None)
    return None if data is None else data.decode('utf-8', 'replace')


def ints(values: Iterable[int]) -> Tuple[ctypes.Array, int]:
    """The pair of arguments that a list of integers is."""
    items = [int(v) for v in values]
    return (ctypes.c_int64 * len(items))(*items), len(items)


def made(function: Callable[..., None], *arguments: Any) -> int:
    """The address of the object that a function hands over in its last parameter."""
    place = ctypes.c_void_p()
    function(*arguments, ctypes.byref(place))
    assert place.value is not None
    return place.value


def made_text(function: Callable[..., None], *arguments: Any) -> str:
    """The contents of the kiln_text that a function hands over."""
    address = made(function, *arguments)
    try:
        return decoded(lib.kiln_text_data, address) or ''
    finally:
        lib.kiln_text_release(address)


def options(struct: Type[S], init: Callable[..., None], **fields: Any) -> S:
    """A struct of options with some fields set; the others are the defaults."""
    made_options = struct()
    init(ctypes.byref(made_options), ctypes.sizeof(struct))
    for name, value in fields.items():
        setattr(made_options, name, value)
    return made_options


lib = _load()
