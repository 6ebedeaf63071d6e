"""Networks for images on Kiln, with their features last or first."""

import kiln
import numpy as np

from hlo.on_kiln import Program

# Where a dimension of a PyTorch's image and filter is in Kiln's.
LAST, FIRST = (0, 2, 3, 1), (0, 1, 2, 3)


class Layers:
    """The layers of a graph."""

    def __init__(self, graph, order):
        self._graph, self._order = graph, order
        self._features, self._places = order.index(1), [order.index(2), order.index(3)]
        self._larger = graph.context.graph('larger')
        self._larger.set_results(self._larger.maximum(*(self._larger.parameter('f32')
                                                        for _ in range(2))))

    def _constant(self, array):
        return self._graph.constant(np.ascontiguousarray(array))

    def _per_feature(self, offsets, x):
        return self._graph.broadcast_like(self._constant(offsets), x, [self._features])

    def _windows(self, window, stride, padding):
        """Sizes, steps and padding, of all dimensions."""
        made = [[1] * 4, [1] * 4, [0] * 4]
        for at in self._places:
            for values, value in zip(made, (window, stride, padding)):
                values[at] = value
        return made

    def activated(self, x, kind):
        """A layer's result."""
        if not kind:
            return x
        zero = self._graph.scalar('f32', 0)
        if kind == 'relu6':
            return kiln.nn.clip(x, zero, self._graph.scalar('f32', 6))
        return kiln.nn.maximum(x, zero)

    def convolution(self, layer, x):
        first = self._order == FIRST
        weights = layer.weights if first else layer.weights.transpose(2, 3, 1, 0)
        window, padding = layer.weights.shape[2], [layer.padding()] * 2
        x = self._graph.convolution(
            x, self._constant(weights), [window] * 2, 'bf01_oi01->bf01' if first else 'b01f_01io->b01f',
            [layer.stride] * 2, padding_low=padding, padding_high=padding,
            feature_group_count=layer.groups)
        return x + self._per_feature(layer.offsets, x)

    def add(self, _, x, y):
        return x + y

    def max_pool(self, _, x):
        window, stride, padding = self._windows(3, 2, 1)
        return self._graph.reduce_window([x], [self._graph.scalar('f32', float('-inf'))], window,
                                         self._larger, stride, padding_low=padding,
                                         padding_high=padding)

    def mean(self, _, x):
        return kiln.nn.mean(x, self._places)

    def dense(self, layer, x):
        product = self._graph.dot(x, self._constant(layer.weights), [], [], [1], [1])
        return kiln.nn.add(product, self._constant(layer.offsets))


class Run(Program):
    """A network: `call` runs it."""

    def __init__(self, context, network, order):
        graph = context.graph('network')
        layers = Layers(graph, order)
        values = [graph.parameter('f32', [network.dims[at] for at in order])]
        for layer in network.layers:
            value = getattr(layers, layer.op)(layer, *(values[i] for i in layer.inputs))
            values.append(layers.activated(value, layer.activation))
        graph.set_results(values[-1])
        self._order = order
        super().__init__(graph.compile(), [np.ascontiguousarray(network.image().transpose(order))])

    def result(self):
        result, = self.results()
        return result if result.ndim < 4 else result.transpose(np.argsort(self._order))


class Kiln:
    """Makes networks on Kiln."""

    version = kiln.__version__

    def __init__(self, threads, order=LAST):
        self._context, self._order = kiln.Context(threads=threads, gpu='OFF', cache_bytes=-1), order

    def network(self, network):
        return Run(self._context, network, self._order)


class KilnFirst(Kiln):
    """The same with the features first."""

    def __init__(self, threads):
        super().__init__(threads, FIRST)
