#!/usr/bin/env python3
"""check_doubles - check that the product calls each function that a test replaces

usage: check_doubles.py OBJDUMP [PROGRAM FUNCTION,...]...

The linker option --wrap=FUNCTION replaces only calls between object files. If the caller and the
function are merged into one file, nothing calls __wrap_FUNCTION, and its tests pass without testing
anything. So some code outside of __wrap_FUNCTION must refer to it. Prints one line for each double
that nothing calls and exits with 1 if there is any.
"""
import collections
import re
import subprocess
import sys

FUNCTION = re.compile(r'^[0-9a-f]+ <(\w+)[.>]')
REFERENCE = re.compile(r'<__wrap_(\w+)>$')


def callers(objdump, program):
    """Return double -> the functions that refer to it."""
    text = subprocess.run([objdump, '-d', '--no-show-raw-insn', program], check=True, capture_output=True,
                          text=True).stdout
    result, function = collections.defaultdict(set), ''
    for line in text.splitlines():
        begin = FUNCTION.match(line)
        reference = REFERENCE.search(line)
        if begin:
            function = begin[1]
        elif reference and function != '__wrap_' + reference[1]:
            result[reference[1]].add(function)
    return result


def main():
    objdump, *rest = sys.argv[1:]
    violations = []
    for program, functions in zip(rest[::2], rest[1::2]):
        called = callers(objdump, program)
        violations += [f'{program}: nothing calls the double of {function}; move its callers to another file'
                       for function in functions.split(',') if not called[function]]
    print('\n'.join(violations))
    return 1 if violations or not rest else 0


if __name__ == '__main__':
    sys.exit(main())
