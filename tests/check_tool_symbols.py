#!/usr/bin/env python3
"""check_tool_symbols - check that gsort-gen and gsort-check contain neither the engine nor CUDA

usage: check_tool_symbols.py NM GSORT TOOL...

These programs generate and check records, but do not sort. One call in the wrong file would link
the whole engine, the kernels and the CUDA runtime into them. GSORT must contain the engine;
otherwise the check would look for a wrong name. Prints one line for each violation and exits with 1
if there is any.
"""
import re
import subprocess
import sys

ENGINE = re.compile(r'^(?:sort_run|backend_choose|plan_make|merge_runs)$|cuda|cudart|_kernel', re.I)


def symbols(nm, program):
    lines = subprocess.run([nm, program], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.split()[-1] for line in lines]


def main():
    nm, gsort, *tools = sys.argv[1:]
    violations = []
    if 'sort_run' not in symbols(nm, gsort):
        violations.append(f'{gsort}: no symbol sort_run; correct the list in tests/check_tool_symbols.py')
    for tool in tools:
        names = symbols(nm, tool)
        found = sorted(name for name in names if ENGINE.search(name))
        if found:
            violations.append(f'{tool}: contains {len(found)} symbols of the engine or of CUDA: ' + ' '.join(found[:5]))
        if 'main' not in names:
            violations.append(f'{tool}: no symbol main; it is stripped')
    print('\n'.join(violations))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
