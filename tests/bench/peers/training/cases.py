"""The trainings: their sizes, first parameters and batches, in NumPy for all libraries.

A training takes the same batch at each step. Matrices are those of `x @ w`, filters have the order of
rows, columns, inputs and outputs, and images that of images, rows, columns and features.
"""

from typing import Callable, Dict, NamedTuple

import numpy as np

Arrays = Dict[str, np.ndarray]

PIXELS, SIDE, CLASSES = 784, 28, 10
PERCEPTRON = (PIXELS, 512, 256, CLASSES)
# The convolutional net of docs/examples/train_digits.c: filters that halve an image, with their number.
FILTERS = ((5, 1, 16), (3, 16, 32))
FLAT = 7 * 7 * 32
# The transformer of docs/examples/character_transformer.c, larger.
LAYERS, WIDTH, HEADS, LENGTH, CHARACTERS = 4, 256, 4, 128, 256
EPSILON = 1e-5  # of RMS norm


class Case(NamedTuple):
    """One training.

    Attributes:
        model: the name of a function of each library's module
        batch: the number of images or texts
        optimizer: sgd, adam or adamw, with the defaults of PyTorch
        rate: of learning
        clip: the largest norm of all gradients together; 0: any
        multiplications: of a step's products, forward and backward
    """

    model: str
    batch: int
    optimizer: str
    rate: float
    clip: float
    parameters: Callable[[], Arrays]
    multiplications: int


class _Draws:
    """Random parameters of a variance by the number of inputs."""

    def __init__(self):
        self.random = np.random.default_rng(1)

    def matrix(self, *dims):
        inputs = int(np.prod(dims[:-1]))
        return (self.random.normal(size=dims) * inputs ** -0.5).astype(np.float32)


def _dense(draws, sizes) -> Arrays:
    made = {}
    for i, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
        made[f'w{i}'] = draws.matrix(inputs, outputs)
        made[f'b{i}'] = np.zeros(outputs, np.float32)
    return made


def regression() -> Arrays:
    return {'w0': np.zeros((PIXELS, CLASSES), np.float32), 'b0': np.zeros(CLASSES, np.float32)}


def perceptron() -> Arrays:
    return _dense(_Draws(), PERCEPTRON)


def convolutional() -> Arrays:
    draws, made = _Draws(), {}
    for i, (side, inputs, outputs) in enumerate(FILTERS):
        made[f'filter{i}'] = draws.matrix(side, side, inputs, outputs)
        made[f'offset{i}'] = np.zeros(outputs, np.float32)
    return made | _dense(draws, (FLAT, CLASSES))


def transformer() -> Arrays:
    draws = _Draws()
    ones = lambda: np.ones(WIDTH, np.float32)  # noqa: E731
    made = {'embedding': draws.matrix(CHARACTERS, WIDTH), 'positions': draws.matrix(LENGTH, WIDTH)}
    for i in range(LAYERS):
        made |= {f'norm1.{i}': ones(), f'queries{i}': draws.matrix(WIDTH, 3 * WIDTH),
                 f'attended{i}': draws.matrix(WIDTH, WIDTH),
                 f'norm2.{i}': ones(), f'inner{i}': draws.matrix(WIDTH, 4 * WIDTH),
                 f'outer{i}': draws.matrix(4 * WIDTH, WIDTH)}
    return made | {'norm': ones(), 'output': draws.matrix(WIDTH, CHARACTERS)}


def batch_of(case: Case) -> Arrays:
    """The arguments of a step beside the state: s32 labels, and images, or texts and what follows."""
    random = np.random.default_rng(2)
    if case.model == 'transformer':
        text = random.integers(0, CHARACTERS, (case.batch, LENGTH + 1)).astype(np.int32)
        return {'text': np.ascontiguousarray(text[:, :-1]),
                'labels': np.ascontiguousarray(text[:, 1:]).reshape(-1)}
    dims = (case.batch, SIDE, SIDE, 1) if case.model == 'convolutional' else (case.batch, PIXELS)
    return {'images': random.random(dims, np.float32),
            'labels': random.integers(0, CLASSES, case.batch).astype(np.int32)}


def _of_layers(batch, sizes):
    """Each layer's product and both products of its gradients; none by the images."""
    products = [a * b for a, b in zip(sizes, sizes[1:])]
    return batch * (3 * sum(products) - products[0])


def _of_convolutions(batch):
    outputs = [(side * side * inputs * outputs * (SIDE >> i + 1) ** 2)
               for i, (side, inputs, outputs) in enumerate(FILTERS)]
    return batch * (3 * (sum(outputs) + FLAT * CLASSES) - outputs[0])


def _of_transformer(batch):
    # Attention is taken as its full squares, as Kiln multiplies them.
    layer = 12 * WIDTH * WIDTH + 2 * LENGTH * WIDTH
    return 3 * batch * LENGTH * (LAYERS * layer + WIDTH * CHARACTERS)


CASES: Dict[str, Case] = {
    'softmax regression, SGD': Case('perceptron', 100, 'sgd', 0.5, 0, regression,
                                    2 * 100 * PIXELS * CLASSES),
    'MLP, SGD': Case('perceptron', 128, 'sgd', 0.01, 0, perceptron, _of_layers(128, PERCEPTRON)),
    'MLP, Adam': Case('perceptron', 128, 'adam', 1e-3, 0, perceptron, _of_layers(128, PERCEPTRON)),
    'CNN, AdamW': Case('convolutional', 50, 'adamw', 1e-3, 0, convolutional, _of_convolutions(50)),
    'transformer, AdamW': Case('transformer', 8, 'adamw', 1e-3, 1, transformer, _of_transformer(8)),
}

