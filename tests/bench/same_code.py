#!/usr/bin/env python3
"""Whether two builds of the library make the same code: LLVM IR for the CPU, and PTX for sm_80.

    same_code.py OLD/libkiln.so NEW/libkiln.so FILE...

Each file of HLO text (.hlo) or StableHLO (.mlir, .mlir.bc) is compiled for CPU:0 by both; files that
neither compiles are counted. Code is compared function by function, without the names of symbols,
and without the order in which functions stand. Prints what differs, and exits with 1 if anything
does.
"""

import ctypes
import os
import re
import subprocess
import sys
import tempfile
from typing import Dict, List, Tuple

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 120  # for one file


def dump(path: str, folder: str) -> None:
    """Compiles a file by the library that KILN_LIBRARY names, with dumps."""
    sys.path.insert(0, os.path.join(ROOT, 'bindings', 'python'))
    import kiln
    from kiln import _structs
    from kiln._library import lib, made, options, text
    context = kiln.Context()
    if path.endswith('.hlo'):
        with open(path, encoding='utf-8') as file:
            graph = context.graph_from_hlo_text(file.read())
    else:
        with open(path, 'rb') as file:
            graph = context.graph_from_stablehlo(file.read())
    name, length = text(folder)
    struct = options(_structs.CompileOptions, lib.kiln_compile_options_init, dump_ptx_sm=80,
                     dump_folder=name, dump_folder_length=length,
                     device=context.device('CPU:0')._as_parameter_)
    made(lib.kiln_graph_compile, graph, ctypes.byref(struct))



def plain(code: str) -> str:
    """Without what numbers and names are given to symbols and attributes."""
    code = re.sub(r'(@|\b)"?(kiln_entry|kiln_prologue)(_[0-9a-f]{16})?"?', r'\1\2', code)
    return re.sub(r'([\w.$-])[._][0-9a-f]{16}(?![0-9a-f])', r'\1', code)


def llvm_functions(code: str) -> List[str]:
    """The functions of a module of LLVM IR, sorted: bodies with the types of their heads."""
    return sorted(plain(body) for body in re.findall(r'^define .*?^}', code, re.M | re.S))


def ptx_functions(code: str) -> List[str]:
    return sorted(plain(body) for body in re.findall(
        r'^(?:\.visible |\.weak )?\.(?:entry|func) .*?^}', code, re.M | re.S))


def code_of(library: str, path: str) -> Tuple[str, Dict[str, List[str]]]:
    """What went wrong, and the code by kind."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([sys.executable, os.path.abspath(__file__), '--dump', path, folder],
                             env={**os.environ, 'KILN_LIBRARY': library}, timeout=SECONDS,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if run.returncode != 0:
            lines = run.stdout.decode(errors='replace').strip().splitlines()
            return (lines[-1] if lines else 'exit {}'.format(run.returncode)), {}
        made: Dict[str, List[str]] = {}
        for name in os.listdir(folder):
            if name.endswith('ir-no-opt.ll') or name.endswith('.ptx'):
                with open(os.path.join(folder, name), encoding='utf-8') as file:
                    code = file.read()
                is_ptx = name.endswith('.ptx')
                made['ptx' if is_ptx else 'll'] = (ptx_functions if is_ptx else
                                                   llvm_functions)(code)
        return '', made


def main() -> int:
    if sys.argv[1:2] == ['--dump']:
        dump(sys.argv[2], sys.argv[3])
        return 0
    old, new, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    same = refused = functions = 0
    differ = []
    for path in files:
        before, after = code_of(old, path), code_of(new, path)
        if before[0] and after[0]:
            refused += 1
        elif before == after:
            same += 1
            functions += sum(map(len, after[1].values()))
        else:
            differ.append(path)
            print('{}: {}'.format(path, before[0] or after[0] or ', '.join(
                '{}: {} of {} functions differ'.format(
                    kind, len(set(before[1].get(kind, [])) - set(after[1].get(kind, []))),
                    len(before[1].get(kind, []))) for kind in ('ll', 'ptx'))), flush=True)
    print('{} files have the same code ({} functions), {} differ, {} are refused by both'.format(
        same, functions, len(differ), refused))
    return 1 if differ else 0


if __name__ == '__main__':
    sys.exit(main())
