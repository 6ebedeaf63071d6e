"""Trainings on XLA: JAX with Optax, the state donated."""

import os

import jax
import jax.numpy as jnp
import optax

import cases


def perceptron(p, images):
    x = images
    layers = len(p) // 2
    for i in range(layers):
        x = x @ p[f'w{i}'] + p[f'b{i}']
        if i + 1 < layers:
            x = jax.nn.relu(x)
    return x


def convolutional(p, images):
    x = images
    for i, (side, _, _) in enumerate(cases.FILTERS):
        x = jax.lax.conv_general_dilated(x, p[f'filter{i}'], (2, 2), [(side // 2, side // 2)] * 2,
                                         dimension_numbers=('NHWC', 'HWIO', 'NHWC'))
        x = jax.nn.relu(x + p[f'offset{i}'])
    return x.reshape(x.shape[0], -1) @ p['w0'] + p['b0']


def transformer(p, text):
    def norm(x, scale):
        return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + cases.EPSILON) * scale

    batch = text.shape[0]
    x = (p['embedding'][text] + p['positions']).reshape(-1, cases.WIDTH)
    for i in range(cases.LAYERS):
        together = norm(x, p[f'norm1.{i}']) @ p[f'queries{i}']
        parts = [part.reshape(batch, cases.LENGTH, cases.HEADS, -1)
                 for part in jnp.split(together, 3, axis=1)]
        attended = jax.nn.dot_product_attention(*parts, is_causal=True).reshape(-1, cases.WIDTH)
        x = x + attended @ p[f'attended{i}']
        x = x + jax.nn.gelu(norm(x, p[f'norm2.{i}']) @ p[f'inner{i}']) @ p[f'outer{i}']
    return norm(x, p['norm']) @ p['output']


class Training:
    """A training: `call` makes a step, `loss` tells the last one's loss."""

    def __init__(self, case):
        model = globals()[case.model]
        if case.optimizer == 'sgd':
            optimizer = optax.sgd(case.rate)
        else:
            decay = {'weight_decay': 0.01} if case.optimizer == 'adamw' else {}
            optimizer = getattr(optax, case.optimizer)(case.rate, **decay)
        if case.clip:
            optimizer = optax.chain(optax.clip_by_global_norm(case.clip), optimizer)

        def step(state, given, labels):
            parameters, moments = state

            def loss_of(parameters):
                return optax.softmax_cross_entropy_with_integer_labels(
                    model(parameters, given), labels).mean()

            loss, gradients = jax.value_and_grad(loss_of)(parameters)
            updates, moments = optimizer.update(gradients, moments, parameters)
            return (optax.apply_updates(parameters, updates), moments), loss

        parameters = jax.tree.map(jnp.array, case.parameters())
        self._state = parameters, optimizer.init(parameters)
        self._batch = [jnp.array(x) for x in cases.batch_of(case).values()]
        self._step = jax.jit(step, donate_argnums=0)
        self._loss = None

    def call(self):
        self._state, self._loss = self._step(self._state, *self._batch)

    def wait(self):
        jax.block_until_ready((self._state, self._loss))

    def loss(self):
        return float(self._loss)


class Xla:
    """Makes trainings on XLA's CPU, which has as many threads as there are processors."""

    def __init__(self, threads):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])

    def training(self, case):
        return Training(case)
