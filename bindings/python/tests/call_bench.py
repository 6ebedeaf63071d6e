"""How long a call of a small program takes, in microseconds: `python3 call_bench.py`."""

import timeit

import numpy

import kiln


def small_program(context, arguments, results=1):
    """A sum of arguments, whose kernel takes next to nothing."""
    graph = context.graph()
    values = [graph.parameter('f32', [8]) for _ in range(arguments)]
    total = sum(values[1:], values[0] * 2)
    graph.set_results(*(total + i for i in range(results)))
    return graph.compile()


def microseconds(function, rounds=200, number=200):
    """The quickest of many short rounds, as others work beside."""
    return min(timeit.repeat(function, number=number, repeat=rounds)) / number * 1e6


def ten(function, x):
    """The function of its own result."""
    for _ in range(10):
        x = function(x)


def measure(context):
    """Names and microseconds."""
    array = kiln.full(8, 1, 'f32')
    buffer = context.device().copy(array)
    plain = small_program(context, 1)
    yield 'one buffer', microseconds(lambda: plain(buffer))
    more = small_program(context, 4)
    yield 'four buffers', microseconds(lambda: more(buffer, buffer, buffer, buffer))
    yield 'one array', microseconds(lambda: plain(array))
    yield 'four arrays', microseconds(lambda: more(array, array, array, array))
    yield 'an array that is not aligned', microseconds(lambda: plain(numpy.ones(9, 'f4')[1:]))
    yield 'into a given buffer', microseconds(lambda: plain.run([buffer], [out]))
    jitted = kiln.jit(lambda x: x + 1, context=context)
    yield 'kiln.jit, one buffer', microseconds(lambda: jitted(buffer))
    yield 'kiln.jit, one array', microseconds(lambda: jitted(array))
    yield 'kiln.jit, ten one after another', microseconds(lambda: ten(jitted, buffer), number=20) / 10
    yield 'start and wait', microseconds(lambda: plain.start([buffer])[1].wait())
    yield 'numpy.asarray of a result', microseconds(lambda: numpy.asarray(buffer))
    yield 'float of a result', microseconds(lambda: float(total))


if __name__ == '__main__':
    with kiln.Context() as made:
        out = made.device().zeros('f32', [8])
        total = made.device().zeros('f32')
        for name, time in measure(made):
            print('{:32} {:6.2f}'.format(name, time))
