#!/usr/bin/python3
"""usage: corpus_ran.py BUILD

Fails if there are tests labelled `corpus`, and the last run of the tests ran none of them.
"""

import re
import subprocess
import sys
import xml.etree.ElementTree


def main():
    build = sys.argv[1]
    listing = subprocess.run(['ctest', '-N', '-L', '^corpus$', '-LE', '^slow$'], cwd=build,
                             check=True, stdout=subprocess.PIPE, text=True).stdout
    corpus = set(re.findall(r'^\s*Test\s*#\d+: (.*?)\s*$', listing, re.MULTILINE))
    if not corpus:
        print('There are no corpus tests.')
        return 0
    cases = xml.etree.ElementTree.parse(f'{build}/tests.xml').getroot().iter('testcase')
    ran = {c.get('name') for c in cases if c.get('status') == 'run'} & corpus
    print(f'{len(ran)} of {len(corpus)} corpus tests ran.')
    return 0 if ran else 1


if __name__ == '__main__':
    sys.exit(main())
