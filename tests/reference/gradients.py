#!/usr/bin/env python3
"""usage: gradients.py REPOSITORY

Writes tests/unit/grad/jax_values.cc: functions as StableHLO, and what JAX's grad and the forward
derivatives of that give for them. Needs JAX, whose version is named in the file.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy import special

jax.config.update('jax_platforms', 'cpu')
jax.config.update('jax_enable_x64', True)

FUNCTIONS = []


def case(name, *arguments):
    """A function of these arrays."""
    def add(function):
        FUNCTIONS.append((name, function, [np.asarray(x) for x in arguments]))
        return function
    return add


def cases(names, *arguments):
    """lax's functions of these names."""
    for name in names.split():
        case(name, *arguments)(getattr(lax, name))


ANY = [-2.25, -0.75, 0.5, 1.5]
OTHER = [0.75, 1.25, -1.75, 2.5]
INNER = [-0.75, -0.25, 0.125, 0.625]
POSITIVE = [0.25, 0.75, 1.5, 3]
COMPLEX = [0.5 + 0.25j, -1.5 + 2j, 0.75 - 1.25j]
RIGHT = [0.5 + 0.25j, 1.5 - 2j, 0.75 - 1.25j]
MATRIX = [[2, 0.3, -1], [0.5, 1.7, 0.4], [-0.2, 0.9, 3]]

# Functions of an element, with points where they have kinks.
cases('sin cos sinh cosh asinh tanh logistic exp expm1 erf erfc cbrt neg bessel_i1e', ANY)
cases('asin acos atanh tan erf_inv', INNER)
cases('log log1p sqrt rsqrt lgamma digamma', POSITIVE)
case('acosh', [1.25, 2.5, 4])(lax.acosh)
# Not at 0, where JAX's derivative is 1.
case('abs', [-1.0, 2.0])(lax.abs)
case('sign', [-1.0, 0.0, 2.0])(lax.sign)
case('log1p of 0', [0.0, -0.5])(lax.log1p)
case('atan2', ANY, OTHER)(lax.atan2)
case('pow', POSITIVE, OTHER)(lax.pow)
case('pow at 0', [0.0, 0.0, 2.0], [2.0, 3.0, 3.0])(lax.pow)
case('square and cube at 0', [0.0, -1.5])(lambda x: x ** 2 + x ** 3)
case('div and rem', ANY, OTHER)(lambda x, y: x / y + lax.rem(x, y))
case('max and min with ties', [1.0, 2.0, 3.0], [2.0, 2.0, 1.0])(
    lambda x, y: lax.max(x, y) * lax.min(x, y))
case('clamp at its bounds', [-2.0, -1.0, 0.25, 1.0, 3.0])(lambda x: lax.clamp(-1.0, x, 1.0))
case('polygamma and zeta', POSITIVE)(lambda x: special.polygamma(2, x) + special.zeta(3.5, x))
case('where', ANY)(lambda x: jnp.where(x > 0, jnp.exp(x), x * x))

# Complex numbers.
cases('sin cosh tanh exp log sqrt', RIGHT)
case('complex product and quotient', COMPLEX, RIGHT)(lambda x, y: x * y + x / y)
case('complex power', RIGHT, COMPLEX)(lax.pow)
case('complex abs', COMPLEX)(lax.abs)
case('complex conjugate', COMPLEX)(lambda x: x * lax.conj(x) * x)
case('complex parts', COMPLEX)(lambda x: lax.real(x) * lax.imag(x) ** 2)
case('complex of parts', ANY, OTHER)(lambda x, y: lax.exp(lax.complex(x, y)))
case('complex matrix product', np.array(MATRIX) * (1 + 0.5j), np.array(MATRIX).T * (0.25 - 1j))(
    jnp.matmul)

# Reductions.
case('largest with ties', [[1.0, 3.0, 3.0], [3.0, 0.5, 2.0]])(lambda x: x.max(axis=1) ** 2)
case('smallest with ties', [1.0, 0.5, 0.5, 0.5])(lambda x: x.min() * x.sum())
case('product with a zero', [[1.0, 3.0, 0.0], [3.0, 0.5, 2.0]])(lambda x: x.prod(axis=1))
case('product with two zeros', [0.0, 3.0, 0.0])(jnp.prod)
case('cumulative', ANY)(lambda x: lax.cumsum(x) * lax.cumprod(x, reverse=True))
case('cumulative extrema', [0.5, 2.0, 1.0, 3.0])(lambda x: lax.cummax(x) * lax.cummin(x))
case('cumlogsumexp', ANY)(lax.cumlogsumexp)
case('log-softmax', [[1000.0, 999.0, -5.0], [0.1, 0.2, 0.3]])(lambda x: jax.nn.log_softmax(x))
case('softmax and variance', [[1.0, 0.5, -2.0], [0.1, 0.7, 0.3]])(
    lambda x: jax.nn.softmax(x) * x.var(axis=0) + x.std())
case('norm', [3.0, -4.0, 12.0])(lambda x: jnp.linalg.norm(x) * x)
case('argmax as an index', [1.0, 4.0, 2.5])(lambda x: x[jnp.argmax(x)] * x)

# Moves.
case('sort with ties', [5.0, 4.0, 4.0, 1.0])(lambda x: lax.sort(x) ** 2)
case('sort by keys', [3.0, 1.0, 2.0], ANY[:3])(lambda x, y: lax.sort((x, y), num_keys=1)[1] ** 2)
case('top-k', [[1.0, 5.0, 4.0], [2.0, 0.0, 7.0]])(lambda x: lax.top_k(x, 2)[0] ** 2)
case('gather, repeated and outside', [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])(
    lambda x: x.at[jnp.array([2, 0, 0, 9])].get(mode='clip') ** 2)
