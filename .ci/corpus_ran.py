#!/usr/bin/python3
"""usage: corpus_ran.py BUILD

Prints why tests were skipped in the last run of the tests. Fails if there are tests labelled
`corpus`, and it ran none of them.
"""

import re
import subprocess
import sys
import xml.etree.ElementTree


def print_reasons(cases):
    """The last line of each skipped test's output, once, behind the names of its tests."""
    tests_of = {}
    for case in cases:
        if case.find('skipped') is not None:
            lines = (case.findtext('system-out') or '').split('\n')
            reason = next((line.strip() for line in reversed(lines) if line.strip()), 'no reason')
            tests_of.setdefault(reason, []).append(case.get('name'))
    for reason, tests in tests_of.items():
        print(f'{", ".join(tests)}: {reason}')


def main():
    build = sys.argv[1]
    cases = list(xml.etree.ElementTree.parse(f'{build}/tests.xml').getroot().iter('testcase'))
    print_reasons(cases)
    listing = subprocess.run(['ctest', '-N', '-L', '^corpus$', '-LE', '^slow$'], cwd=build,
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    corpus = set(re.findall(r'^\s*Test\s*#\d+: (.*?)\s*$', listing, re.MULTILINE))
    if not corpus:
        print('There are no corpus tests.')
        return 0
    ran = {c.get('name') for c in cases if c.get('status') == 'run'} & corpus
    print(f'{len(ran)} of {len(corpus)} corpus tests ran.')
    return 0 if ran else 1


if __name__ == '__main__':
    sys.exit(main())
