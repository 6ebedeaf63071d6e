"""Calls of compiled programs into Python: pure_callback, io_callback, jax.debug, checkify, and
buffer_callback of jax.experimental.

JAX lowers all but the last by one function, emit_python_callback(). It knows its own platforms only,
as the rule of buffer_callback does. For programs for Kiln the custom call that they make for cpu gets
Kiln's target, and the number of the callable in a table of this module. The plugin has one function,
made by ctypes, for all such calls.

The executable owns its callables, and keeps them until its executions have ended: to JAX they are
host callbacks, as those of cpu. The table does not keep them. Programs with host callbacks are not
written to JAX's persistent cache.
"""

import atexit
import contextlib
import ctypes
import functools
import itertools
import os
import traceback
import weakref

import numpy as np

TARGET = 'kiln_python_callback'

_CPU_TARGETS = ('xla_ffi_python_cpu_callback', 'xla_ffi_partitioned_python_cpu_callback',
                'xla_buffer_python_cpu_callback')
_INTERNAL = 13  # KILN_INTERNAL

_numbers = itertools.count(1)
_callables = weakref.WeakValueDictionary()


class _Array(ctypes.Structure):
    """kiln_call_array."""
    _fields_ = [('struct_size', ctypes.c_size_t), ('dtype', ctypes.c_int32),
                ('reserved', ctypes.c_int32), ('rank', ctypes.c_size_t),
                ('dims', ctypes.POINTER(ctypes.c_int64)), ('data', ctypes.c_void_p),
                ('byte_size', ctypes.c_int64)]


class _Call(ctypes.Structure):
    """kiln_custom_call."""
    _fields_ = [('struct_size', ctypes.c_size_t), ('target', ctypes.c_void_p),
                ('target_length', ctypes.c_size_t), ('backend_config', ctypes.c_void_p),
                ('backend_config_length', ctypes.c_size_t),
                ('operands', ctypes.POINTER(ctypes.POINTER(_Array))),
                ('operand_count', ctypes.c_size_t),
                ('results', ctypes.POINTER(ctypes.POINTER(_Array))),
                ('result_count', ctypes.c_size_t)]


_Function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Call), ctypes.POINTER(ctypes.c_void_p))

_view = ctypes.pythonapi.PyMemoryView_FromMemory
_view.restype = ctypes.py_object
_view.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)
_READ, _WRITE = 0x100, 0x200


@functools.cache
def _dtypes():
    """NumPy's types by the library's numbers."""
    import ml_dtypes

    name = _library().kiln_dtype_name
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.c_int32,)
    known = {'pred': np.bool_, 'c64': np.complex64, 'c128': np.complex128,
             'bf16': ml_dtypes.bfloat16}
    for letter, kind in (('s', 'int'), ('u', 'uint'), ('f', 'float')):
        for bits in (1, 2, 4, 8, 16, 32, 64):
            for module in (np, ml_dtypes):
                if hasattr(module, f'{kind}{bits}'):
                    known.setdefault(f'{letter}{bits}', getattr(module, f'{kind}{bits}'))
    for short in dir(ml_dtypes):
        if short.startswith('float') and '_' in short:
            known['f' + short.removeprefix('float').replace('_', '')] = getattr(ml_dtypes, short)
    names = {number: name(number) for number in range(64)}
    return {number: np.dtype(known[text.decode()]) for number, text in names.items()
            if text is not None and text.decode() in known}


def _memory(array, flags):
    """The array's elements, in the library's memory."""
    dims, dtype = array.dims[:array.rank], _dtypes()[array.dtype]
    if array.byte_size == 0:
        return np.empty(dims, dtype)
    return np.frombuffer(_view(array.data, array.byte_size, flags), dtype).reshape(dims)


class _Buffer:
    """An operand or a result of a buffer_callback, in the library's memory: the protocols of
    jax.experimental.buffer_callback.Buffer on cpu. It is no longer there after the call."""

    def __init__(self, memory, writeable):
        self._memory = memory
        self.writeable = writeable
        self.shape, self.dtype, self.ndim = memory.shape, memory.dtype, memory.ndim

    def __array__(self, dtype=None, copy=None):
        array = self._memory if dtype is None else self._memory.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __dlpack__(self, **options):
        return self._memory.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._memory.__dlpack_device__()


class _Context:
    """jax.experimental.buffer_callback.ExecutionContext."""

    @property
    def stage(self):
        from jax.experimental import buffer_callback

        return buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self):
        import jax

        raise jax.errors.JaxRuntimeError('UNIMPLEMENTED: Kiln calls Python with buffers of the host: '
                                         'there is no stream')


def _run(call):
    from jax._src import config

    text = ctypes.string_at(call.backend_config, call.backend_config_length).decode()
    number, *marks = text.split(' ')
    function = _callables.get(int(number))
    if function is None:
        raise RuntimeError(f'the callable {number} of the program is not of this process')
    operands = [_memory(call.operands[i][0], _READ) for i in range(call.operand_count)]
    places = [_memory(call.results[i][0], _WRITE) for i in range(call.result_count)]
    with config.enable_x64('x64' in marks):
        if 'buffers' in marks:
            function(_Context(), *(_Buffer(operand, False) for operand in operands),
                     *(_Buffer(place, True) for place in places))
            return
        # Copies, since callers may keep them.
        operands = [operand.copy() for operand in operands]
        # A token has no value.
        results = function(None, *operands)[1:] if 'token' in marks else function(*operands)
    if len(results) != call.result_count:
        raise RuntimeError(f'{len(results)} results of a callback that must have '
                           f'{call.result_count}')
    for place, result in zip(places, results):
        np.copyto(place, result, casting='no')