case('scatter-add', ANY, OTHER)(lambda x, y: x.at[jnp.array([1, 1, 3, 7])].add(y) ** 2)
case('scatter', ANY, OTHER)(lambda x, y: x.at[jnp.array([2, 0, 3, 7])].set(y) ** 2)
case('scatter-mul', ANY, OTHER)(
    lambda x, y: x.at[jnp.array([2, 0, 3, 1])].multiply(y, unique_indices=True))
case('dynamic slices', ANY, OTHER[:2])(
    lambda x, y: lax.dynamic_update_slice(x, y, (7,)) * lax.dynamic_slice(x, (-9,), (4,)))
case('pad, also less', [ANY, OTHER])(
    lambda x: lax.pad(x, 0.5, ((1, -1, 1), (-1, 2, 0))) ** 2)
case('concatenate, reverse, transpose', [ANY, OTHER])(
    lambda x: (lax.rev(lax.concatenate([x, x * x], 0), (0,)).T)[::2] ** 2)

# Products and windows.
case('batched product', np.arange(12).reshape(2, 2, 3) / 5, np.arange(18).reshape(2, 3, 3) / 7)(
    lambda x, y: jnp.einsum('bij,bjk->ibk', x, y) ** 2)


def convolution(**how):
    return lambda x, w: lax.conv_general_dilated(x, w, padding=((1, 2),), **how) ** 2


case('convolution', np.arange(14).reshape(1, 2, 7) / 5 - 1, np.arange(12).reshape(2, 2, 3) / 7)(
    convolution(window_strides=(2,), rhs_dilation=(2,)))
case('convolution in groups', np.arange(14).reshape(1, 2, 7) / 5 - 1,
     np.arange(12).reshape(4, 1, 3) / 7)(
    convolution(window_strides=(1,), lhs_dilation=(2,), feature_group_count=2))
case('max pooling with ties', [[1.0, 3.0, 3.0, 0.0, 3.0, -2.0]])(
    lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), 'SAME') ** 2)
case('average pooling', [ANY, OTHER])(
    lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 2), (1, 1), 'SAME') ** 2)

# Linear algebra.
case('Cholesky', MATRIX)(lambda x: lax.linalg.cholesky(x @ x.T + jnp.eye(3)))
case('triangular solve', MATRIX, np.array(MATRIX)[:, :2])(
    lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
case('LU', MATRIX)(lambda x: lax.linalg.lu(x)[0])
case('QR', MATRIX)(lambda x: jnp.matmul(*jnp.linalg.qr(x)[::-1]))
case('determinant and solution', MATRIX, ANY[:3])(
    lambda a, b: jnp.linalg.det(a) * jnp.linalg.solve(a, b))
case('FFT', RIGHT)(lambda x: jnp.fft.fft(x) ** 2)
case('real FFT', OTHER)(lambda x: jnp.abs(jnp.fft.rfft(x)))
case('inverse real FFT', RIGHT)(lambda x: jnp.fft.irfft(x, 5) ** 2)

# Control flow.
case('scan', ANY, [0.5])(
    lambda xs, h: lax.scan(lambda c, x: (jnp.tanh(c + x), c * x), h, xs)[1] ** 2)
case('loop', [0.5, -1.5])(lambda x: lax.fori_loop(0, 5, lambda i, y: jnp.sin(y) * (i + x), x))
case('branches', ANY)(
    lambda x: lax.cond(x.sum() < 0, jnp.sin, jnp.cos, x) * lax.switch(1, [jnp.exp, jnp.tanh], x))
case('map', [ANY, OTHER])(jax.vmap(lambda row: row / jnp.sqrt(1 + row @ row)))


def numbers(x):
    x = np.asarray(x)
    if np.iscomplexobj(x):
        x = np.stack([x.real, x.imag], -1)
    return '{' + ', '.join(repr(float(v)) for v in x.ravel()) + '}'


def lists(arrays):
    return '{' + ',\n      '.join(numbers(x) for x in arrays) + '}'


def value_of(random, shape, dtype):
    x = random.integers(-16, 17, shape) / 8
    return x + 1j * random.integers(-16, 17, shape) / 8 if dtype.kind == 'c' else x


def row(name, function, arguments):
    random = np.random.default_rng(len(name))
    x = [a.astype(np.complex128 if np.iscomplexobj(a) else np.float64) for a in arguments]
    result = jax.eval_shape(function, *x)
    cotangent = value_of(random, result.shape, result.dtype).astype(result.dtype)
    directions = tuple(value_of(random, a.shape, a.dtype).astype(a.dtype) for a in x)

    def gradient(*x):
        return jax.vjp(function, *x)[1](cotangent)

    first, second = jax.jvp(gradient, tuple(x), directions)
    program = jax.jit(function).lower(*x).as_text()
    return (f'    {{"{name}",\n     R"({program})",\n     {lists(x)},\n     {numbers(cotangent)},\n'
            f'     {lists(directions)},\n     {lists(first)},\n     {lists(second)}}},\n')


def main():
    rows = [row(*f) for f in FUNCTIONS]
    with open(f'{sys.argv[1]}/tests/unit/grad/jax_values.cc', 'w') as out:
        out.write(f'// Generated by tests/reference/gradients.py with JAX {jax.__version__} on its'
                  ' CPU; do not edit.\n#include "unit/grad/jax_values.h"\n\nnamespace kiln::grad {\n'
                  '\nconst std::vector<JaxValues>& AllJaxValues() {\n'
                  '  static const std::vector<JaxValues> kAll = {\n')
        out.writelines(rows)
        out.write('  };\n  return kAll;\n}\n\n}  // namespace kiln::grad\n')
    print(len(rows), 'functions')


if __name__ == '__main__':
    main()
