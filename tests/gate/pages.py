#!/usr/bin/python3
"""usage: pages.py REPOSITORY

The page of each public function says what a caller must know: since which version there is the
function, which threads may call it, and what it returns where it can fail. What all functions of a
header have in common stands in the comment at its head (@file).
"""

import os
import re
import sys

FUNCTION = re.compile(r'/\*\*((?:(?!\*/).)*)\*/\s*(KILN_API[^;]*;)', re.DOTALL)
HEAD = re.compile(r'/\*\* @file(.*?)\*/', re.DOTALL)


def errors_of(header, text):
    head = HEAD.search(text)
    common = head.group(1) if head else ''
    errors = []
    seen = set()
    for page, declaration in FUNCTION.findall(text):
        name = re.search(r'(kiln_\w+)\(', declaration).group(1)
        seen.add(name)
        can_fail = declaration.replace('KILN_API', '').strip().startswith('kiln_error*')
        missing = []
        if '\\since' not in page + common:
            missing.append('since which version')
        if not re.search(r'[Tt]hread', page + common):
            missing.append('its threads')
        if can_fail and '@return' not in page:
            missing.append('its errors')
        errors += [f'{header}: {name} does not say {what}' for what in missing]
    for name in re.findall(r'^KILN_API[^;(]*?(kiln_\w+)\(', text, re.MULTILINE):
        if name not in seen:
            errors.append(f'{header}: {name} has no page')
    return errors


def main(root):
    errors = []
    folder = os.path.join(root, 'include/kiln')
    for header in sorted(os.listdir(folder)):
        if header.endswith('.h'):
            with open(os.path.join(folder, header), encoding='utf-8') as file:
                errors += errors_of(header, file.read())
    for error in errors:
        print(error)
    print(f'{len(errors)} errors')
    return 1 if errors else 0


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
