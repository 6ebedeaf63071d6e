"""usage: peers.py [--json FILE] [--rounds N] [CASE...]

Kiln beside PyTorch, eager and compiled by Inductor, and NumPy, on the same arguments, in turn, with
as many threads as OMP_NUM_THREADS says. All write into memory that is used again from call to call.
CASE is a part of a name.
"""

import argparse
import ctypes
import json
import logging
import os
import resource
import statistics
import sys
import time

import kiln
import numpy
import torch
import torch._inductor.config as inductor_config
from kiln import _library, executable as kiln_executable
from torch._inductor.cpu_vec_isa import pick_vec_isa
from torch._inductor.utils import run_and_get_code

from cases import CASES

THREADS = int(os.environ['OMP_NUM_THREADS'])
# Calls of one way in a row within a round; before them, calls for so long that are not counted.
CALLS, WARM_SECONDS = 5, 0.005
# A round of short calls takes at least so long.
ROUND_SECONDS = 0.002
# Ways of Kiln's.
OWN = ('kiln', 'op by op')


def rest():
    """Sleeps until the threads that another way left spinning sleep, too: OpenBLAS's take 0.1 s."""
    slice_seconds = 0.005
    for _ in range(200):  # a second, for some spin on
        before = time.process_time()
        time.sleep(slice_seconds)
        if time.process_time() - before < slice_seconds / 10:
            break


