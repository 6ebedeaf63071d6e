"""Derivatives and training: `Graph.gradient` and its like, and kiln.train, whose numbers the C tests
hold against PyTorch's and Optax's.
"""

import unittest

import numpy

import kiln
from kiln import train

X = numpy.array([0.3, -1.2, 2.0])


class GradientTest(unittest.TestCase):
    def setUp(self):
        self.context = kiln.Context()
        self.addCleanup(self.context.close)
        self.graph = self.context.graph('g')
        self.x = self.graph.parameter('f64', [3], 'x')

    def run_graph(self, *results):
        self.graph.set_results(*results)
        return [numpy.asarray(r) for r in self.graph.compile()(X)]

    def test_gradient_and_its_gradient(self):
        cubes = (self.x * self.x * self.x).sum()
        slope, = self.graph.gradient(cubes, [self.x])
        bend, = self.graph.gradient(slope.sum(), [self.x], recompute_loops=True)
        for got, expected in zip(self.run_graph(slope, bend), (3 * X * X, 6 * X)):
            numpy.testing.assert_allclose(got, expected, 1e-14)

    def test_products(self):
        weights = self.graph.constant(numpy.array([1.0, 2.0, 3.0]))
        square = self.x * self.x
        by_reverse, = self.graph.vjp([square, self.x], [weights, weights], [self.x])
        by_forward, = self.graph.jvp([square], [self.x], [weights])
        by_forward_of_both, = self.graph.jvp([square + self.x], [self.x], [weights])
        a, b, c = self.run_graph(by_reverse, by_forward, by_forward_of_both)
        w = numpy.array([1.0, 2.0, 3.0])
        numpy.testing.assert_allclose(a, w * (2 * X + 1), 1e-14)
        numpy.testing.assert_allclose(b, w * 2 * X, 1e-14)
        numpy.testing.assert_allclose(c, a, 1e-14)
        with self.assertRaisesRegex(ValueError, '1 values, but 2'):
            self.graph.vjp([square], [weights, weights], [self.x])

    def test_stop_gradient(self):
        slope, = self.graph.gradient((self.x * self.graph.stop_gradient(self.x)).sum(), [self.x])
        numpy.testing.assert_allclose(self.run_graph(slope)[0], X)

    def test_checkpoints_and_rules(self):
        squares = self.context.graph('squares')
        p = squares.parameter('f64', [3])
        squares.set_results(p * p)
        again = self.graph.call([self.x], squares)
        again.set_checkpoint()
        self.assertEqual(again.frontend_attribute('kiln.gradient'), 'checkpoint')
        backward = self.context.graph('backward')
        backward.parameter('f64', [3])
        backward.parameter('f64', [3])
        cotangent = backward.parameter('f64', [3])
        backward.set_results(cotangent * 100.0)
        squares.set_gradient(backward)
        ruled = self.graph.call([self.x], squares)
        squares.set_gradient(None)
        plain = self.graph.call([self.x], squares)
        slopes = [self.graph.gradient(y.sum(), [self.x])[0] for y in (again, ruled, plain)]
        for got, expected in zip(self.run_graph(*slopes), (2 * X, [100.0] * 3, 2 * X)):
            numpy.testing.assert_allclose(got, expected)

    def test_errors(self):
        with self.assertRaisesRegex(kiln.KilnError, 'scalar'):
            self.graph.gradient(self.x, [self.x])


