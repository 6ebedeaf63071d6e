"""Networks for images with frozen weights, and single layers of such: in NumPy, for all libraries.

Images have the order of images, features, rows and columns, filters that of outputs, inputs of a group,
rows and columns, matrices that of outputs and inputs, as in ONNX and PyTorch. A filter of n x n is
padded by (n - 1) / 2 on all sides, so that of steps of 1 the image keeps its size. Normalisation of
batches is in the weights, as each library has it there once it is frozen.
"""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

CLASSES = 1000


class Layer(NamedTuple):
    """A layer of the values with these numbers, of which 0 is the image.

    Attributes:
        op: convolution, add, max_pool (3 x 3 every 2nd, padded by 1), mean (of rows and columns) or
            dense: a method of each library's networks
        activation: of the result: relu, relu6 or none
    """

    op: str
    inputs: Tuple[int, ...]
    weights: Optional[np.ndarray] = None
    offsets: Optional[np.ndarray] = None
    stride: int = 1
    groups: int = 1
    activation: str = ''

    def padding(self):
        return (self.weights.shape[2] - 1) // 2


class Network:
    """Layers in order; the result is the last one's. Functions add one, and return its number."""

    def __init__(self, batch, features, size):
        self.dims = batch, features, size, size
        self.layers: List[Layer] = []
        self.multiplications = 0
        self.arrays_bytes = 4 * int(np.prod(self.dims))  # of the image, and all results
        self._shapes = [(features, size)]
        self._random = np.random.default_rng(1)

    def result_dims(self):
        features, size = self._shapes[-1]
        flat = self.layers[-1].op in ('mean', 'dense')
        return (self.dims[0], features) + (() if flat else (size, size))

    def image(self):
        return np.random.default_rng(2).normal(size=self.dims).astype(np.float32)

    def _add(self, layer, features, size, sums=0):
        self.layers.append(layer)
        self._shapes.append((features, size))
        elements = self.dims[0] * features * size * size
        self.multiplications += elements * sums
        self.arrays_bytes += 4 * elements
        return len(self.layers)

    def _weights(self, *dims):
        """Weights that keep the variance of what they multiply, behind an activation, and offsets."""
        inputs = int(np.prod(dims[1:]))
        return ((self._random.normal(size=dims) * (2 / inputs) ** 0.5).astype(np.float32),
                self._random.normal(size=dims[0]).astype(np.float32) / 8)

    def convolution(self, x, outputs, window, stride=1, groups=1, activation=''):
        features, size = self._shapes[x]
        weights = self._weights(outputs, features // groups, window, window)
        layer = Layer('convolution', (x,), *weights, stride, groups, activation)
        return self._add(layer, outputs, (size + stride - 1) // stride, weights[0][0].size)

    def add(self, x, y, activation=''):
        return self._add(Layer('add', (x, y), activation=activation), *self._shapes[x])

    def max_pool(self, x):
        features, size = self._shapes[x]
        return self._add(Layer('max_pool', (x,)), features, (size + 1) // 2)

    def mean(self, x):
        return self._add(Layer('mean', (x,)), self._shapes[x][0], 1)

    def dense(self, x, outputs):
        features = self._shapes[x][0]
        return self._add(Layer('dense', (x,), *self._weights(outputs, features)), outputs, 1, features)


def resnet50(batch=1):
    """He et al. 2015, with the steps in the 3 x 3 convolutions, as PyTorch has it."""
    net = Network(batch, 3, 224)
    x = net.max_pool(net.convolution(0, 64, 7, 2, activation='relu'))
    for part, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if part and not block else 1
            y = net.convolution(x, width, 1, activation='relu')
            y = net.convolution(y, width, 3, stride, activation='relu')
            y = net.convolution(y, 4 * width, 1)
            x = net.add(y, x if block else net.convolution(x, 4 * width, 1, stride), 'relu')
    net.dense(net.mean(x), CLASSES)
    return net


def mobilenet_v1(batch=1):
    """Howard et al. 2017."""
    net = Network(batch, 3, 224)
    x, width = net.convolution(0, 32, 3, 2, activation='relu6'), 32
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
                            (1024, 2), (1024, 1)):
        x = net.convolution(x, width, 3, stride, width, 'relu6')
        x, width = net.convolution(x, outputs, 1, activation='relu6'), outputs
    net.dense(net.mean(x), CLASSES)
    return net


def mobilenet_v2(batch=1):
    """Sandler et al. 2018."""
    net = Network(batch, 3, 224)
    x, width = net.convolution(0, 32, 3, 2, activation='relu6'), 32
    for growth, outputs, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                           (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, inner = 1 if block else first, width * growth
            y = net.convolution(x, inner, 1, activation='relu6') if growth > 1 else x
            y = net.convolution(y, inner, 3, stride, inner, 'relu6')
            y = net.convolution(y, outputs, 1)
            x, width = net.add(y, x) if block else y, outputs
    net.dense(net.mean(net.convolution(x, 1280, 1, activation='relu6')), CLASSES)
    return net


def _layer(batch, size, features, outputs, window, stride=1, groups=1):
    def made():
        net = Network(batch, features, size)
        net.convolution(0, outputs, window, stride, groups, 'relu')
        return net
    return made


NETWORKS: Dict[str, Callable[[], Network]] = {
    'ResNet-50': resnet50, 'MobileNet-v1': mobilenet_v1, 'MobileNet-v2': mobilenet_v2}

# Of ResNet-50, VGG and MobileNet.
LAYERS: Dict[str, Callable[[], Network]] = {
    **{f'{batch} of {size} x {size} x {features}, 3 x 3': _layer(batch, size, features, features, 3)
       for size, features in ((224, 64), (56, 64), (28, 128), (14, 256), (7, 512)) for batch in (1, 8)},
    **{f'{size} x {size} x {features}, depthwise' + ', every 2nd' * (stride - 1):
       _layer(1, size, features, features, 3, stride, features)
       for size, features, stride in ((112, 32, 1), (112, 64, 2), (56, 128, 1), (56, 128, 2),
                                      (28, 256, 1), (28, 256, 2), (14, 512, 1), (14, 512, 2),
                                      (7, 1024, 1))},
    '28 x 28 x 256, 3 x 3, 32 groups': _layer(1, 28, 256, 256, 3, 1, 32),
}

CASES = NETWORKS | LAYERS
