"""Layouts under JAX 0.8, whose jaxlib does not ask plugins for those of a program.

It takes all arguments and results for row-major, and refuses others. The names below are private to
that version."""


def install(platforms):
    """Programs of the platforms have the layouts that their user asks for, and row-major ones."""
    import jax

    if jax.__version_info__ >= (0, 9):
        return
    from jax._src.interpreters import pxla
    from jax._src.layout import Layout

    theirs = pxla._get_layouts_from_executable

    def get_layouts(executable, arguments, results, effect_count):
        # Programs for topologies have no devices, and keep JAX's answer.
        devices = getattr(executable, 'local_devices', list)()
        if not devices or devices[0].platform not in platforms:
            return theirs(executable, arguments, results, effect_count)
        row_major = theirs(executable, (None,) * len(arguments), (None,) * len(results),
                           effect_count)
        return tuple([complete(*layouts) for layouts in zip(*lists)]
                     for lists in zip((arguments, results), row_major))

    def complete(asked, default):
        # Arrays are copied unless their layouts are equal in all, their tiles included.
        if not isinstance(asked, Layout) or default is None:
            return default
        return default.update(major_to_minor=asked.major_to_minor)

    pxla._get_layouts_from_executable = get_layouts
