"""jax.ffi: handlers registered for the platform become targets of custom calls."""

import ctypes

_STAGES = ('instantiate', 'prepare', 'initialize', 'execute')
_OF_COMMAND_BUFFERS = 'record'  # a stage on GPUs alone
_get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
    ('PyCapsule_GetName', ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ('PyCapsule_GetPointer', ctypes.pythonapi))
_registered = []  # keeps what belongs to capsules


def _address(capsule):
    return None if capsule is None else _get_pointer(capsule, _get_name(capsule))


class _Library:
    """The functions of libkiln_pjrt.so for registrations."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        text = [ctypes.c_char_p, ctypes.c_size_t]
        self._target = library.KilnPjrtRegisterFfiTarget
        self._target.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p),
                                 ctypes.c_int32] + text
        self._type = library.KilnPjrtRegisterFfiType
        self._type.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p] + text

    def register_target(self, name, function, platform, api_version=0, traits=0):
        """As xla_client.register_custom_call_target: a capsule, or a dictionary of capsules by
        stage."""
        del platform, traits  # traits are of command buffers of GPUs
        stages = function if isinstance(function, dict) else {'execute': function}
        unknown = set(stages) - {*_STAGES, _OF_COMMAND_BUFFERS}
        if unknown:
            raise ValueError(f'{name}: unknown stages {sorted(unknown)}; expected {_STAGES}')
        handlers = (ctypes.c_void_p * len(_STAGES))(*(_address(stages.get(s)) for s in _STAGES))
        self._call(self._target, name, handlers, api_version)
        _registered.append(function)

    def register_type(self, name, registration):
        """As xla_client.register_custom_type: {'type_id': capsule, 'type_info': capsule}."""
        if not isinstance(registration, dict):
            registration = {'type_id': registration}
        self._call(self._type, name, _address(registration['type_id']),
                   _address(registration.get('type_info')))
        _registered.append(registration)

    @staticmethod
    def _call(function, name, *arguments):
        text = ctypes.create_string_buffer(1024)
        name = name if isinstance(name, bytes) else name.encode()
        if function(name, *arguments, text, len(text)):
            raise RuntimeError(text.value.decode('utf-8', 'replace') or 'out of memory')


def _register_own_of_jaxlib(library):
    """The rules of cpu, which are Kiln's, also call handlers of jaxlib. Those of LAPACK the library
    has itself."""
    from jax._src.lib import cpu_sparse, lapack

    for module in (lapack, cpu_sparse):
        for name, function, api_version in module.registrations().get('cpu', ()):
            if not name.startswith('lapack_'):
                library.register_target(name, function, 'cpu', api_version)


def install(platform, path):
    """Takes the registrations for the platform, those made before included."""
    from jax._src.lib import xla_client

    library = _Library(path)
    _register_own_of_jaxlib(library)
    # Handlers are asked for the types of their states as they are registered. Before 0.9 JAX had
    # another name for the function.
    set_types = (getattr(xla_client, 'register_custom_type_handler', None) or
                 xla_client.register_custom_type_id_handler)
    set_types(platform, library.register_type)
    xla_client.register_custom_call_handler(platform, library.register_target)
