"""Outcomes of JAX's tests on Kiln beside those on cpu: what counts, reasons, and the page's table."""

import collections
import datetime
import fnmatch
import os
import pathlib
import re

BEGIN, END = '<!-- make jax-test begins -->', '<!-- make jax-test ends -->'
# Skips that JAX makes by a device's name, not by what is installed.
_BY_PLATFORM = re.compile(
    r'not supported (on|for)|\b(cpu|gpu|tpu|cuda|rocm|oneapi)s?\b|platform|backend|device', re.I)


class Reasons:
    """What is known of cases that fail: lines of "PATTERN REASON", the pattern of a shell for
    file::class::case. The first one that fits is taken."""

    def __init__(self, path):
        lines = pathlib.Path(path).read_text(encoding='utf-8').splitlines()
        self.rows = [line.split(maxsplit=1) for line in lines if line and not line.startswith('#')]

    def of(self, case):
        return next((why for pattern, why in self.rows if fnmatch.fnmatchcase(case, pattern)), None)


def _test_of(case):
    """A case without the number of its parameters."""
    return case.rstrip('0123456789')


class File:
    """The outcomes of one file; {case: row} of each platform."""

    def __init__(self, name, kiln, cpu):
        self.name, self.kiln = name, kiln
        self.by = collections.defaultdict(list)  # {outcome on Kiln: its cases}
        for case, row in kiln.items():
            outcome = row['outcome']
            if outcome == 'skipped' and _BY_PLATFORM.search(row['said']):
                outcome = 'platform'
            self.by[outcome].append(case)
        passed = {case for case, row in cpu.items() if row['outcome'] == 'passed'}
        # What cpu passes and JAX does not skip on Kiln. Of some tests JAX generates more cases for
        # its own platforms; a test that is not there at all has failed.
        generated = {_test_of(case) for case in kiln}
        self.counted = {c for c in passed if (kiln[c]['outcome'] != 'skipped' if c in kiln
                                              else _test_of(c) not in generated)}
        self.failed = {c: kiln.get(c, {'outcome': 'missing', 'said': 'the case did not run'})
                       for c in sorted(self.counted)
                       if kiln.get(c, {}).get('outcome') != 'passed'}
        bad = ('failed', 'crashed', 'hung')
        self.on_cpu_too = [c for c, row in kiln.items() if row['outcome'] in bad and c not in passed]

    def count(self, *outcomes):
        return sum(len(self.by[o]) for o in outcomes)


def percent(files):
    counted = sum(len(f.counted) for f in files)
    return 100 * (counted - sum(len(f.failed) for f in files)) / max(counted, 1)


def _cell(text):
    return re.sub(r'\s+', ' ', text).replace('|', '\\|').replace('<', '&lt;')


def table(files, reasons, cases, version):
    """The page's part between the marks."""
    rows = [(f'`{f.name}`', len(f.kiln), f.count('passed'), f.count('skipped'), f.count('platform'),
             len(f.on_cpu_too), len(f.counted), len(f.failed)) for f in files]
    rows.append(('all', *(sum(column) for column in list(zip(*rows))[1:])))
    lines = [
        f'JAX {version}, {cases} generated cases of each parametrised test, {datetime.date.today()}, '
        f'{os.cpu_count()} processors. A case counts if it passes on `cpu` and JAX does not skip it '
        f'here: of {rows[-1][6]}, {rows[-1][6] - rows[-1][7]} pass, {percent(files):.2f} %.', '',
        '| file | cases | passed | skipped | skipped by platform | fail on `cpu`, too | count | failed |',
        '|---|---|---|---|---|---|---|---|']
    lines += ['| ' + ' | '.join(str(cell) for cell in row) + ' |' for row in rows]
    by_reason = collections.defaultdict(list)
    for f in files:
        for case, row in f.failed.items():
            why = reasons.of(case) or f'not known: {row["said"][:160]}'
            if row['outcome'] != 'failed':
                why = f'{row["outcome"]}: {row["said"]}; {why}'
            by_reason[why].append(case)
    if by_reason:
        lines += ['', '| failures | reason | such as |', '|---|---|---|']
        lines += [f'| {len(c)} | {_cell(why)} | `{_cell(c[0])[:100]}` |' for why, c in
                  sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))]
    return '\n'.join(lines)


def write(page, text):
    old = pathlib.Path(page).read_text(encoding='utf-8')
    start, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    pathlib.Path(page).write_text(f'{old[:start]}\n{text}\n{old[end:]}', encoding='utf-8')
