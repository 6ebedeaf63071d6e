"""Networks for images on XLA's CPU, by JAX: weights are constants of the program."""

import os

import jax
import jax.numpy as jnp
import numpy as np


class Layers:
    """The layers, of images with features last."""

    def activated(self, x, kind):
        """A layer's result."""
        if not kind:
            return x
        return jnp.clip(x, 0, 6) if kind == 'relu6' else jax.nn.relu(x)

    def convolution(self, layer, x):
        padding = [(layer.padding(),) * 2] * 2
        x = jax.lax.conv_general_dilated(x, layer.weights.transpose(2, 3, 1, 0), (layer.stride,) * 2,
                                         padding, dimension_numbers=('NHWC', 'HWIO', 'NHWC'),
                                         feature_group_count=layer.groups)
        return x + layer.offsets

    def add(self, _, x, y):
        return x + y

    def max_pool(self, _, x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1),
                                     ((0, 0), (1, 1), (1, 1), (0, 0)))

    def mean(self, _, x):
        return x.mean((1, 2))

    def dense(self, layer, x):
        return x @ layer.weights.T + layer.offsets


class Run:
    """A network: `call` begins a run."""

    def __init__(self, network):
        def run(image):
            layers, values = Layers(), [image]
            for layer in network.layers:
                value = getattr(layers, layer.op)(layer, *(values[i] for i in layer.inputs))
                values.append(layers.activated(value, layer.activation))
            return values[-1]

        self._image = jnp.array(network.image().transpose(0, 2, 3, 1))
        self._run = jax.jit(run).lower(self._image).compile()
        self._result = None

    def call(self):
        self._result = self._run(self._image)

    def wait(self):
        self._result.block_until_ready()

    def result(self):
        self.call()
        result = np.asarray(self._result)
        return result if result.ndim < 4 else result.transpose(0, 3, 1, 2)


class Xla:
    """Makes networks on XLA's CPU, which has as many threads as there are processors."""

    version = jax.__version__

    def __init__(self, threads):
        if threads == 1:
            os.environ['XLA_FLAGS'] = ('--xla_cpu_multi_thread_eigen=false '
                                       'intra_op_parallelism_threads=1')

    def network(self, network):
        return Run(network)
