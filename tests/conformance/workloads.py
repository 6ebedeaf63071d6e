#!/usr/bin/python3
"""usage: workloads.py KILN_RUN [--all] [--select REGEX]

Runs the programs in HLO text of $KILN_WORKLOADS_DIR/hlo by kiln-run, on made-up arguments, and holds the
results against the evaluator's: on the CPU, each within two minutes, and on the emulated GPU those that
take less than a minute on the CPU. Without --all the programs of LONG are left out. Exits with 77 where
there are no programs.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import time

# Programs that the evaluator or the emulated GPU runs for more than a few seconds.
LONG = ('dlrm_keras_jax_f32_train_step', 'resnet50_keras_jax_f32', 'sort_full_1024x4096_bf16')
CPU_SECONDS, GPU_SECONDS = 120, 1800
# Programs that take longer on the CPU are not tried on the emulated GPU.
MOST_FOR_GPU = 60


def run(tool, path, platform, deadline):
    """The report of kiln-run, and seconds."""
    start = time.monotonic()
    done = subprocess.run([tool, f'--platform={platform}', '--json', f'--deadline={deadline}', path],
                          capture_output=True, text=True)
    seconds = time.monotonic() - start
    try:
        return json.loads(done.stdout)[0], seconds
    except (json.JSONDecodeError, IndexError):
        return {'verdict': 'fail', 'failure': (done.stderr or done.stdout)[-300:]}, seconds


def reason(report):
    """Why a report is no pass; nothing if it is one."""
    if 'failure' in report:
        return report['failure']
    if report['verdict'] != 'pass':
        wrong = [f'result {k}: {r["wrong"]} of {r["elements"]} elements differ'
                 for k, r in enumerate(report['results']) if r.get('wrong')]
        return '; '.join(wrong) or 'differs'
    return '' if report.get('results') and report.get('reference_ms') else 'nothing was compared'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('tool')
    parser.add_argument('--all', action='store_true')
    parser.add_argument('--select', default='')
    arguments = parser.parse_args()
    root = os.environ.get('KILN_WORKLOADS_DIR')
    files = sorted(glob.glob(os.path.join(root, 'hlo', '*.hlo'))) if root else []
    files = [f for f in files if re.search(arguments.select, os.path.basename(f))]
    if not files:
        print('KILN_WORKLOADS_DIR has no programs in HLO text')
        sys.exit(77)
    failed = 0
    for path in files:
        name = os.path.splitext(os.path.basename(path))[0]
        if name in LONG and not arguments.all:
            print(f'{name}: left to the slow test')
            continue
        seconds = 0
        for platform, deadline in (('cpu', CPU_SECONDS), ('gpu', GPU_SECONDS)):
            if platform == 'gpu' and seconds > MOST_FOR_GPU:
                print(f'{name}: too long for the emulated GPU')
                break
            report, seconds = run(arguments.tool, path, platform, deadline)
            why = reason(report)
            failed += bool(why)
            print(f'{name}: {platform}: {seconds:.1f} s: {why or "agrees"}', flush=True)
            if why:
                break
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
