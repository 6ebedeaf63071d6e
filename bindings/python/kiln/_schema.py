"""What the entries of the generated tables are."""

import ctypes


class ErrorPointer(ctypes.c_void_p):
    """A returned kiln_error*, which belongs to the caller; NULL is success."""