class TrainTest(unittest.TestCase):
    def setUp(self):
        self.context = kiln.Context()
        self.addCleanup(self.context.close)

    def run_steps(self, build_initial, build_step, count):
        """Runs steps from the initial values; the last values."""
        initial, graph = self.context.graph('initial'), self.context.graph('step')
        values = build_initial(initial)
        initial.set_results(*values)
        arguments = train.parameters(graph, values)
        results = build_step(graph, arguments)
        self.assertEqual(len(results), len(arguments))
        graph.set_results(*results)
        run = graph.compile(aliases={i: i for i in range(len(results))})
        arrays = initial.compile()()
        for _ in range(count):
            arrays = run(*arrays)
        self.names = run.argument_names
        return [numpy.asarray(a) for a in arrays]

    def test_regression(self):
        """A line is found by each optimiser, with most of what there is around it."""
        xs = numpy.linspace(-1, 1, 32, dtype=numpy.float32)
        for kind, rate, settings in (('sgd', 0.1, {'momentum': 0.9}), ('adam', 0.1, {}),
                                     ('adamw', 0.1, {'weight_decay': 1e-4}),
                                     ('adagrad', 0.5, {}), ('rmsprop', 0.02, {'centered': True}),
                                     ('lion', 0.05, {}),
                                     ('adafactor', 0.3, {'clip_threshold': 1.0})):
            optimizer = train.Optimizer(kind, decayed=[True, False], **settings)

            def build_initial(graph):
                parameters = [train.initialize(graph, 'ones', 'f32', (), 'a'),
                              train.initialize(graph, 'zeros', 'f32', (), 'b')]
                return parameters + optimizer.state(parameters)

            def build_step(graph, values):
                a, b = values[:2]
                line = a * graph.constant(xs) + b
                loss = train.huber(line, graph.constant(3 * xs - 1))
                gradients = train.clip_by_norm(graph.gradient(loss, [a, b]), 10.0)
                rate_now = train.schedule(values[2], rate, 'cosine', steps=300, end=1e-4,
                                          warmup_steps=5)
                update = optimizer.update(rate_now, [a, b], gradients, values[2:])
                return update.parameters + update.state

            a, b, step = self.run_steps(build_initial, build_step, 300)[:3]
            self.assertEqual(self.names[:3], ['a', 'b', 'step'])
            self.assertEqual(step, 300)
            numpy.testing.assert_allclose([a, b], [3, -1], atol=0.02, err_msg=kind)

    def test_scaled_and_accumulated(self):
        scale = train.LossScale(initial=4, interval=2)
        optimizer = train.Optimizer('sgd', master_weights=True)

        def build_initial(graph):
            w = [train.initialize(graph, 'ones', 'f16', (2,), 'w')]
            return (w + optimizer.state(w) + scale.state(graph) + train.accumulator(w)
                    + [graph.convert(w[0], 'f32')])

        def build_step(graph, values):
            w, state, scaling, sums, average = (values[:1], values[1:3], values[3:5], values[5:7],
                                                values[7:])
            loss = train.squared_error(w[0], graph.constant([0, 0], 'f16'), 'sum')
            self.assertEqual(loss.shape.dtype, 'f32')
            gradients = graph.gradient(loss * scaling[0], w)
            unscaled = scale.unscale(scaling, gradients)
            sum_ = train.accumulate(2, unscaled.gradients, sums, unscaled.finite)
            update = optimizer.update(0.25, w, sum_.means, state, sum_.ready)
            averages = train.average(0.5, average, update.parameters)
            return update.parameters + update.state + unscaled.state + sum_.state + averages

        w, step, master, factor, steps, count, sums, average = self.run_steps(
            build_initial, build_step, 5)
        # Two updates of four steps halve w each; the fifth is in the accumulator.
        numpy.testing.assert_array_equal(w, [0.25, 0.25])
        numpy.testing.assert_array_equal(master, [0.25, 0.25])
        numpy.testing.assert_array_equal(sums, [0.5, 0.5])
        self.assertEqual((step, factor, steps, count), (2, 16, 1, 1))
        self.assertEqual(average.dtype, numpy.float32)

    def test_losses(self):
        logits = numpy.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])
        graph = self.context.graph('losses')
        x = graph.constant(logits)
        labels = graph.constant(numpy.array([2, -1], numpy.int32))
        graph.set_results(
            train.softmax_cross_entropy(x, labels), train.softmax_cross_entropy(x, labels, 0.1, 'none'),
            train.sigmoid_cross_entropy(x, graph.constant(numpy.ones((2, 3))), 'none'),
            train.norm([x, x]), train.clip_by_value([x], 1.0)[0])
        loss, smooth, sigmoid, norm, clipped = map(numpy.asarray, graph.compile()())
        logs = logits - numpy.log(numpy.exp(logits).sum(1, keepdims=True))
        numpy.testing.assert_allclose(loss, -logs[0, 2], 1e-12)
        numpy.testing.assert_allclose(smooth, [-0.9 * logs[0, 2] - 0.1 * logs[0].mean(), 0], 1e-12)
        numpy.testing.assert_allclose(sigmoid, numpy.log1p(numpy.exp(-logits)), 1e-12)
        numpy.testing.assert_allclose(norm, numpy.sqrt(2 * (logits ** 2).sum()), 1e-12)
        numpy.testing.assert_array_equal(clipped, logits.clip(-1, 1))

    def test_initializers(self):
        graph = self.context.graph('initial')
        made = [train.initialize(graph, kind, 'f32', (20, 30), 'w', seed=3)
                for kind in ('zeros', 'ones', 'uniform', 'normal', 'truncated_normal',
                             'glorot_uniform', 'glorot_normal', 'he_uniform', 'he_normal')]
        made.append(train.initialize(graph, 'orthogonal', 'f64', (20, 30), 'q', seed=3))
        made.append(train.initialize(graph, 'he_uniform', 'f32', (300, 2), in_axis=-1, out_axis=-2))
        self.assertEqual(made[-2].op_name, 'q')
        graph.set_results(*made)
        *others, orthogonal, turned = map(numpy.asarray, graph.compile()())
        for array, least, most in zip(others, (0, 1, .5, .8, .8, 0, 0, 0, 0),
                                      (0, 1, 1, 5, 2, 1, 1, 1, 1)):
            self.assertTrue(least <= abs(array).max() <= most)
        numpy.testing.assert_allclose(orthogonal @ orthogonal.T, numpy.eye(20), atol=1e-14)
        self.assertTrue(1.6 < abs(turned).max() < 3 ** 0.5)

    def test_errors(self):
        graph = self.context.graph('g')
        w = [train.initialize(graph, 'ones', 'f32', (2,), 'w')]
        with self.assertRaisesRegex(ValueError, "'adm' is none of sgd, adam"):
            train.Optimizer('adm')
        with self.assertRaisesRegex(TypeError, "'beta' is none of momentum"):
            train.Optimizer('adam', beta=1)
        with self.assertRaisesRegex(ValueError, '0 gradients of 1 parameters'):
            train.Optimizer('adam').update(1.0, w, [], [])
        with self.assertRaisesRegex(ValueError, 'no values'):
            train.Optimizer('adam').state([])
        with self.assertRaisesRegex(kiln.KilnError, 'the state has 0 values; expected 3'):
            train.Optimizer('adam').update(1.0, w, w, [])


if __name__ == '__main__':
    unittest.main()