class Way:
    """One way of doing the work: a function without arguments, and where its results are."""

    def __init__(self, name, call, outs, tolerance):
        self.name, self.call, self.outs, self.tolerance = name, call, outs, tolerance
        self.seconds, self.faults = [], 0

    def sample(self):
        rest()
        warm = time.perf_counter() + WARM_SECONDS
        self.call()
        while time.perf_counter() < warm:
            self.call()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start, calls = time.perf_counter(), 0
        while calls < CALLS or time.perf_counter() - start < ROUND_SECONDS:
            before = time.perf_counter()
            self.call()
            self.seconds.append(time.perf_counter() - before)
            calls += 1
        self.faults = max(self.faults,
                          (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) // calls)


def kiln_way(context, case, inputs, outs):
    graph = context.graph('peers')
    parameters = [graph.parameter('f32', list(x.shape)) for x in inputs]
    graph.set_results(*case.build(graph, *parameters))
    executable = graph.compile()
    device = executable.device
    buffers = [device.borrow(x.numpy()) for x in inputs]
    results = [device.borrow(x.numpy()) for x in outs]
    executable.run(buffers, results)
    # What `run` makes of its arguments at each call takes Python longer than small work takes.
    options = ctypes.byref(kiln_executable._execute_options(0, None))
    places = [kiln_executable._places(b) for b in (buffers, results)]

    def call(run=_library.lib.kiln_executable_run, keep=(buffers, results)):
        run(executable, options, places[0], len(buffers), places[1], len(results))

    return call


def session_way(context, case, inputs, outs, jit):
    graph = context.graph('peers')
    feeds = [graph.parameter('f32', list(x.shape)) for x in inputs]
    fetches = case.build(graph, *feeds)
    session = kiln.Session(graph, jit=jit)
    buffers = [session.device.borrow(x.numpy()) for x in inputs]
    results = [session.device.borrow(x.numpy()) for x in outs]
    session.run(dict(zip(feeds, buffers)), fetches, results)
    # As of an executable.
    options = ctypes.byref(kiln_executable._execute_options(0, None))
    places = [kiln_executable._places(b) for b in (buffers, results)]
    ids = [(ctypes.c_uint64 * len(values))(*(v.id for v in values)) for values in (feeds, fetches)]

    def call(run=_library.lib.kiln_session_run, keep=(buffers, results)):
        run(session, options, ids[0], places[0], len(buffers), ids[1], places[1], len(results),
            None, 0)

    return call


def inductor_way(case, inputs, outs):
    """Code that writes into given results, and what is to be known of it."""
    def into(outs, *inputs):
        for out, value in zip(outs, case.compute(*inputs)):
            out.copy_(value)

    torch._dynamo.reset()
    compiled = torch.compile(into, fullgraph=True, dynamic=False)
    _, codes = run_and_get_code(compiled, outs, *inputs)
    code = '\n'.join(codes)
    vectors = 'vectorised' if 'at::vec::Vectorized' in code else 'NOT VECTORISED'
    return lambda: compiled(outs, *inputs), vectors


def ways_of(case, context):
    inputs = case.inputs()
    notes = []

    def new():
        outs = [torch.zeros(shape) for shape in case.results]
        return outs

    ways = []
    outs = new()
    if case.session:
        ways.append(Way('kiln', session_way(context, case, inputs, outs, 'on'), outs, 0))
        outs = new()
        ways.append(Way('op by op', session_way(context, case, inputs, outs, 'off'), outs, 1e-4))
    else:
        ways.append(Way('kiln', kiln_way(context, case, inputs, outs), outs, 0))
    if case.eager:
        outs = new()
        ways.append(Way('torch', lambda outs=outs: case.eager(outs, *inputs), outs, 1e-4))
    elif case.compute:
        # Results are made anew by each call.
        place = []

        def call():
            place[:] = case.compute(*inputs)
        ways.append(Way('torch', call, place, 1e-4))
    if case.compute and case.inductor:
        outs = new()
        call, note = inductor_way(case, inputs, outs)
        notes.append(note)
        ways.append(Way('inductor', call, outs, 1e-4))
    if case.numpy:
        outs = new()
        arrays, views = [x.numpy() for x in inputs], [x.numpy() for x in outs]
        ways.append(Way('numpy', lambda: case.numpy(views, *arrays), outs, 1e-4))
    return ways, notes


def check(case, ways):
    """All ways agree, or figures mean nothing."""
    for way in ways:
        way.call()
    for way in ways[1:]:
        for expected, out in zip(ways[0].outs, way.outs):
            scale = max(1.0, float(expected.abs().max()))
            error = float((out - expected).abs().max()) / scale
            if not error <= way.tolerance:
                raise SystemExit(f'{case.name}: {way.name} and Kiln differ by {error:.2g}')


def measure(case, context, rounds):
    ways, notes = ways_of(case, context)
    check(case, ways)
    for number in range(rounds):
        # Who goes first changes from round to round.
        for at in range(len(ways)):
            ways[(at + number) % len(ways)].sample()
    medians = {way.name: statistics.median(way.seconds) * 1e3 for way in ways}
    faults = {way.name: way.faults for way in ways if way.faults > 16}
    if faults:
        notes.append('page faults per call: ' +
                     ', '.join(f'{name} {count}' for name, count in faults.items()))
    return medians, notes


def describe():
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as features
    except ImportError:
        from numpy.core._multiarray_umath import __cpu_features__ as features
    sorts = 'AVX512_SKX' if features.get('AVX512_SKX') else 'AVX2' if features.get('AVX2') else ''
    return {
        'kiln': kiln.__version__,
        'torch': torch.__version__,
        'torch_cpu': torch.backends.cpu.get_cpu_capability(),
        'inductor_isa': str(pick_vec_isa()),
        'numpy': numpy.__version__,
        'numpy_sorts_by': sorts or 'scalar code',
        'threads': THREADS,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--json', help='a file that lines of JSON are appended to')
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('cases', nargs='*')
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # PyTorch's, of Triton that is not installed
    torch.set_num_threads(THREADS)
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    inductor_config.cpp.threads = THREADS
    # tanh as 2 / (1 + exp(-2 x)) - 1: of fewer correct bits near 0, and four times as fast as SLEEF's.
    inductor_config.cpp.use_decompose_tanh = True
    lines = open(options.json, 'a') if options.json else None

    def write(record):
        if lines:
            print(json.dumps(record), file=lines, flush=True)

    machine = describe()
    print(', '.join(f'{key} {value}' for key, value in machine.items()))
    write(machine)
    columns = ('kiln', 'op by op', 'torch', 'inductor', 'numpy')
    print(f'{"ms, median":28}' + ''.join(f'{name:>10}' for name in columns) +
          f'{"kiln/best":>11}', flush=True)
    with kiln.Context(threads=THREADS) as context:
        for case in CASES:
            if options.cases and not any(name in case.name for name in options.cases):
                continue
            medians, notes = measure(case, context, options.rounds)
            best = min(value for name, value in medians.items() if name not in OWN)
            ratio = medians['kiln'] / best
            print(f'{case.name:28}' +
                  ''.join(f'{medians[c]:10.4g}' if c in medians else f'{"-":>10}'
                          for c in columns) +
                  f'{ratio:11.2f}  {"; ".join(notes)}', flush=True)
            write({'name': case.name, 'threads': THREADS, 'ms': medians,
                   'kiln_of_best_peer': ratio, 'notes': notes})
    return 0


if __name__ == '__main__':
    sys.exit(main())
