#!/usr/bin/env python3
"""exported_symbols - check that the library exports exactly the functions of its header

usage: exported_symbols.py NM SOURCE_ROOT SHARED_LIBRARY ARCHIVE

The functions of include/gsort.h must be those of src/lib/symbols.map and docs/library.md, and the
symbols that the shared library and the archive define. Prints one line for each violation and exits
with 1 if there is any. Removing a function breaks programs and requires a new soname.
"""
import pathlib
import re
import subprocess
import sys


def defined(nm, library, *flags):
    text = subprocess.run([nm, *flags, '--defined-only', library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1] for line in text.splitlines() if re.match(r'^[0-9a-f]+ [A-Z] ', line)}
    return {name.split('@')[0] for name in names} - {'GSORT_0.3'}


def main():
    nm, root, shared, archive = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    header = set(re.findall(r'^GSORT_API[^(]*?\b(gsort_\w+)\(', (root / 'include/gsort.h').read_text(), re.M))
    lists = {
        'src/lib/symbols.map': set(re.findall(r'^\t(\w+);', (root / 'src/lib/symbols.map').read_text(), re.M)),
        'docs/library.md': set(re.findall(r'\b(gsort_\w+)\(', (root / 'docs/library.md').read_text())),
        shared: defined(nm, shared, '-D'),
        archive: defined(nm, archive, '-g'),
    }
    violations = ['no functions were found in the header'] * (not header)
    for name, found in lists.items():
        violations += [f'{name}: {symbol} is missing' for symbol in sorted(header - found)]
        violations += [f'{name}: {symbol} is not in the header' for symbol in sorted(found - header)]
    print('\n'.join(violations))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
