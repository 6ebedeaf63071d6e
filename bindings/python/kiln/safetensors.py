"""Files of named arrays in the safetensors format, as Hugging Face's package has them.

    weights = kiln.safetensors.load('model.safetensors', context.device())
    kiln.safetensors.save('model.safetensors', weights, {'step': '12'})
"""

import ctypes
from typing import Any, Dict, Iterator, Mapping, Optional

from . import _structs
from ._arrays import Shape, shape_of
from ._handle import Handle
from ._library import Path, lib, made, options, path_text, text
from ._table import FUNCTIONS
from .device import Buffer, Device


def _with_length(name: str) -> Any:
    """A function that returns a text, which may have NULs."""
    function = lib[name]
    function.restype, function.argtypes = ctypes.c_void_p, FUNCTIONS[name][1]

    def call(*arguments: Any) -> Optional[str]:
        length = ctypes.c_size_t()
        address = function(*arguments, ctypes.byref(length))
        return None if address is None else ctypes.string_at(address, length.value).decode()
    return call


_name = _with_length('kiln_safetensors_name')
_dtype = _with_length('kiln_safetensors_dtype')
_key = _with_length('kiln_safetensors_metadata_key')
_value = _with_length('kiln_safetensors_metadata')


class File(Handle):
    """An open file: a mapping of names to shapes and buffers, in the order of their data. It is
    mapped, and must not be changed while it or one of its buffers is in use; it may be replaced, as
    `save` does.

    Raises:
        KilnError: with the code INVALID_ARGUMENT for a file that is not of the format
    """

    __slots__ = ('_numbers',)
    _noun = 'safetensors'

    def __init__(self, path: Path) -> None:
        super().__init__(made(lib.kiln_safetensors_open, *path_text(path)))
        count = lib.kiln_safetensors_count(self)
        self._numbers: Dict[str, int] = {_name(self, i): i for i in range(count)}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers

    def __repr__(self) -> str:
        if self.closed:
            return '<kiln.safetensors.File closed>'
        return '<kiln.safetensors.File of {} arrays>'.format(len(self))

    def dtype(self, name: str) -> str:
        """The element type of an array, as the format calls it: 'F32'."""
        return str(_dtype(self, self._numbers[name]))

    def shape(self, name: str) -> Shape:
        """The shape of an array."""
        return shape_of(lib.kiln_safetensors_shape, self, self._numbers[name])

    @property
    def metadata(self) -> Dict[str, str]:
        """The file's texts, by key."""
        keys = [str(_key(self, i)) for i in range(lib.kiln_safetensors_metadata_count(self))]
        return {key: str(_value(self, *text(key))) for key in keys}

    def buffer(self, name: str, device: Device) -> Buffer:
        """An array on a device. On CPU:0 it is the file's own memory, which executions can only
        read, if its elements are at a multiple of their size; otherwise it is a copy.
        """
        if name not in self._numbers:
            raise KeyError(name)
        return Buffer(made(lib.kiln_safetensors_buffer, self, *text(name), device))


def load(path: Path, device: Device) -> Dict[str, Buffer]:
    """All arrays of a file, on a device, as `File.buffer`."""
    with File(path) as file:
        return {name: file.buffer(name, device) for name in file}


def save(path: Path, arrays: Mapping[str, Buffer],
         metadata: Optional[Mapping[str, str]] = None) -> None:
    """Writes buffers into a file, and waits for their values. The file takes the path's place once
    it is complete; after a failure the old one is there as it was.

    Args:
        arrays: buffers by name, on any devices
        metadata: texts to keep in the file, by key
    """
    texts = [text(key) + text(value) for key, value in (metadata or {}).items()]
    pairs = (_structs.TextPair * len(texts))(*(_structs.TextPair(*pair) for pair in texts))
    made_options = options(_structs.SafetensorsOptions, lib.kiln_safetensors_options_init,
                           metadata=pairs, metadata_count=len(pairs))
    for buffer in arrays.values():
        buffer.settle()
    named = (_structs.NamedBuffer * len(arrays))(
        *(_structs.NamedBuffer(*text(name), buffer._as_parameter_)
          for name, buffer in arrays.items()))
    lib.kiln_safetensors_save(*path_text(path), named, len(named), ctypes.byref(made_options))
