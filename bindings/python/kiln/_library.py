"""The loaded library, and the conversions for its functions."""

import ctypes
import os
import subprocess
import sysconfig
from typing import (Any, Callable, Iterable, Iterator, NoReturn, Optional, Tuple, Type, TypeVar,
                    Union)

from ._schema import ErrorPointer
from ._table import FUNCTIONS, VERSION, Code

S = TypeVar('S', bound=ctypes.Structure)

class KilnError(Exception):
    """An error of the library.

    Attributes:
        code: the kind of failure, a `Code`
        message: its description
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return '{}: {}'.format(self.code.name, self.message)


def _paths() -> Iterator[str]:
    """The possible paths of the library, the preferred one first."""
    named = os.environ.get('KILN_LIBRARY')
    if named:
        yield named
        return
    soname = 'libkiln.so.{}'.format(VERSION[0])
    # In the package, or in the prefix that the package is installed below, as
    # lib/python3.11/dist-packages/kiln.
    package = os.path.dirname(os.path.abspath(__file__))
    lib_folder = os.path.join(package, '../../..')
    for folder in (package, lib_folder,
                   os.path.join(lib_folder, sysconfig.get_config_var('MULTIARCH') or ''),
                   os.path.join(lib_folder, '../lib64')):
        path = os.path.join(folder, soname)
        if os.path.exists(path):
            yield os.path.realpath(path)
    yield soname  # where the system's loader looks
    try:
        folder = subprocess.run(['pkg-config', '--variable=libdir', 'kiln'], check=True, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return
    yield os.path.join(folder, soname)


def _load() -> ctypes.CDLL:
    """Loads the library: the one named by KILN_LIBRARY, or else the first one found in the package,
    below its prefix, by the system's loader, or by pkg-config.
    """
    errors = []
    for path in _paths():
        try:
            loaded = ctypes.CDLL(path)
            break
        except OSError as error:
            errors.append(str(error))
    else:
        raise ImportError('{}; set KILN_LIBRARY to the path of libkiln.so'.format(
            '; '.join(errors)))
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
        raise_error(returned.value or 0)


def lean(name: str) -> Any:
    """A function of the library with addresses and numbers as Python integers, which returns the
    address of an error, or None: for calls where each microsecond counts.
    """
    function = lib[name]
    result, parameters = FUNCTIONS[name]
    function.argtypes = [p if p in _NUMBERS else ctypes.c_void_p for p in parameters]
    function.restype = ctypes.c_void_p if result is ErrorPointer else result
    return function


_NUMBERS = (ctypes.c_int32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_double)


def raise_error(address: int) -> NoReturn:
    """Raises an error returned by a lean function."""
    try:
        raise borrowed_error(address)
    finally:
        lib.kiln_error_release(address)


def borrowed_error(pointer: Any) -> KilnError:
    """An exception with the contents of a kiln_error, which stays the caller's."""
    return KilnError(Code(lib.kiln_error_code(pointer)),
                     decoded(lib.kiln_error_message, pointer) or '')


def text(string: str) -> Tuple[bytes, int]:
    """The pair of arguments of a text."""
    data = string.encode()
    return data, len(data)


Path = Union[str, bytes, 'os.PathLike[str]', 'os.PathLike[bytes]']


def path_text(path: Path) -> Tuple[bytes, int]:
    """The pair of arguments of a path."""
    data = os.fsencode(path)
    return data, len(data)


def decoded(function: Callable[..., Optional[bytes]], *arguments: Any) -> Optional[str]:
    """The text returned by a function, whose length is its last parameter; None for NULL."""
    data = function(*arguments, None)
    return None if data is None else data.decode('utf-8', 'replace')


def ints(values: Iterable[int]) -> 'Tuple[ctypes.Array[Any], int]':
    """The pair of arguments of a list of sizes, as integers or symbols."""
    items = [int(getattr(v, '_as_parameter_', v)) for v in values]
    return (ctypes.c_int64 * len(items))(*items), len(items)


def made(function: Callable[..., None], *arguments: Any) -> int:
    """The address of the object handed over in a function's last parameter."""
    place = ctypes.c_void_p()
    function(*arguments, ctypes.byref(place))
    assert place.value is not None
    return place.value


def made_text(function: Callable[..., None], *arguments: Any) -> str:
    """The contents of the kiln_text handed over by a function."""
    address = made(function, *arguments)
    try:
        return decoded(lib.kiln_text_data, address) or ''
    finally:
        lib.kiln_text_release(address)


def made_bytes(function: Callable[..., None], *arguments: Any) -> bytes:
    """The contents of the kiln_text handed over by a function, which are no text."""
    address = made(function, *arguments)
    try:
        size = ctypes.c_size_t()
        data = lib['kiln_text_data']
        data.argtypes = FUNCTIONS['kiln_text_data'][1]
        data.restype = ctypes.c_void_p  # as a text it would end at the first zero
        return ctypes.string_at(data(address, ctypes.byref(size)), size.value)
    finally:
        lib.kiln_text_release(address)


def options(struct: Type[S], init: Callable[..., None], **fields: Any) -> S:
    """A struct of options with some fields set; the others have their defaults."""
    made_options = struct()
    init(ctypes.byref(made_options), ctypes.sizeof(struct))
    for name, value in fields.items():
        setattr(made_options, name, value)
    return made_options


lib = _load()
