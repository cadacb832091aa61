#!/usr/bin/env python3
"""devices - sort whole files on one GPU, on the same one twice, and on all that there are

usage: devices.py PROGRAMS [--dir=DIRECTORY] [--sizes=BYTES,...] [--rounds=N] [--logs=DIRECTORY]
                  [--only=NAME,...] [--check]

PROGRAMS is a directory with gsort, gsort-gen and gsort-check, as `gpu_run.sh --pack` makes it. For each size
(default: 8 GiB) a file of random u64 in the page cache is sorted into a file, into eight parts, to nowhere, and,
to nowhere, with so little device memory that one GPU cannot hold it and two can; everything in turn, round after
round, with no output there. `cp` takes part. Medians are told, against `cp` and against one GPU, and the
quickest beside them. With --check, each output is looked at once. Of the last round the statistics and
the trace of each case go to --logs.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

SHAPES = {
    'file': ['-o', 'out'],
    'parts': ['--parts=8', '-o', 'out'],
    'null': ['-o', '/dev/null'],
    'spill': ['-o', '/dev/null'],
}


def gpus():
    listed = subprocess.run(['nvidia-smi', '-L'], capture_output=True, text=True, check=True).stdout
    return sum(line.startswith('GPU ') for line in listed.splitlines())


def choices(n_gpus):
    yield '0'
    yield '0,0'
    count = 2
    while count <= n_gpus:
        yield ','.join(map(str, range(count)))
        count *= 2


def remove_output():
    for path in pathlib.Path('.').glob('out*'):
        path.unlink()


def seconds_of(command):
    remove_output()
    begin = time.monotonic()
    status = subprocess.run(command).returncode
    seconds = time.monotonic() - begin
    if status != 0:
        print(f'{" ".join(command)}: status {status}', flush=True)
    return seconds


def make_input(nbytes):
    subprocess.run(['gsort-gen', '-b', str(nbytes), '-o', 'in'], check=True)
    with open('in', 'rb') as file:  # into the page cache
        while file.read(8 << 20):
            pass


def check(name, shape):
    made = {'file': 'out', 'parts': 'out.parts'}.get(shape)
    if made and name != 'cp':
        status = subprocess.run(['gsort-check', '--same', 'in', made]).returncode
        print(f'{name} {shape}: {"as it should be" if status == 0 else "WRONG"}', flush=True)


def commands(nbytes, n_gpus, only):
    yield 'cp', 'file', ['cp', 'in', 'out']
    for shape, arguments in SHAPES.items():
        if only and shape not in only:
            continue
        for choice in choices(n_gpus):
            if shape == 'spill':
                if choice == '0,0':
                    continue
                arguments = SHAPES[shape] + [f'--device-memory={nbytes * 2 // 3 >> 20}M']
            yield choice, shape, ['gsort', f'--gpus={choice}', 'in'] + arguments


def measure(nbytes, args, n_gpus):
    make_input(nbytes)
    cases = list(commands(nbytes, n_gpus, args.only))
    times = {case[:2]: [] for case in cases}
    for turn in range(args.rounds):
        for name, shape, command in cases:
            if turn == args.rounds - 1 and args.logs and name != 'cp':
                log = f'{args.logs}/{nbytes >> 30}-{shape}-{name}'
                command = command + [f'--stats-json={log}.json', f'--trace={log}.trace']
            times[name, shape].append(seconds_of(command))
            if turn == 0 and args.check:
                check(name, shape)
    remove_output()
    print(f'{nbytes >> 30} GiB of random u64, {args.rounds} rounds')
    median = {case: statistics.median(t) for case, t in times.items()}
    for (name, shape), t in times.items():
        print(f'{shape:6} {name:8} {median[name, shape]:7.2f} s (least {min(t):.2f})'
              f'  {median[name, shape] / median["cp", "file"]:5.2f} of cp'
              f'  {median[name, shape] / median.get(("0", shape), 1e9):5.2f} of one GPU', flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('programs', type=pathlib.Path)
    parser.add_argument('--dir', default='.')
    parser.add_argument('--sizes', default=str(8 << 30))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--logs', type=os.path.abspath)
    parser.add_argument('--only', type=lambda text: text.split(','))
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    os.environ['PATH'] = f'{args.programs.resolve()}:{os.environ["PATH"]}'
    os.chdir(args.dir)
    n_gpus = gpus()
    for size in args.sizes.split(','):
        measure(int(size), args, n_gpus)
    pathlib.Path('in').unlink()


if __name__ == '__main__':
    sys.exit(main())
