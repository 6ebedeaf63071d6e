"""Kiln as a platform of JAX: `JAX_PLATFORMS=kiln,cpu`, or jax.devices('kiln').

JAX imports every module of the namespace package `jax_plugins` and calls its initialize().
"""

import dataclasses
import os
import pathlib

PLATFORM = 'kiln'
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
    from jax._src import xla_bridge

    from . import ffi

    # Below the priority of cpu: Kiln is the default platform only where JAX_PLATFORMS says so. A
    # client that cannot be made must not break programs that do not ask for it.
    path = library_path()
    xla_bridge.register_plugin(PLATFORM, priority=-1, library_path=path)
    factories = getattr(xla_bridge, '_backend_factories', None)
    if factories and PLATFORM in factories:
        factories[PLATFORM] = dataclasses.replace(factories[PLATFORM], fail_quietly=True)
    _register_lowerings()
    _allow_donation()
    ffi.install(PLATFORM, path)


def _register_lowerings():
    """Gives Kiln the lowering rules that JAX has for cpu: the library knows their custom calls."""
    from jax._src.interpreters import mlir

    rules = mlir._platform_specific_lowerings
    for primitive, rule in list(rules['cpu'].items()):
        if primitive.name not in _UNSUPPORTED:
            rules[PLATFORM].setdefault(primitive, rule)


# Their rules for cpu need calls back into Python, which the plugin does not have.
_UNSUPPORTED = frozenset({'debug_callback', 'debug_print', 'pure_callback', 'io_callback'})


def _allow_donation():
    """Without this JAX ignores donate_argnums, with a warning."""
    from jax._src.interpreters import mlir

    platforms = mlir._platforms_with_donation
    if PLATFORM not in platforms:
        platforms.append(PLATFORM)
