"""DLPack for arrays of Kiln's processor: memory is shared in both directions.

JAX's own code makes tensors of arrays of the platforms cpu, cuda and rocm only, and arrays of a
processor's tensors on the platform cpu only.
"""

import ctypes

import numpy as np

_CPU = 1  # kDLCPU
_BFLOAT = 4  # kDLBfloat


class _Tensor(ctypes.Structure):
    """The beginning of a DLManagedTensor: the array."""
    _fields_ = [('data', ctypes.c_void_p), ('device_type', ctypes.c_int32),
                ('device_id', ctypes.c_int32), ('ndim', ctypes.c_int32), ('code', ctypes.c_uint8),
                ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16)]


class _OfJaxCpu(int):
    """The device of arrays on JAX's own platform cpu, which stay there."""


class _Memory:
    """A value's memory, as NumPy takes it. Others see tensors as writable: JAX has no other kind."""

    def __init__(self, values, typestr):
        self._values = values
        self.__array_interface__ = {'version': 3, 'shape': values.shape, 'typestr': typestr,
                                    'strides': values.strides,
                                    'data': (values.ctypes.data, False)}


def _make_capsule(values):
    """A capsule of a DLManagedTensor that keeps `values`, a read-only array, alive."""
    code = None
    typestr = values.dtype.str
    if values.dtype.name == 'bfloat16':
        code, typestr = _BFLOAT, '<u2'
    elif values.dtype.kind == 'V':
        raise BufferError(f'DLPack has no element type {values.dtype}')
    if values.size == 0:
        shared = np.empty(values.shape, typestr)
    else:
        shared = np.asarray(_Memory(values, typestr))
    capsule = shared.__dlpack__()
    if code is not None:
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        _Tensor.from_address(pointer(capsule, b'dltensor')).code = code
    return capsule


def enable(platform):
    """Wraps JAX's functions for arrays of the platform; those of others are not concerned."""
    from jax._src import array, dlpack, xla_bridge

    kind = array.ArrayImpl
    their_device, their_tensor = kind.__dlpack_device__, kind.__dlpack__

    def is_ours(x):
        return len(x.sharding.device_set) == 1 and x.platform() == platform

    def dlpack_device(self):
        if is_ours(self):
            return dlpack.DLDeviceType.kDLCPU, 0
        device_type, number = their_device(self)
        return (_OfJaxCpu(device_type) if device_type == _CPU else device_type), number

    def dlpack_tensor(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        here = dl_device is None or int(dl_device[0]) == _CPU
        too_old = max_version is not None and max_version < dlpack.MIN_DLPACK_VERSION
        if not is_ours(self) or not here or too_old:
            return their_tensor(self, stream=stream, max_version=max_version, dl_device=dl_device,
                                copy=copy)
        # Ready values are read in place, and the view holds their memory.
        self.block_until_ready()
        values = np.asarray(self.addressable_data(0))
        return _make_capsule(values.copy() if copy else values)

    their_array = dlpack._jax.dlpack_managed_tensor_to_buffer

    def make_array(tensor, device, stream, copy=None, *rest):
        if device.platform != platform or not copy:
            return their_array(tensor, device, stream, copy, *rest)
        # JAX copies by a transfer that plugins do not have.
        view = their_array(tensor, device, stream, None, *rest)
        return dlpack._array_copy(view).block_until_ready()

    dlpack._jax.dlpack_managed_tensor_to_buffer = make_array
    kind.__dlpack_device__ = dlpack_device
    kind.__dlpack__ = dlpack_tensor

    class Platforms(dict):
        """JAX's platforms of DLPack's devices: a processor's tensors become arrays of the default
        platform, if that is Kiln's."""

        def __getitem__(self, device_type):
            name = super().__getitem__(device_type)
            is_others = name == 'cpu' and not isinstance(device_type, _OfJaxCpu)
            return platform if is_others and xla_bridge.default_backend() == platform else name

    dlpack._DL_DEVICE_TO_PLATFORM = Platforms(dlpack._DL_DEVICE_TO_PLATFORM)
