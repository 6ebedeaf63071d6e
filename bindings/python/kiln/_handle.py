"""Objects of the library, and Python objects that the library holds."""

import ctypes
import itertools
import weakref
from typing import Any, ClassVar, Dict

from ._library import lib
from ._structs import DestroyFunction


class Handle:
    """An object of the library. It is given back by `close`, at the end of a `with` block, or when
    the last reference to the Python object goes; what was made from it keeps what it needs alive.
    """

    _noun: ClassVar[str]  # as in kiln_<noun>_release

    def __init__(self, address: int) -> None:
        self._address = address
        release = getattr(lib, 'kiln_{}_release'.format(self._noun))
        self._finalizer = weakref.finalize(self, release, address)

    @classmethod
    def borrowed(cls, address: int) -> Any:
        """An object for an address that the library keeps a reference to."""
        getattr(lib, 'kiln_{}_retain'.format(cls._noun))(address)
        return cls(address)

    @property
    def _as_parameter_(self) -> int:
        """What ctypes passes to functions."""
        if not self._finalizer.alive:
            raise ctypes.ArgumentError('the {} is closed'.format(self._noun))
        return self._address

    def close(self) -> None:
        """Gives the object back; using it afterwards raises `ctypes.ArgumentError`."""
        self._finalizer()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()


# What the library has been given as user_data, by number, until it calls `forget`.
_held: Dict[int, Any] = {}
_numbers = itertools.count(1)


def hold(item: Any) -> int:
    """Keeps a Python object alive until the library calls `forget` with the returned number."""
    number = next(_numbers)
    _held[number] = item
    return number


def held(number: int) -> Any:
    """The object of a number."""
    return _held[number]


def drop(number: int) -> None:
    """Ends what `hold` began."""
    _held.pop(number, None)


forget = DestroyFunction(drop)
