"""Objects of the library, and Python objects that the library holds."""

import ctypes
import itertools
from typing import TYPE_CHECKING, Any, ClassVar, Dict, TypeVar

from ._library import lib
from ._structs import DestroyFunction

H = TypeVar('H', bound='Handle')


def refuse_to_copy(self: Any, _protocol: Any = None) -> Any:
    """`__reduce_ex__` of objects that cannot be pickled or copied, because they are addresses in
    this process."""
    raise TypeError('a kiln.{} cannot be pickled or copied{}'.format(
        type(self).__name__, getattr(self, '_instead', '')))


class Handle:
    """An object of the library. It is released by `close`, at the end of a `with` block, or with
    the last reference to the Python object; objects made from it keep it alive as needed. It cannot
    be pickled or copied.
    """

    # The address, which ctypes passes to functions; it is there until the object is closed.
    __slots__ = ('_as_parameter_', '__weakref__')
    _as_parameter_: int
    _noun: ClassVar[str]  # as in kiln_<noun>_release
    _release: ClassVar[Any]

    def __init_subclass__(cls) -> None:
        cls._release = getattr(lib, 'kiln_{}_release'.format(cls._noun))

    def __init__(self, address: int) -> None:
        self._as_parameter_ = address

    @classmethod
    def borrowed(cls: 'type[H]', address: int) -> H:
        """An object for a borrowed address."""
        getattr(lib, 'kiln_{}_retain'.format(cls._noun))(address)
        return cls(address)

    if not TYPE_CHECKING:  # for which it would have all names there are

        def __getattr__(self, name):
            if name == '_as_parameter_':
                raise ctypes.ArgumentError('the {} is closed'.format(self._noun))
            raise AttributeError('a kiln.{} has no attribute {!r}'.format(
                type(self).__name__, name))

    @property
    def closed(self) -> bool:
        """Whether it was released."""
        try:
            return not self._as_parameter_
        except ctypes.ArgumentError:
            return True

    def close(self) -> None:
        """Releases the object; any later use raises `ctypes.ArgumentError`."""
        try:
            address = self._as_parameter_
            del self._as_parameter_
        except (AttributeError, ctypes.ArgumentError):
            return
        self._release(address)

    def __del__(self) -> None:
        try:
            self._release(self._as_parameter_)
        except ctypes.ArgumentError:
            pass  # it is closed

    __reduce_ex__ = refuse_to_copy

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, *_exception: Any) -> None:
        self.close()


# The objects passed to the library as user_data, by number, until it calls `forget`.
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
    """Undoes `hold`."""
    _held.pop(number, None)


forget = DestroyFunction(drop)
