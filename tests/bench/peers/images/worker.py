"""usage: worker.py kiln|kiln-first|onnxruntime|onednn|xla THREADS FOLDER

One library's side: reads a command a line, answers each with a line of JSON.

    version        tells the library's
    prepare CASE   makes the network, runs it, and writes the result to NAME.npy in the folder
    sample SECONDS runs it for so long
    drop           forgets it
"""

import gc
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

import turns  # noqa: E402  pylint: disable=wrong-import-position

ANSWERS = turns.answers()

import numpy as np  # noqa: E402  pylint: disable=wrong-import-position

import cases  # noqa: E402  pylint: disable=wrong-import-position


def library(name, threads):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if name == 'xla':
        import on_xla
        return on_xla.Xla(threads)
    if name == 'onednn':
        import on_torch
        return on_torch.Torch(threads)
    if name == 'onnxruntime':
        import on_onnx
        return on_onnx.OnnxRuntime(threads)
    import on_kiln
    return (on_kiln.Kiln if name == 'kiln' else on_kiln.KilnFirst)(threads)


class Side:
    """The commands."""

    def __init__(self, name, threads, folder):
        self._name, self._library = name, library(name, threads)
        self._folder, self._run = pathlib.Path(folder), None

    def version(self, _):
        return {'version': self._library.version}

    def prepare(self, name):
        network = cases.CASES[name]()
        self._run = self._library.network(network)
        np.save(self._folder / f'{self._name}.npy', self._run.result())
        return {'multiplications': network.multiplications, 'bytes': network.arrays_bytes}

    def sample(self, seconds):
        turns.rest()
        return {'seconds': turns.seconds_per_call(self._run, float(seconds))}

    def drop(self, _):
        self._run = None
        gc.collect()
        return {}


def main():
    side = Side(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    turns.serve(sys.stdin, ANSWERS, {name: getattr(side, name)
                                     for name in ('version', 'prepare', 'sample', 'drop')})


if __name__ == '__main__':
    main()
