"""What JAX does by platform, and does not know for Kiln: lowering rules, marks of donation, and
programs that are written or exported for cpu."""

import dataclasses

# The rules for cpu of sparse products make a custom call that the library does not have; that of
# products refuses algorithms, all of which Kiln fulfils. The common rules, where there are any, serve.
_NOT_AS_ON_CPU = frozenset({'bcsr_dot_general', 'csr_spmm', 'csr_spmv', 'dot_general'})


class _Rules(dict):
    """Kiln's rules by primitive: its own ones, and those of cpu, also of modules that are imported
    later, such as jax.experimental.sparse."""

    def __init__(self, own, cpu):
        super().__init__(own)
        self.cpu = cpu

    def __contains__(self, primitive):
        return super().__contains__(primitive) or (primitive.name not in _NOT_AS_ON_CPU and
                                                   primitive in self.cpu)

    def __missing__(self, primitive):
        if primitive in self:
            return self.cpu[primitive]
        raise KeyError(primitive)

    def get(self, primitive, default=None):
        return self[primitive] if primitive in self else default


def register(platform):
    """Gives Kiln the lowering rules that JAX has for cpu: the library knows their custom calls."""
    from jax._src import buffer_callback
    from jax._src.interpreters import mlir

    from . import callbacks

    rules = mlir._platform_specific_lowerings
    rules[platform] = _Rules(rules[platform], rules['cpu'])
    # Without this JAX ignores donate_argnums, with a warning.
    platforms = mlir._platforms_with_donation
    if platform not in platforms:
        platforms.append(platform)
    _take_what_is_for_cpu(platform)
    _wrap(platform, buffer_callback.buffer_callback_p, callbacks.lower_buffer_callback)


def _take_what_is_for_cpu(platform):
    """Kiln takes the branch for cpu of lax.platform_dependent() where there is neither one of its
    own nor a default, and runs what was exported for cpu and not for Kiln."""
    from jax._src.export import _export
    from jax._src.lax.control_flow import conditionals

    def with_kiln(branches):
        names = [name for branch in branches for name in branch or (None,)]
        if 'cpu' not in names or platform in names or None in names:
            return branches
        return tuple((*branch, platform) if 'cpu' in (branch or ()) else branch
                     for branch in branches)

    def platform_index(rule, ctx, *, platforms):
        return rule(ctx, platforms=with_kiln(platforms))

    def cond(rule, ctx, *args, **params):
        if params.get('branches_platforms') is not None:
            params['branches_platforms'] = with_kiln(params['branches_platforms'])
        return rule(ctx, *args, **params)

    def call_exported(rule, ctx, *args, exported):
        if platform not in exported.platforms and tuple(ctx.module_context.platforms) == (platform,):
            platforms = (platform if name == 'cpu' else name for name in exported.platforms)
            exported = dataclasses.replace(exported, platforms=tuple(platforms))
        return rule(ctx, *args, exported=exported)

    _wrap(platform, conditionals.platform_index_p, platform_index)
    _wrap(platform, conditionals.cond_p, cond)
    _wrap(platform, _export.call_exported_p, call_exported)


def _wrap(platform, primitive, wrapper):
    """Makes `wrapper`, which is given the common rule first, the primitive's rule for Kiln."""
    from jax._src.interpreters import mlir

    common = mlir._lowerings[primitive]

    def rule(ctx, *args, **params):
        return wrapper(common.rule, ctx, *args, **params)

    mlir._platform_specific_lowerings[platform][primitive] = dataclasses.replace(common, rule=rule)
