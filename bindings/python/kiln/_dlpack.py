"""DLPack tensors in Python's capsules, whose names state their form and whether they are used."""

import ctypes
from typing import Any, Callable, NamedTuple, Optional, Tuple

from ._library import lib, made

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
_LEGACY_STREAM = 1  # of CUDA, in the protocol of __dlpack__


class _Versioned(ctypes.Structure):
    _fields_ = [('major', ctypes.c_uint32),
                ('minor', ctypes.c_uint32),
                ('manager_ctx', ctypes.c_void_p),
                ('deleter', ctypes.c_void_p)]


class _Unversioned(ctypes.Structure):
    _fields_ = [('dl_tensor', ctypes.c_uint64 * 6),
                ('manager_ctx', ctypes.c_void_p),
                ('deleter', ctypes.c_void_p)]


class _Form(NamedTuple):
    name: bytes
    used_name: bytes  # the tensor is somebody else's
    struct: Any
    export: Callable[..., None]
    take: Callable[..., None]


# Names of capsules are kept here: a capsule has only the address of its own.
_FORMS = (_Form(b'dltensor_versioned', b'used_dltensor_versioned', _Versioned,
                lib.kiln_buffer_to_dlpack, lib.kiln_buffer_from_dlpack),
          _Form(b'dltensor', b'used_dltensor', _Unversioned,
                lib.kiln_buffer_to_dlpack_unversioned, lib.kiln_buffer_from_dlpack_unversioned))

# A capsule that is going away cannot be an object any more: destructors see its address.
_is_valid_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ('PyCapsule_IsValid', ctypes.pythonapi))
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ('PyCapsule_GetPointer', ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ('PyCapsule_IsValid', ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ('PyCapsule_GetPointer', ctypes.pythonapi))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ('PyCapsule_SetName', ctypes.pythonapi))
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ('PyCapsule_New', ctypes.pythonapi))
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _destroy(capsule: int) -> None:
    """Releases an unused tensor."""
    for form in _FORMS:
        if _is_valid_at(capsule, form.name):
            address = _pointer_at(capsule, form.name)
            _Deleter(form.struct.from_address(address).deleter)(address)


_destructor = _Destructor(_destroy)  # kept here, as names are


def export(buffer: Any, max_version: Optional[Tuple[int, int]]) -> Any:
    """A capsule with a tensor in the memory of a buffer, in the newest form that the consumer
    supports."""
    form = _FORMS[0 if max_version is not None and max_version[0] >= 1 else 1]
    return _new(made(form.export, buffer), form.name, _destructor)


def device_of(device: Any) -> Tuple[int, int]:
    """DLPack's type and number of a device."""
    kind, number = ctypes.c_int32(), ctypes.c_int32()
    lib.kiln_device_dlpack(device, ctypes.byref(kind), ctypes.byref(number))
    return kind.value, number.value


def take(device: Any, source: Any) -> int:
    """The address of a new buffer on a device, from a capsule, or from an object that provides
    one."""
    capsule = source
    if hasattr(source, '__dlpack__'):
        kind = source.__dlpack_device__()[0]
        # Elements of a GPU are there for what the default stream does next, as the library wants.
        arguments = {'stream': _LEGACY_STREAM} if kind in (CUDA, CUDA_MANAGED) else {}
        try:
            capsule = source.__dlpack__(max_version=(1, 0), **arguments)
        except TypeError:  # from before DLPack 1
            capsule = source.__dlpack__(**arguments)
    for form in _FORMS:
        if _is_valid(capsule, form.name):
            address = made(form.take, device, _pointer(capsule, form.name))
            _set_name(capsule, form.used_name)
            return address
    raise TypeError('{!r} hands out no tensor of DLPack, or one that is used'.format(source))
