"""Kiln as a platform of JAX: `JAX_PLATFORMS=kiln,cpu`, or jax.devices('kiln'). Kiln's GPUs are the
platform `kiln_gpu`, which exists if JAX_PLATFORMS names it.

JAX imports every module of the namespace package `jax_plugins` and calls its initialize().
"""

import dataclasses
import os
import pathlib

PLATFORM = 'kiln'
GPU_PLATFORM = 'kiln_gpu'
_LIBRARY = 'libkiln_pjrt.so'


def library_path():
    """The plugin's library: the one that KILN_PJRT_LIBRARY names, or the one in this folder, or in
    a build tree above it."""
    named = os.environ.get('KILN_PJRT_LIBRARY')
    if named:
        return named
    folder = pathlib.Path(__file__).resolve().parent
    candidates = [folder / _LIBRARY]
    candidates += [above / 'build' / 'lib' / _LIBRARY for above in folder.parents]
    for candidate in candidates:
        if candidate.exists():
            return str(candidate)
    raise ImportError(f'{_LIBRARY} is neither in {folder} nor in a build tree above it; '
                      'KILN_PJRT_LIBRARY can name it')


def initialize():
    """Registers the platform. JAX calls it once, in every process."""
    import jax

    from . import cache, callbacks, dlpack, ffi, layouts

    named = (jax.config.jax_platforms or '').split(',')
    _register(PLATFORM, None)
    ffi.install(PLATFORM, library_path())
    dlpack.enable(PLATFORM)
    cache.install((PLATFORM, GPU_PLATFORM))
    layouts.install((PLATFORM, GPU_PLATFORM))
    if GPU_PLATFORM in named:
        _register(GPU_PLATFORM, {'kiln_device': 'gpu'})
    callbacks.install((PLATFORM, GPU_PLATFORM))
    # JAX itself gives the arguments of callbacks to a device of cpu, which it would lack with
    # JAX_PLATFORMS=kiln alone.
    if not {PLATFORM, GPU_PLATFORM}.isdisjoint(named) and 'cpu' not in named:
        jax.config.update('jax_platforms', ','.join([*named, 'cpu']))


def _register(platform, options):
    from jax._src import xla_bridge

    from . import lowerings

    # Below the priority of cpu: Kiln is the default platform only where JAX_PLATFORMS says so. A
    # client that cannot be made must not break programs that do not ask for it.
    xla_bridge.register_plugin(platform, priority=-1, library_path=library_path(), options=options)
    factories = getattr(xla_bridge, '_backend_factories', None)
    if factories and platform in factories:
        factories[platform] = dataclasses.replace(factories[platform], fail_quietly=True)
    lowerings.register(platform)
