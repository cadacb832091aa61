#!/usr/bin/env python3
"""check_headers - check that each C header compiles alone, even if it is included twice

usage: check_headers.py SOURCE_ROOT BUILD_ROOT COMPILER...

Skips .cuh files, which need nvcc, and .inc files, which are parts of a source file. Prints the
errors of the compiler and exits with 1 if there are any.
"""
import concurrent.futures
import os
import pathlib
import platform
import subprocess
import sys

FLAGS = ['-std=gnu17', '-D_GNU_SOURCE', '-D_FILE_OFFSET_BITS=64', '-Wall', '-Wextra', '-Werror',
         '-fsyntax-only', '-x', 'c', '-']
# CUDA may not be installed, so headers of the emulated runtime replace its headers.
FOLDERS = ['.', 'tests/kernels/cuda_emulation']
IS_X86 = platform.machine() == 'x86_64'


def headers(root):
    for top in ('include', 'io', 'kernels', 'src'):
        for header in sorted((root / top).rglob('*.h')):
            if IS_X86 or header.parent.name != 'x86':
                yield header


def flags_of(header):
    """Return the flags of the files that include the header."""
    return ['-march=x86-64-v4'] if header.parent.name == 'x86' else []


def compile_errors(root, build, compiler, header):
    name = header.relative_to(root).as_posix()
    text = f'#include "{name}"\n#include "{name}"\n'
    includes = [f'-I{root / folder}' for folder in FOLDERS] + [f'-I{build}']
    done = subprocess.run(compiler + includes + flags_of(header) + FLAGS, input=text, text=True,
                          capture_output=True, check=False)
    return f'{name}: does not compile alone:\n{done.stderr}' if done.returncode else ''


def main():
    root, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    found = list(headers(root))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [c for c in pool.map(lambda h: compile_errors(root, build, compiler, h), found) if c]
    if not found:
        complaints.append('no headers found')
    print('\n'.join(complaints))
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
