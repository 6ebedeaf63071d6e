"""What the entries of the generated tables are."""

import ctypes
from typing import List, NamedTuple


class ErrorPointer(ctypes.c_void_p):
    """A returned kiln_error*, which belongs to the caller; NULL is success."""


class Parameter(NamedTuple):
    """Something that an op takes: in C, it may be several parameters."""

    name: str
    kind: str
    optional: bool


class Op(NamedTuple):
    """A builder function: what it does, and what it takes beside the graph."""

    doc: str
    parameters: List[Parameter]
