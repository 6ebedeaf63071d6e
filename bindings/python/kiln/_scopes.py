"""Scopes of graphs, as contexts of `with`."""

from typing import Any, Callable, Optional, Type

from ._library import KilnError


class Scope:
    """What the ops made in a `with` block get. It can be entered more than once."""

    __slots__ = ('_push', '_pop')

    def __init__(self, push: Callable[[], Any], pop: Callable[[], Any]) -> None:
        self._push = push
        self._pop = pop

    def __enter__(self) -> None:
        self._push()

    def __exit__(self, kind: Optional[Type[BaseException]], *_exception: Any) -> None:
        try:
            self._pop()
        except KilnError:
            # The graph's mistake inside the block, which the exception tells already.
            if kind is None:
                raise