@_Function
def _called(call, error):
    """The plugin's function. No exception leaves it."""
    try:
        _run(call[0])
        return 1
    except BaseException:  # pylint: disable=broad-exception-caught
        text = ('error in a Python callback: ' + traceback.format_exc()).encode()
        error[0] = _create_error()(_INTERNAL, text, len(text))
        return 0


@functools.cache
def _library():
    """The plugin, which JAX has loaded; names are found in libkiln.so, too."""
    from jax_plugins import kiln

    return ctypes.CDLL(kiln.library_path())


@functools.cache
def _create_error():
    create = _library().kiln_error_create
    create.restype = ctypes.c_void_p
    create.argtypes = (ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t)
    return create


@functools.cache
def _open():
    """Lets programs call into Python, until the interpreter ends."""
    library = _library()
    set_function = library.KilnPjrtSetPythonCallback
    set_function.restype, set_function.argtypes = None, (ctypes.c_void_p,)
    _create_error()
    _dtypes()
    set_function(ctypes.cast(_called, ctypes.c_void_p))
    process = os.getpid()

    def close():
        if os.getpid() != process:
            return
        import jax

        # JAX waits for effects, too, but later. It is the one to tell of failures.
        with contextlib.suppress(Exception):
            jax.effects_barrier()
        set_function(None)

    atexit.register(close)


def _custom_call_of(results):
    """The operation that has just been made: the last one."""
    from jax._src.lib.mlir import ir

    if results:
        return results[0].owner
    operations = ir.InsertionPoint.current.block.operations
    return operations[len(operations) - 1].operation


def _emit(original, ctx, callback, token, *args, **kwargs):
    """emit_python_callback() for a program for Kiln."""
    _open()
    results, token_out, function = original(_for_cpu(ctx), callback, token, *args, **kwargs)
    _direct(_custom_call_of([token_out] if token_out is not None else list(results)), function,
            ['token'] * bool(token))
    return results, token_out, function


def lower_buffer_callback(original, ctx, *args, **params):
    """The rule of buffer_callback for a program for Kiln, by the one that JAX has."""
    _open()
    results = original(_for_cpu(ctx), *args, **params)
    _direct(_custom_call_of(list(results)), ctx.module_context.host_callbacks[-1], ['buffers'])
    return results


def _for_cpu(ctx):
    return ctx.replace(module_context=ctx.module_context.replace(platforms=('cpu',), backend=None))


def _direct(call, function, marks):
    """Makes the custom call for cpu one that calls the function by Kiln's target."""
    from jax._src import config
    from jax._src.lib.mlir import ir

    attributes = call.attributes
    if ('call_target_name' not in attributes or
            ir.StringAttr(attributes['call_target_name']).value not in _CPU_TARGETS):
        raise NotImplementedError(f'callbacks on Kiln: this version of JAX lowers them in '
                                  f'another way than known to the plugin: {call}')
    number = next(_numbers)
    _callables[number] = function
    attributes['call_target_name'] = ir.StringAttr.get(TARGET)
    # What holds for the thread that traces the program is not known to the one that calls back.
    marks = marks + ['x64'] * bool(config.enable_x64.value)
    attributes['backend_config'] = ir.StringAttr.get(' '.join([str(number), *marks]))
    if 'mhlo.backend_config' in attributes:
        del attributes['mhlo.backend_config']


def install(platforms):
    """Makes JAX lower callbacks in programs for the platforms."""
    from jax._src import callback as jax_callback
    from jax.interpreters import mlir

    original = jax_callback.emit_python_callback

    @functools.wraps(original)
    def emit_python_callback(ctx, *args, **kwargs):
        named = ctx.module_context.platforms
        if len(named) != 1 or named[0] not in platforms:
            return original(ctx, *args, **kwargs)
        return _emit(original, ctx, *args, **kwargs)

    jax_callback.emit_python_callback = emit_python_callback
    mlir.emit_python_callback = emit_python_callback
    _forget_failures()


def _forget_failures():
    """Makes JAX raise the failure of an effect once, where the next ordered effect or a barrier
    meets it. It would keep the token of the failed execution, and so fail ever after."""
    from jax._src import dispatch

    tokens = dispatch.RuntimeTokenSet
    get_token_input, block_until_ready = tokens.get_token_input, tokens.block_until_ready

    @functools.wraps(get_token_input)
    def get_once(self, effect, devices):
        try:
            return get_token_input(self, effect, devices)
        except Exception:
            self.current_tokens.pop(effect, None)
            raise

    @functools.wraps(block_until_ready)
    def block_once(self):
        try:
            block_until_ready(self)
        finally:
            self.clear()

    tokens.get_token_input, tokens.block_until_ready = get_once, block_once
