#!/usr/bin/env python3
"""bench_series - measure the series that plot_benchmarks.py draws

usage: bench_series.py PROGRAMS OUTPUT [--dir=DIRECTORY] [--sizes=BYTES,...]
                       [--threads-size=BYTES] [--lines-size=BYTES] [--rounds=N]

PROGRAMS is a directory with gsort, gsort-gen, gsort-check and, for the kernels,
gsort-bench-kernels (run_gpu_tests.sh --pack makes one). Writes files.json, lines.json, threads.json
and kernels.json to the directory OUTPUT. To update the pictures, copy these files to docs/data and
run plot_benchmarks.py. Files to sort are written to DIRECTORY (default: here), which needs three
times the largest size. With the default sizes (16 MiB to 8 GiB) a run takes less than 4 minutes on
16 processors and a GPU.

Each round runs every program once, without an existing output. The input is in the page cache. The
result is the median of the rounds. Each output is checked once: gsort's with gsort-check, others by
size. Outputs of lines must be equal. For inputs of 2 GiB or more, numpy, cupy and GNU sort run in
the first round only. threads.json has one round. A GPU, numpy, cupy or gsort-bench-kernels that is
missing is skipped.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

from bench_data import case, write

MIB = 1 << 20
SIZES = [16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB, 4096 * MIB, 8192 * MIB]
LARGE = 2048 * MIB
COMMAND = 'tools/scripts/bench_series.py'

PYTHON = '''
import numpy, {0} as m
a = m.asarray(numpy.fromfile('in', dtype=numpy.uint64))
a.sort()
(a.get() if hasattr(a, 'get') else a).tofile('out')'''

ROW = re.compile(r'^(\S.*?) +(\d+) B +(\d+) +([\d.]+) ms ')


def succeeds(*command):
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def seconds_of(command):
    pathlib.Path('out').unlink(missing_ok=True)
    begin = time.monotonic()
    subprocess.run(command, check=True)
    return time.monotonic() - begin


def make_input(nbytes):
    subprocess.run(['gsort-gen', '-b', str(nbytes), '-o', 'in'], check=True)
    with open('in', 'rb') as file:  # fill the page cache
        while file.read(8 * MIB):
            pass


def check_output(name, nbytes):
    if os.path.getsize('out') != nbytes:
        sys.exit(f'{name}: output and input differ in size')
    if name.startswith('gsort') and not (succeeds('gsort-check', 'out') and
                                         succeeds('gsort-check', '--same-records', 'in', 'out')):
        sys.exit(f'{name}: the output is wrong')


def measure(commands, nbytes, rounds):
    """Run each command in each round. Return name -> the seconds of its rounds."""
    times = {name: [] for name in commands}
    for number in range(rounds):
        for name, command in commands.items():
            if number and nbytes >= LARGE and name in ('numpy', 'cupy'):
                continue
            times[name].append(seconds_of(command))
            if not number:
                check_output(name, nbytes)
    return times


def gsort(*options):
    return ['gsort', *options, 'in', '-o', 'out']


def available_commands():
    """Return name -> command of each program that this machine can run."""
    commands = {'cp': ['cp', 'in', 'out']}
    make_input(MIB)
    if succeeds(*gsort('--backend=cuda')):
        commands['gsort, GPU'] = gsort('--backend=cuda')
    commands['gsort, CPU'] = gsort('--backend=cpu')
    for module in ('numpy', 'cupy'):
        if succeeds(sys.executable, '-c', f'import {module}; {module}.zeros(1)'):
            commands[module] = [sys.executable, '-c', PYTHON.format(module)]
    return commands


def measure_files(options):
    commands, cases = available_commands(), []
    for nbytes in options.sizes:
        make_input(nbytes)
        times = measure(commands, nbytes, options.rounds)
        cases += [case(name, nbytes, seconds) for name, seconds in times.items()]
    return {'series': 'files', 'data': 'random u64', 'cases': cases}


def make_lines(nbytes):
    """Write random lines of 28 base64 digits."""
    subprocess.run(f'gsort-gen -b {nbytes // 29 * 21} | base64 -w 28 > in', shell=True, check=True)
    if os.path.getsize('in') < nbytes * 9 // 10:
        sys.exit('gsort-gen failed')


def measure_lines(options):
    make_lines(options.lines_size)
    processors = len(os.sched_getaffinity(0))
    commands = {'cp': ['cp', 'in', 'out'], 'gsort, CPU': gsort('--lines', '--backend=cpu'),
                'GNU sort': ['sort', f'--parallel={processors}', '-S', '50%', 'in', '-o', 'out']}
    if succeeds(*gsort('--lines', '--backend=cuda')):
        commands['gsort, GPU'] = gsort('--lines', '--backend=cuda')
    nbytes, times, digests = os.path.getsize('in'), {name: [] for name in commands}, {}
    for number in range(options.rounds):
        for name, command in commands.items():
            if number and nbytes >= LARGE and name == 'GNU sort':
                continue
            times[name].append(seconds_of(command))
            if not number and name != 'cp':
                digests[name] = subprocess.run(['sha256sum', 'out'], capture_output=True, check=True).stdout
    if len(set(digests.values())) > 1:
        sys.exit('lines: the outputs differ')
    return {'series': 'lines', 'data': 'random lines of 28 characters',
            'cases': [case(name, nbytes, seconds) for name, seconds in times.items()]}


def measure_threads(options):
    n = [1 << i for i in range(10) if 1 << i <= len(os.sched_getaffinity(0))]
    nbytes = options.threads_size
    make_input(nbytes)
    times = measure({f'gsort {k}': gsort('--backend=cpu', f'--parallel={k}') for k in n}, nbytes, 1)
    return {'series': 'threads', 'data': 'random u64',
            'cases': [case('gsort, CPU', nbytes, times[f'gsort {k}'], threads=k) for k in n]}


def measure_kernels():
    """Return the medians that gsort-bench-kernels prints, or None if it cannot run."""
    try:
        completed = subprocess.run(['gsort-bench-kernels', 'sort', '--runs=5'], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    rows = [found.groups() for found in map(ROW.match, completed.stdout.splitlines()) if found]
    if completed.returncode or not rows:
        return None
    return {'series': 'kernels', 'data': 'random elements in device memory',
            'cases': [case(name, int(nbytes) * int(n), [float(ms) / 1000], element_bytes=int(nbytes))
                      for name, nbytes, n, ms in rows]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('programs', type=pathlib.Path)
    parser.add_argument('output', type=pathlib.Path)
    parser.add_argument('--dir', default='.')
    parser.add_argument('--sizes', type=lambda text: [int(n) for n in text.split(',')], default=SIZES)
    parser.add_argument('--threads-size', type=int, default=4096 * MIB)
    parser.add_argument('--lines-size', type=int, default=4096 * MIB)
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    output = options.output.resolve()
    output.mkdir(parents=True, exist_ok=True)
    # A packed directory holds the libraries of the programs, too.
    for name in ('PATH', 'LD_LIBRARY_PATH'):
        os.environ[name] = f"{options.programs.resolve()}{os.pathsep}{os.environ.get(name, '')}"
    os.environ['LC_ALL'] = 'C'
    os.chdir(options.dir)
    try:
        write(output, measure_files(options), COMMAND)
        write(output, measure_lines(options), COMMAND)
        write(output, measure_threads(options), COMMAND)
    finally:
        for name in ('in', 'out'):
            pathlib.Path(name).unlink(missing_ok=True)
    kernels = measure_kernels()
    if kernels:
        write(output, kernels, COMMAND)


if __name__ == '__main__':
    main()
