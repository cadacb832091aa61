#!/usr/bin/env python3
"""bench_gpus - time sorts of whole files on one GPU, on one GPU opened twice, and on several GPUs

usage: bench_gpus.py PROGRAMS [OPTION]...

PROGRAMS is a directory with gsort, gsort-gen and gsort-check (run_gpu_tests.sh --pack makes one).
Each round runs every case once, without an existing output. The input is in the page cache. Prints
for each case the median, the minimum, and the ratios of the median to cp (for pipes: cat) and to
one GPU.

    --dir=DIRECTORY     directory of the files to sort (default: .)
    --sizes=BYTES,...   sizes of the inputs, random u64 (default: 8 GiB)
    --records=N         sort N records of 100 bytes with keys of 10 bytes instead
    --rounds=N          number of rounds (default: 3)
    --only=NAME,...     cases to run (default: file,parts,null,spill)
    --split=P           number of part files in the case `parts` (default: 8)
    --gpus=LIST/LIST... sets of GPUs, separated by slashes; cpu: the CPU (default: 0, 0,0, and
                        the first 2, 4, 8, ... GPUs)
    --ranks=N,...       also run the cases `file` and `parts` with N ranks of gsort-mpi that share
                        all GPUs (run_gpu_mpi_tests.sh --pack makes the programs)
    --rank-memory=SIZE  memory limit (-S) of a rank
    --check             check each output once
    --logs=DIRECTORY    run one more round, not timed, that stores statistics and traces there
    --data=DIRECTORY    write the medians to devices.json there (docs/data: for plot_benchmarks.py)

Cases:

    file     sort to one file
    parts    sort to part files
    null     sort to /dev/null
    spill    sort to /dev/null with device memory that is too small for one GPU
    disk     sort to one file in 1 GiB of host memory and 1 GiB of device memory
    disk1    like disk, with --partitions=1
    pipe     cat in | gsort > out (baseline: cat in | cat > out)
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

from bench_data import case as case_of, write

DISK = ['-S', '1G', '--device-memory=1G', '-T', '.', '-o', 'out']
SHAPES = {
    'file': ['-o', 'out'],
    'parts': ['-o', 'out'],
    'null': ['-o', '/dev/null'],
    'spill': ['-o', '/dev/null'],
    'disk': DISK,
    'disk1': DISK + ['--partitions=1'],
    'pipe': [],
}
USUAL = ('file', 'parts', 'null', 'spill')


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


def seconds_of(command, shape):
    remove_output()
    begin = time.monotonic()
    if shape == 'pipe':
        command = ['sh', '-c', 'cat in | "$@" > out', 'sh'] + command
    status = subprocess.run(command).returncode
    seconds = time.monotonic() - begin
    if status != 0:
        print(f'{" ".join(command)}: status {status}', flush=True)
    return seconds


def make_input(nbytes, n_records):
    what = ['--gensort=binary', '-n', str(n_records)] if n_records else ['-b', str(nbytes)]
    subprocess.run(['gsort-gen', *what, '-o', 'in'], check=True)
    with open('in', 'rb') as file:  # fill the page cache
        while file.read(8 << 20):
            pass


def check(name, shape, kind):
    if shape in ('null', 'spill') or name in ('cp', 'cat'):
        return
    made = 'out'
    status = subprocess.run(['gsort-check', *kind, '--same-records', 'in', made]).returncode
    print(f'{name} {shape}: {"correct" if status == 0 else "WRONG"}', flush=True)


def commands(nbytes, kind, args):
    yield 'cp', 'file', ['cp', 'in', 'out']
    if 'pipe' in args.only:
        yield 'cat', 'pipe', ['cat']
    for shape in args.only:
        for choice in args.gpus or choices(gpus()):
            if shape == 'spill' and choice in ('0,0', 'cpu'):
                continue
            devices = ['--backend=cpu'] if choice == 'cpu' else ['--backend=cuda', f'--gpus={choice}']
            command = ['gsort', *devices, *kind, *SHAPES[shape]]
            if shape == 'spill':
                command += [f'--device-memory={nbytes * 2 // 3 >> 20}M']
            if shape == 'parts':
                command += [f'--split={args.split}']
            yield choice, shape, command + ([] if shape == 'pipe' else ['in'])


def commands_of_ranks(kind, args):
    memory = [f'-S{args.rank_memory}'] if args.rank_memory else []
    for shape in set(args.only) & {'file', 'parts'}:
        for n in args.ranks:
            command = ['mpirun', '-np', str(n), 'gsort-mpi', '--gpus=all', *memory, *kind, *SHAPES[shape]]
            yield f'{n} ranks', shape, command + ([f'--split={args.split}'] if shape == 'parts' else []) + ['in']


def keep_logs(cases, prefix):
    for name, shape, command in cases:
        if command[0] == 'gsort':
            log = f'{prefix}-{shape}-{name.replace(",", "_")}'
            seconds_of(command + [f'--stats-json={log}.json', f'--trace={log}.trace'], shape)


def report(times):
    median = {case: statistics.median(t) for case, t in times.items()}
    for (name, shape), t in times.items():
        base = median['cat' if shape == 'pipe' else 'cp', 'pipe' if shape == 'pipe' else 'file']
        print(f'{shape:6} {name:8} {median[name, shape]:7.2f} s (min {min(t):.2f})'
              f'  {median[name, shape] / base:5.2f} of {"cat" if shape == "pipe" else "cp"}'
              f'  {median[name, shape] / median.get(("0", shape), 1e9):5.2f} of one GPU', flush=True)


def measure(nbytes, args):
    kind = ['-R100', '-k0:b10'] if args.records else []
    make_input(nbytes, args.records)
    cases = list(commands(nbytes, kind, args)) + list(commands_of_ranks(kind, args))
    times = {case[:2]: [] for case in cases}
    for turn in range(args.rounds):
        for name, shape, command in cases:
            times[name, shape].append(seconds_of(command, shape))
            if turn == 0 and args.check:
                check(name, shape, kind)
    if args.logs:
        keep_logs(cases, f'{args.logs}/{nbytes >> 30}')
    remove_output()
    what = f'{args.records} records of 100 bytes' if args.records else f'{nbytes >> 30} GiB of random u64'
    print(f'{what}, {args.rounds} rounds')
    report(times)
    return [case_of(name, nbytes, t, shape=f'{args.split} parts' if shape == 'parts' else shape)
            for (name, shape), t in times.items()]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('programs', type=pathlib.Path)
    parser.add_argument('--dir', default='.')
    parser.add_argument('--sizes', default=str(8 << 30))
    parser.add_argument('--records', type=int)
    parser.add_argument('--split', type=int, default=8)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--logs', type=os.path.abspath)
    parser.add_argument('--only', type=lambda text: text.split(','), default=USUAL)
    parser.add_argument('--gpus', type=lambda text: text.split('/'))
    parser.add_argument('--ranks', type=lambda text: [int(n) for n in text.split(',')], default=[])
    parser.add_argument('--rank-memory')
    parser.add_argument('--data', type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    os.environ['PATH'] = f'{args.programs.resolve()}:{os.environ["PATH"]}'
    os.chdir(args.dir)
    if args.logs:
        os.makedirs(args.logs, exist_ok=True)
    sizes = [args.records * 100] if args.records else map(int, args.sizes.split(','))
    cases = [case for size in sizes for case in measure(size, args)]
    if args.data:
        data = 'records of 100 bytes' if args.records else 'random u64'
        series = {'series': 'devices', 'data': data, 'cases': cases}
        write(args.data, series, 'tools/scripts/bench_gpus.py')
    pathlib.Path('in').unlink()


if __name__ == '__main__':
    sys.exit(main())
