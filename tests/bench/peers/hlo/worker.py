"""usage: worker.py kiln|xla THREADS

One library's side: reads a command a line, answers each with a line of JSON.

    prepare FOLDER  compiles module.hlo of the folder, runs it on argument0.npy, ... and writes the
                    results, NAME0.npy, ... beside them
    compile         compiles it once more
    sample SECONDS  runs it for so long
    drop            forgets it
"""

import gc
import os
import pathlib
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import turns  # noqa: E402  pylint: disable=wrong-import-position

ANSWERS = turns.answers()


def library(name, threads):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if name == 'kiln':
        import on_kiln
        return on_kiln.Kiln(threads)
    if threads == 1:
        os.environ['XLA_FLAGS'] = ('--xla_cpu_multi_thread_eigen=false '
                                   'intra_op_parallelism_threads=1')
    import on_xla
    return on_xla.Xla(threads)


class Side:
    """The commands."""

    def __init__(self, name, threads):
        self._name, self._library = name, library(name, threads)
        self._module = self._program = None

    def prepare(self, folder):
        import numpy as np
        folder = pathlib.Path(folder)
        self._module = self._library.read((folder / 'module.hlo').read_text(encoding='utf-8'))
        executable = self._library.compile(self._module)
        types = self._library.argument_types(self._module, executable)
        arrays = [np.load(folder / f'argument{k}.npy') for k in range(len(types))]
        # Types that NumPy lacks are stored as bytes.
        arrays = [x.view(t) if x.dtype.kind == 'V' else x for x, t in zip(arrays, types)]
        # The first run.
        self._program = self._library.program(self._module, executable, arrays)
        results = self._program.results()
        for k, result in enumerate(results):
            np.save(folder / f'{self._name}{k}.npy', wide(result))
        return {'results': len(results)}

    def compile(self, _):
        start = time.perf_counter()
        self._library.compile(self._module)
        return {'seconds': time.perf_counter() - start}

    def sample(self, seconds):
        turns.rest()
        return {'seconds': turns.seconds_per_call(self._program, float(seconds))}

    def drop(self, _):
        self._module = self._program = None
        gc.collect()
        return {}


def wide(array):
    """An array in a type of NumPy's own that has all its values."""
    import numpy as np
    return array.astype(np.float32) if array.dtype.kind not in 'biufc' else array


def main():
    side = Side(sys.argv[1], int(sys.argv[2]))
    turns.serve(sys.stdin, ANSWERS, {name: getattr(side, name)
                                     for name in ('prepare', 'compile', 'sample', 'drop')})


if __name__ == '__main__':
    main()
