"""Programs that are written or exported for cpu, on Kiln. The environment is that of
plugin_test.py."""

import importlib.util
import sys
import unittest

try:
    import jax
except ImportError as error:
    print(f'skipped: {error}')
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax import export, lax

HAS_FLATBUFFERS = importlib.util.find_spec('flatbuffers') is not None
X = np.linspace(1, 2, 6, dtype=np.float32).reshape(2, 3)


class PlatformDependentTest(unittest.TestCase):
    def branch(self, **branches):
        def function(x):
            return lax.platform_dependent(x, **{name: lambda v, n=number: v * 0 + n
                                                for name, number in branches.items()})
        return float(jax.jit(function)(np.float32(1)))

    def test_the_branch_of_cpu_stands_in(self):
        self.assertEqual(self.branch(cpu=1), 1)
        self.assertEqual(self.branch(tpu=2, cpu=1), 1)

    def test_own_branches_come_first(self):
        self.assertEqual(self.branch(cpu=1, kiln=3), 3)
        self.assertEqual(self.branch(cpu=1, default=4, kiln=3), 3)

    def test_the_default_is_for_all_others(self):
        self.assertEqual(self.branch(tpu=1, default=4), 4)
        self.assertEqual(self.branch(cpu=1, default=4), 4)

    def test_without_any(self):
        with self.assertRaisesRegex(NotImplementedError, 'not found for platform kiln'):
            self.branch(tpu=2)

    def test_transformations(self):
        def function(x):
            return lax.platform_dependent(x, cpu=lambda v: v ** 2, tpu=lambda v: v)

        np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(function)))(X[0]), 2 * X[0], rtol=1e-6)
        on_cpu = jax.jit(function)(jax.device_put(X, jax.devices('cpu')[0]))
        np.testing.assert_allclose(on_cpu, X ** 2, rtol=1e-6)

    def test_other_conditions_stay(self):
        f = jax.jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x))
        for i, expected in enumerate((np.sin(X), np.cos(X), X * 2)):
            np.testing.assert_allclose(f(i, X), expected, rtol=1e-5)


class ExportTest(unittest.TestCase):
    def called(self, function, platforms, *args):
        made = export.export(jax.jit(function), platforms=platforms)(*args)
        self.assertEqual(made.platforms, tuple(platforms))
        if HAS_FLATBUFFERS:  # which JAX serialises with
            made = export.deserialize(made.serialize())
        return jax.jit(made.call)(*args)

    def test_exports_for_cpu(self):
        for platforms in (['cpu'], ['tpu', 'cpu'], ['cpu', 'kiln'], ['kiln']):
            y = self.called(lambda x: jnp.tanh(x) @ x.T, platforms, X)
            self.assertEqual(next(iter(y.devices())).platform, 'kiln')
            np.testing.assert_allclose(y, np.tanh(X) @ X.T, rtol=1e-5)

    def test_linear_algebra(self):
        a = X.T @ X + 3 * np.eye(3, dtype=np.float32)
        np.testing.assert_allclose(self.called(jnp.linalg.eigvalsh, ['cpu'], a),
                                   np.linalg.eigvalsh(a), rtol=1e-4)

    def test_the_platform_inside(self):
        def function(x):
            return lax.platform_dependent(x, cpu=lambda v: v + 1, tpu=lambda v: v + 2,
                                          default=lambda v: v + 3)

        np.testing.assert_allclose(self.called(function, ['tpu', 'cpu'], X), X + 1)
        np.testing.assert_allclose(self.called(function, ['cpu', 'kiln'], X), X + 3)

    def test_exports_for_others_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'was exported for platforms'):
            self.called(jnp.sin, ['tpu'], X)

    def test_exports_for_kiln_are_refused_by_cpu(self):
        made = export.export(jax.jit(jnp.sin), platforms=['kiln'])(X)
        with self.assertRaisesRegex(ValueError, 'was exported for platforms'):
            jax.jit(made.call)(jax.device_put(X, jax.devices('cpu')[0]))


class NameTest(unittest.TestCase):
    """What the package uses of JAX's inside. Where JAX has changed it, jax_plugins/kiln must be
    changed, too."""

    def test_rules(self):
        from jax._src.export import _export
        from jax._src.interpreters import mlir
        from jax._src.lax.control_flow import conditionals

        for primitive in (conditionals.platform_index_p, conditionals.cond_p,
                          _export.call_exported_p):
            self.assertIn(primitive, mlir._lowerings)
            self.assertIn(primitive, mlir._platform_specific_lowerings['kiln'])
        self.assertIn('platforms', _export.Exported.__dataclass_fields__)
        jaxpr = jax.make_jaxpr(lambda x: lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos))(1.0)
        params = {e.primitive.name: e.params for e in jaxpr.eqns}
        self.assertEqual(params['platform_index']['platforms'], (('cpu',), ('tpu',)))
        self.assertEqual(params['cond']['branches_platforms'], (('cpu',), ('tpu',)))


if __name__ == '__main__':
    unittest.main()
