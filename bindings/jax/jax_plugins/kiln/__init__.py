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

    from . import dlpack, ffi

    _register(PLATFORM, None)
    ffi.install(PLATFORM, library_path())
    dlpack.enable(PLATFORM)
    if GPU_PLATFORM in (jax.config.jax_platforms or '').split(','):
        _register(GPU_PLATFORM, {'kiln_device': 'gpu'})


def _register(platform, options):
    from jax._src import xla_bridge

    # Below the priority of cpu: Kiln is the default platform only where JAX_PLATFORMS says so. A
    # client that cannot be made must not break programs that do not ask for it.
    xla_bridge.register_plugin(platform, priority=-1, library_path=library_path(), options=options)
    factories = getattr(xla_bridge, '_backend_factories', None)
    if factories and platform in factories:
        factories[platform] = dataclasses.replace(factories[platform], fail_quietly=True)
    _register_lowerings(platform)
    _allow_donation(platform)


def _register_lowerings(platform):
    """Gives Kiln the lowering rules that JAX has for cpu: the library knows their custom calls."""
    from jax._src.interpreters import mlir

    rules = mlir._platform_specific_lowerings
    for primitive, rule in list(rules['cpu'].items()):
        if primitive.name not in _UNSUPPORTED:
            rules[platform].setdefault(primitive, rule)


# Their rules for cpu need calls back into Python, which the plugin does not have.
_UNSUPPORTED = frozenset({'debug_callback', 'debug_print', 'pure_callback', 'io_callback'})


def _allow_donation(platform):
    """Without this JAX ignores donate_argnums, with a warning."""
    from jax._src.interpreters import mlir

    platforms = mlir._platforms_with_donation
    if platform not in platforms:
        platforms.append(platform)
