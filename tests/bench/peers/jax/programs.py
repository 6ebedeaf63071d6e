"""Programs that train, solve, sample, and call small functions."""

import itertools

import diffrax
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

SAMPLES = 200
OPERATIONS = 1000


class Perceptron(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x.reshape(x.shape[0], -1)
        for width in (512, 256):
            x = nn.relu(nn.Dense(width)(x))
        return nn.Dense(10)(x)


class Convolutional(nn.Module):
    @nn.compact
    def __call__(self, x):
        for channels in (32, 64):
            x = nn.max_pool(nn.relu(nn.Conv(channels, (5, 5))(x)), (2, 2), (2, 2))
        x = nn.relu(nn.Dense(256)(x.reshape(x.shape[0], -1)))
        return nn.Dense(10)(x)


def training(module, batch):
    """A step of Adam, whose state is donated."""
    from models import parameters

    random = np.random.default_rng(2)
    x = random.normal(size=(batch, 28, 28, 1)).astype(np.float32)
    y = random.integers(0, 10, batch).astype(np.int32)
    params = parameters(jax.eval_shape(module.init, jax.random.key(0), x))
    optimiser = optax.adam(1e-3, eps=1e-3)  # with the usual one a gradient's sign alone decides
    state = jax.tree.map(np.asarray, optimiser.init(params))

    def step(carry, x, y):
        params, state = carry

        def loss(params):
            return optax.softmax_cross_entropy_with_integer_labels(module.apply(params, x), y).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimiser.update(gradient, state)
        return (optax.apply_updates(params, updates), state), value

    return step, ((params, state), x, y), 1


def lorenz():
    """The Lorenz system of 64 starts by Tsitouras' method with adapted steps."""
    start = np.random.default_rng(3).normal(size=(64, 3)).astype(np.float32)

    def field(_, y, args):
        sigma, rho, beta = args
        return jnp.stack([sigma * (y[1] - y[0]), y[0] * (rho - y[2]) - y[1], y[0] * y[1] - beta * y[2]])

    def solve(starts):
        def one(y):
            return diffrax.diffeqsolve(
                diffrax.ODETerm(field), diffrax.Tsit5(), 0.0, 1.0, 0.01, y, args=(10.0, 28.0, 8 / 3),
                saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 11)),
                stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6)).ys
        return jax.vmap(one)(starts)

    return solve, (start,), 0


def regression_data():
    random = np.random.default_rng(4)
    x = random.normal(size=(100, 4)).astype(np.float32)
    return x, (random.random(100) < 1 / (1 + np.exp(-x @ np.array([1, -2, 0.5, 0])))).astype(np.int32)


def regression(x, y):
    weights = numpyro.sample('weights', dist.Normal(jnp.zeros(4), 1).to_event(1))
    bias = numpyro.sample('bias', dist.Normal(0, 1))
    numpyro.sample('y', dist.Bernoulli(logits=x @ weights + bias), obs=y)


def nuts():
    """A chain of the No-U-Turn Sampler. Its statistics are compared, not its draws: a branch that a
    last bit decides makes another chain."""
    sampler = MCMC(NUTS(regression), num_warmup=SAMPLES, num_samples=SAMPLES, progress_bar=False)

    def run(x, y):
        sampler.run(jax.random.key(0), x, y)
        return jnp.hstack([v.mean(0) for v in sampler.get_samples().values()])

    return run, regression_data(), None


def svi():
    inference = SVI(regression, AutoNormal(regression), optax.adam(1e-2), Trace_ELBO())

    def run(x, y):
        result = inference.run(jax.random.key(0), 500, x, y, progress_bar=False)
        return result.params, result.losses[-1]

    return run, regression_data(), None


def tiny():
    return lambda x: x + 1, (jnp.ones(4),), 0


STENCIL_STEPS, SIDE, SYSTEMS, DRAWS = 50, 512, 10000, 1000000


def stencil():
    """Steps of heat on a square whose border stays."""
    def step(_, u):
        inside = u[1:-1, 1:-1]
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * inside))

    start = np.random.default_rng(6).normal(size=(SIDE, SIDE)).astype(np.float32)
    return lambda u: jax.lax.fori_loop(0, STENCIL_STEPS, step, u), (start,), 0


def draws(function):
    """Random numbers of a key of Threefry's."""
    key = np.array([1, 2], np.uint32)
    return lambda key: function(jax.random.wrap_key_data(key), (DRAWS,)), (key,), 0


def systems(function, right_sides=False):
    """Small systems or matrices, each well-conditioned."""
    random = np.random.default_rng(7)
    matrices = random.uniform(-1, 1, (SYSTEMS, 3, 3)) + 3 * np.eye(3)
    matrices = (matrices + matrices.transpose(0, 2, 1)).astype(np.float32)
    sides = (random.normal(size=(SYSTEMS, 3, 1)).astype(np.float32),) if right_sides else ()
    return function, (matrices, *sides), 0


def transforms():
    random = np.random.default_rng(8)
    parts = random.normal(size=(2, 1000, 1024)).astype(np.float32)
    return jnp.fft.fft, (parts[0] + 1j * parts[1],), 0


def of_arrays(function, *shapes, seed=9):
    """A function of normal numbers."""
    random = np.random.default_rng(seed)
    return lambda: (function, tuple(random.normal(size=s).astype(np.float32) for s in shapes), 0)


def complex_product():
    parts = np.random.default_rng(10).normal(size=(4, 1 << 18)).astype(np.float32)
    return jnp.multiply, (parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]), 0


