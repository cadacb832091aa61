#!/usr/bin/env python3
"""check_syntax - check the sources of a build with the warnings of another compiler

usage: check_syntax.py BUILD C_COMPILER CXX_COMPILER

Runs each command of BUILD/compile_commands.json with the other compiler, -fsyntax-only and -Werror.
Generates no code. Assertions are enabled. Prints the errors of the compiler and exits with 1 if
there are any.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys

COMPILERS = {'.c': 0, '.cc': 1}
DROPPED = {'-c', '-MD', '-MMD', '-DNDEBUG'}
DROPPED_WITH_VALUE = {'-o', '-MF', '-MQ', '-MT'}


def arguments_of(entry):
    """Return the arguments of a command without compiler, output, dependency file and source."""
    words = iter(shlex.split(entry['command']))
    for word in words:
        if word.startswith('-'):
            break
    kept = []
    while word:
        if word in DROPPED_WITH_VALUE:
            next(words)
        elif word not in DROPPED and word != entry['file'] and '.p' not in pathlib.PurePath(word).suffixes:
            kept.append(word)
        word = next(words, None)
    return kept


def compile_errors(job):
    folder, command = job
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ''


def main():
    build, *compilers = sys.argv[1:]
    jobs = {}
    for entry in json.loads((pathlib.Path(build) / 'compile_commands.json').read_text()):
        suffix = pathlib.PurePath(entry['file']).suffix
        if suffix in COMPILERS:
            command = [compilers[COMPILERS[suffix]], *arguments_of(entry), '-fsyntax-only', '-Werror', entry['file']]
            jobs[tuple(command)] = (entry['directory'], command)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = [c for c in pool.map(compile_errors, jobs.values()) if c]
    print('\n'.join(complaints) or f'{len(jobs)} files')
    return 1 if complaints or not jobs else 0


if __name__ == '__main__':
    sys.exit(main())
