"""usage: table.py FILE [DOCUMENT]

Prints the tables of networks for images and of their layers, in Markdown, from the JSON lines of
images/compare.py. With a document they replace those between its lines `<!-- images -->` and
`<!-- end of images -->`.
"""

import json
import pathlib
import sys

FIRST, LAST = '<!-- images -->\n', '<!-- end of images -->\n'
NAMES = {'kiln': 'Kiln', 'kiln-first': 'features first', 'onnxruntime': 'ONNX Runtime',
         'onednn': 'oneDNN', 'xla': 'XLA'}
OWN = ('kiln', 'kiln-first')


def read(path):
    """What is known of the machine, and the records of each case by threads."""
    machine, cases = {}, {}
    for line in pathlib.Path(path).read_text(encoding='utf-8').splitlines():
        record = json.loads(line)
        if 'machine' in record:
            machine = record['machine']
        elif 'run' in record:
            cases.setdefault(record['name'], {})[record['threads']] = record
    return machine, cases


def number(value):
    return f'{value:#.3g}'.rstrip('.')


def rate(record):
    """Of the fastest of Kiln's."""
    seconds = min(value for key, value in record['run'].items() if key in OWN)
    if 'depthwise' in record['name']:
        return f'{record["bytes"] / seconds * 1e-9:.1f} GB/s'
    return f'{2 * record["multiplications"] / seconds * 1e-9:.0f} GFLOP/s'


def table(cases, threads):
    """A row for each case, a cell for each library with the milliseconds by threads."""
    libraries = [key for key in NAMES if any(key in r['run'] for case in cases.values()
                                             for r in case.values())]
    heads = ['ms', *(NAMES[key] for key in libraries), 'of ONNX Runtime', 'of the best', 'rate']
    lines = ['| ' + ' | '.join(heads) + ' |', '|---' * len(heads) + '|']
    for name, by_threads in cases.items():
        records = [by_threads[n] for n in threads if n in by_threads]
        cells = [', '.join(number(r['run'][key] * 1e3) for r in records) for key in libraries]
        for key in 'times_as_fast_as_onnxruntime', 'times_as_fast':
            cells.append(', '.join(f'{r[key]:.2f}' for r in records))
        cells.append(rate(records[0]))
        lines.append('| ' + ' | '.join([name, *cells]) + ' |')
    return '\n'.join(lines) + '\n'


def text_of(machine, cases):
    threads = sorted({n for case in cases.values() for n in case})
    versions = ', '.join(f'{NAMES[key]} {value}' for key, value in machine['versions'].items()
                         if key != 'kiln-first')
    head = (f'{machine["processors"]} processors with {", ".join(machine["features"])}; {machine["day"]}; '
            f'{versions.replace("oneDNN", "oneDNN of PyTorch").replace("XLA", "XLA of JAX")}. '
            f'Milliseconds with {" and ".join(map(str, threads))} threads; how many times as fast the '
            f'faster of Kiln\'s two is; its rate with {threads[0]}.')
    words, lines = head.split(), ['']
    for word in words:
        if len(lines[-1]) + len(word) > 108:
            lines.append('')
        lines[-1] += (' ' if lines[-1] else '') + word
    networks = {name: case for name, case in cases.items() if ' x ' not in name}
    layers = {name: case for name, case in cases.items() if name not in networks}
    tables = [table(part, threads) for part in (networks, layers) if part]
    return '\n'.join(lines) + '\n\n' + '\n'.join(tables)


def main():
    text = text_of(*read(sys.argv[1]))
    if len(sys.argv) < 3:
        print(text, end='')
        return 0
    document = pathlib.Path(sys.argv[2])
    before, rest = document.read_text(encoding='utf-8').split(FIRST)
    after = rest.split(LAST)[1]
    document.write_text(f'{before}{FIRST}\n{text}\n{LAST}{after}', encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