def pixels():
    """Images of bytes, normalised by channel."""
    random = np.random.default_rng(11)
    images = random.integers(0, 256, (4, 224, 224, 3)).astype(np.uint8)
    return (lambda v, mean, scale: (v.astype(jnp.float32) / 255 - mean) * scale,
            (images, np.float32([0.5, 0.4, 0.3]), np.float32([4, 5, 6])), 0)


def rotate_pairs(v, c, s):
    """Rotary embeddings of neighbouring elements."""
    even, odd = v[..., ::2], v[..., 1::2]
    return jnp.stack([even * c - odd * s, even * s + odd * c], -1).reshape(v.shape)


def recurrence(a, b):
    """x[i] = a[i] x[i - 1] + b[i] by a scan of an associative operation."""
    def combine(p, q):
        return p[0] * q[0], q[0] * p[1] + q[1]
    return jax.lax.associative_scan(combine, (jnp.tanh(a), b), axis=0)[1]


SQUARE = (1024, 1024)
UNARY = ('abs', 'sin', 'cos', 'tanh', 'exp', 'sqrt', 'square', 'sign', 'floor', 'ceil', 'negative', 'sum', 'max',
         'mean', 'cumsum', 'sort', 'argmax', 'ravel', 'transpose', 'log1p')
BINARY = ('add', 'subtract', 'multiply', 'maximum', 'minimum', 'arctan2', 'less', 'equal', 'hypot',
          'matmul', 'logaddexp', 'power')


def op_by_op():
    """Different operations of jax.numpy on small arrays, once each: a name or a shape is new."""
    calls = []
    for n in itertools.count(2):
        for name in UNARY:
            calls.append((name, [(n, n + 1)]))
        for name in BINARY:
            calls.append((name, [(n, n), (n, n)]))
        if len(calls) >= OPERATIONS:
            break
    arrays = {s: jnp.asarray(np.random.default_rng(5).uniform(0.1, 1, s).astype(np.float32))
              for _, shapes in calls for s in shapes}
    calls = calls[:OPERATIONS]

    def run():
        return [getattr(jnp, name)(*(arrays[s] for s in shapes)) for name, shapes in calls]

    return run, (), None


PROGRAMS = {
    'tiny jit': tiny,
    'Optax MLP step': lambda: training(Perceptron(), 128),
    'Optax CNN step': lambda: training(Convolutional(), 64),
    'stencil, 50 steps of 512 x 512': stencil,
    'random bits, 1M': lambda: draws(jax.random.bits),
    'random normal, 1M': lambda: draws(jax.random.normal),
    'solve, 10,000 of 3 x 3': lambda: systems(jnp.linalg.solve, right_sides=True),
    'cholesky, 10,000 of 3 x 3': lambda: systems(jnp.linalg.cholesky),
    'qr, 10,000 of 3 x 3': lambda: systems(lambda a: jnp.abs(jnp.linalg.qr(a)[1])),
    'fft, 1,000 of 1,024': transforms,
    'roll, 256K': of_arrays(lambda v: jnp.roll(v, 17), (1 << 18,)),
    'pad by edges, 1,024 x 1,024': of_arrays(lambda v: jnp.pad(v, 3, mode='edge'), SQUARE),
    'product of c64, 256K': complex_product,
    'repeat by 4, 1,024 x 256': of_arrays(lambda v: jnp.repeat(v, 4, axis=1), (1024, 256)),
    'pixels of bytes, normalised': pixels,
    'rotary pairs, 8 x 128 x 12 x 64': of_arrays(rotate_pairs, (8, 128, 12, 64), (128, 1, 32), (128, 1, 32)),
    'linear recurrence, 1,024 x 64': of_arrays(recurrence, (1024, 64), (1024, 64)),
    'tanh, 256K': of_arrays(jnp.tanh, (1 << 18,)),
    'cosh, 256K': of_arrays(jnp.cosh, (1 << 18,)),
    'erf, 256K': of_arrays(jax.lax.erf, (1 << 18,)),
    'log2, 256K': of_arrays(lambda v: jnp.log2(jnp.abs(v)), (1 << 18,)),
    'sum of columns, 1,024 x 1,024': of_arrays(lambda v: v.sum(0), SQUARE),
    'max of columns, 1,024 x 1,024': of_arrays(lambda v: v.max(0), SQUARE),
    'max of rows, 1,024 x 1,024': of_arrays(lambda v: v.max(1), SQUARE),
    'top 8 of rows, 1,024 x 1,024': of_arrays(lambda v: jax.lax.top_k(v, 8), SQUARE),
    'argmax of rows, 1,024 x 1,024': of_arrays(lambda v: v.argmax(1), SQUARE),
    'mean of four stacked, 1,024 x 1,024': of_arrays(
        lambda v: jnp.stack([v * 2, v + 1, v * v, v - 4]).mean(0), SQUARE),
    'select of three, 1,024 x 1,024': of_arrays(
        lambda v: jnp.select([v < -1, v < 0, v < 1], [v, v * 2, v * 3]), SQUARE),
    'histogram of 64 bins, 1M': of_arrays(
        lambda v: jnp.bincount((v.ravel() * 10).astype(jnp.int32) % 64, length=64), SQUARE),
    'bits of bytes, 1,024 x 1,024': of_arrays(
        lambda v: jnp.unpackbits((jnp.abs(v) * 40).astype(jnp.uint8), axis=1), SQUARE),
    'Diffrax solve': lorenz,
    'NumPyro NUTS': nuts,
    'NumPyro SVI': svi,
    '1000 ops, cold': op_by_op,
}
