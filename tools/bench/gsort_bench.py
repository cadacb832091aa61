#!/usr/bin/env python3
"""gsort-bench - measure the speed of gsort and of the disk

usage: gsort-bench file|explain|io [OPTION]...

file     time sorts of files by memory and data, against cp and text tools
explain  compare the times that --explain predicts with those of sorts
io       time the disk and the page cache without sorting

Ratios within one run are meaningful; times on a shared machine are not. So each round runs every
case once, and medians are compared: a slow minute affects all cases. Inputs are in the page cache.
Each output is removed before the next program starts, so that no program waits for the write-back
of another. Exits with 2 after an error. gsort-bench-kernels measures GPU kernels.
"""
import argparse
import concurrent.futures
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

# -Dprogram_name renames gsort and gsort-bench.
PROGRAM = os.path.basename(__file__).removesuffix('-bench').removesuffix('_bench.py')
CPUS = len(os.sched_getaffinity(0))
MAX_REPEATS = 99
SUFFIXES = {'b': 1, **{letter: 1 << 10 * (i + 1) for i, letter in enumerate('KMGTPE')}}


class Failure(Exception):
    """An error message for the user"""


def parse_size(text):
    """Parse a size like gsort -S: in KiB without a suffix"""
    factor = SUFFIXES.get(text[-1:])
    number = text[:-1] if factor else text
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f'invalid size {text!r}')
    return int(number) * (factor or 1024)


def tool(name):
    """Return the path of gsort-gen or gsort-check: beside this script, else in $PATH"""
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), f'{PROGRAM}-{name}')
    return path if os.access(path, os.X_OK) else f'{PROGRAM}-{name}'


def version():
    return subprocess.run([tool('gen'), '--version'], stdout=subprocess.PIPE, check=True,
                          text=True).stdout.split()[-1]


# --- programs ---

def warm_memory(nbytes):
    """
    Touch and free nbytes, but at most half of what is available, so that every program starts with
    the same free memory. A virtual machine returns free pages to its host after some seconds; the
    next program that touches them waits for the host. Runs in a child process, because the kernel
    counts the peak size of a parent for its children.
    """
    with open('/proc/meminfo', encoding='ascii') as file:
        fields = dict(line.split(':') for line in file)
    limits = [int(fields['MemAvailable'].split()[0]) * 1024]
    try:
        with open('/sys/fs/cgroup/memory.max', encoding='ascii') as file:
            limits.append(int(file.read()))
    except (OSError, ValueError):  # no control group, or "max"
        pass
    nbytes = min(nbytes, min(limits) // 2)
    pid = os.fork()
    if pid == 0:
        try:
            memory = mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory[::4096] = b'\1' * len(range(0, nbytes, 4096))
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def timed_run(command):
    """
    Run a command that must succeed. Returns seconds, CPU seconds, and peak memory, which is at
    least that of this script.
    """
    begin = time.monotonic()
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Failure(f'{command[0]}: cannot start: {error.strerror}') from error
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failure(f'{command[0]} failed: status {process.returncode}')
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def generate(path, *options):
    subprocess.run([tool('gen'), *options, '-o', path], check=True)


def write_json(path, results):
    """Write JSON with one line for each member and for each element of a list"""
    rows = []
    for key, value in results.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = '[\n' + ',\n'.join(f'    {json.dumps(one)}' for one in value) + '\n  ]'
        rows.append(f'  {json.dumps(key)}: {text}')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('{\n' + ',\n'.join(rows) + '\n}\n')


def quietly(*command):
    """Return whether a command succeeds"""
    return subprocess.run(command, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


# --- file ---

RECORD = ['-R100', '-k0:b10']

# name: record size, options of gsort-check, options of gsort-gen
DATA = {
    'random': (8, [], []),
    'sorted': (8, [], ['-dsorted']),
    'reversed': (8, [], ['-dreversed']),
    'equal': (8, [], ['-dequal']),
    'text': (8, ['-tb8'], []),  # the order of bytes is that of their hexadecimal form
    'small': (8, [], []),
    'gensort': (100, RECORD, ['--gensort=ascii']),
}


def cp(case):
    return ['cp', case.input, case.output]


def gsort(case):
    record = RECORD if case.data == 'gensort' else []
    return [case.gsort, case.input, '-o', case.output, '-S', case.memory, '-T', case.dir, *record]


def sort_text(case):
    script = 'xxd -p -c8 "$1" | LC_ALL=C sort | xxd -r -p > "$2"'
    return ['sh', '-c', script, 'sh', case.input, case.output]


def sort_lines(case):
    return ['env', 'LC_ALL=C', 'sort', '-S', case.memory, '--parallel', str(CPUS), '-T', case.dir,
            '-o', case.output, case.input]


# command, data, and -S in sixteenths of the input
FILE_CASES = {
    'cp': (cp, 'random', 0),
    'gsort, memory 4 x input': (gsort, 'random', 64),
    'gsort, memory 1/4': (gsort, 'random', 4),
    'gsort, memory 1/16': (gsort, 'random', 1),
    'gsort, sorted': (gsort, 'sorted', 64),
    'gsort, reversed': (gsort, 'reversed', 64),
    'gsort, all equal': (gsort, 'equal', 64),
    'xxd | sort | xxd': (sort_text, 'text', 0),
    'gsort, 1000 keys': (gsort, 'small', 64),
    'records: cp': (cp, 'gensort', 0),
    'records: sort, 2 x input': (sort_lines, 'gensort', 32),
    'records: gsort, 2 x input': (gsort, 'gensort', 32),
    'records: gsort, 1/8': (gsort, 'gensort', 2),
}

# Targets: name, case, reference case, bound. The value is the ratio of their times per byte, or
# seconds without a reference case.
TARGETS = [
    ('ample memory against cp', 'gsort, memory 4 x input', 'cp', 'at_most', 2.5),
    ('memory 1/4 against cp', 'gsort, memory 1/4', 'cp', 'at_most', 4),
    ('memory 1/16 against 1/4', 'gsort, memory 1/16', 'gsort, memory 1/4', 'at_most', 1.3),
    ('xxd | sort | xxd against gsort', 'xxd | sort | xxd', 'gsort, memory 4 x input', 'at_least',
     40),
    ('sorted against random', 'gsort, sorted', 'gsort, memory 4 x input', 'at_most', 0.5),
    ('reversed against random', 'gsort, reversed', 'gsort, memory 4 x input', 'at_most', 1.1),
    ('all equal against random', 'gsort, all equal', 'gsort, memory 4 x input', 'at_most', 1.1),
    ('start-up, in seconds', 'gsort, 1000 keys', None, 'at_most', 0.010),
    ('records: sort against gsort', 'records: sort, 2 x input', 'records: gsort, 2 x input',
     'at_least', 6),
    ('records: against gsort, 1/8', 'records: sort, 2 x input', 'records: gsort, 1/8', 'at_least',
     4),
]


class FileCase:
    """A program with its input, and the costs of its runs"""

    def __init__(self, name, options, directory):
        self.name, self.gsort, self.dir = name, options.gsort, directory
        self.command, self.data, sixteenths = FILE_CASES[name]
        record_nbytes = DATA[self.data][0]
        n_records = (1000 if self.data == 'small' else
                     options.size // 64 // 8 if self.data == 'text' else
                     options.size // record_nbytes)
        self.input, self.output = f'{directory}/{self.data}', f'{directory}/output'
        self.n_records, self.nbytes = n_records, n_records * record_nbytes
        self.memory = f'{self.nbytes // 16 * sixteenths + 1}b'
        self.costs = []

    def make_input(self):
        if not os.path.exists(self.input):
            generate(self.input, '-n', str(self.n_records), *DATA[self.data][2])

    def run(self):
        if os.path.exists(self.output):
            os.unlink(self.output)
        warm_memory(3 * self.nbytes)
        return timed_run(self.command(self))

    def check_output(self):
        check = DATA[self.data][1]
        if self.command != cp and not quietly(tool('check'), *check, self.output):
            raise Failure(f'{self.name}: the output is not sorted')
        if not quietly(tool('check'), *check, '--same-records', self.input, self.output):
            raise Failure(f'{self.name}: the output does not hold the records of the input')

    def median(self, column):
        return statistics.median(cost[column] for cost in self.costs)

    def result(self):
        return {'name': self.name, 'input_bytes': self.nbytes,
                'median_s': round(self.median(0), 6), 'cpu_s': round(self.median(1), 6),
                'peak_rss_bytes': max(cost[2] for cost in self.costs),
                'seconds': [round(cost[0], 6) for cost in self.costs]}


def size_text(nbytes):
    for unit in ('B', 'KiB', 'MiB', 'GiB'):
        if nbytes < 1024 or unit == 'GiB':
            return f'{nbytes:.0f} B' if unit == 'B' else f'{nbytes:.1f} {unit}'
        nbytes /= 1024


def compare_with_targets(cases):
    figures = []
    for name, numerator, denominator, kind, bound in TARGETS:
        if numerator in cases:
            value = cases[numerator].median(0)
            if denominator:
                value *= cases[denominator].nbytes / cases[denominator].median(0)
                value /= cases[numerator].nbytes
            is_met = value >= bound if kind == 'at_least' else value <= bound
            figures.append({'name': name, 'measured': round(value, 6), kind: bound,
                            'met': is_met})
    return figures


def bench_file(options, directory):
    """Run and check each case once. Then time all cases in each round."""
    is_record = {'all': (False, True), 'keys': (False,), 'records': (True,)}[options.only]
    cases = {name: FileCase(name, options, directory) for name in FILE_CASES
             if name.startswith('records') in is_record}
    for case in cases.values():
        case.make_input()
    print('checking the results', file=sys.stderr)
    for case in cases.values():
        case.run()
        case.check_output()
    for number in range(options.repeat):
        print(f'round {number + 1} of {options.repeat}', file=sys.stderr)
        for case in cases.values():
            case.costs.append(case.run())
    print(f'{"":26} {"input":>10} {"seconds":>10} {"on processor":>12} {"MB/s":>8} '
          f'{"peak memory":>12}')
    results = [case.result() for case in cases.values()]
    for one in results:
        print(f'{one["name"]:26} {size_text(one["input_bytes"]):>10} {one["median_s"]:10.4f} '
              f'{one["cpu_s"]:12.4f} {one["input_bytes"] * 1e-6 / one["median_s"]:8.0f} '
              f'{size_text(one["peak_rss_bytes"]):>12}')
    figures = compare_with_targets(cases)
    print(f'\n{"":36} {"measured":>10} {"target":>10}')
    for one in figures:
        sign, bound = ('>=', one['at_least']) if 'at_least' in one else ('<=', one['at_most'])
        print(f'{one["name"]:36} {one["measured"]:10.3f} {sign:>4} {bound:5g}'
              f'{"" if one["met"] else "  missed"}')
    return {'version': version(), 'processors': CPUS, 'size_bytes': options.size, 'cases': results,
            'figures': figures}


# --- explain ---

# -S in sixteenths of the input, one more option, the data, and whether a pipe has it
EXPLAIN_CASES = {
    'in memory': (64, [], 'random', False),
    'spilled': (4, [], 'random', False),
    'two passes': (1, ['--batch-size=8'], 'random', False),
    'records': (4, RECORD, 'gensort', False),
    'pipe with a size': (4, [], 'random', True),
}


def run_explain_case(options, directory, name):
    """Return the predicted and the measured seconds"""
    sixteenths, more, data, is_pipe = EXPLAIN_CASES[name]
    output = f'{directory}/output'
    command = [options.gsort, '-' if is_pipe else f'{directory}/{data}', '-o', output, '-T',
               directory, '-S', f'{options.size // 16 * sixteenths + 1}b', *more]
    # A shell starts gsort with and without a pipe, so that both include its time.
    shell = ['sh', '-c', 'cat "$0" | "$@"' if is_pipe else 'exec "$@"', f'{directory}/{data}']
    assumed = [f'--assume-size={options.size}b'] if is_pipe else []
    if os.path.exists(output):
        os.unlink(output)
    plan = subprocess.run([*shell, *command, '--explain', *assumed], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    total = [line for line in plan.splitlines() if line.startswith('total: about ')]
    if not total:
        raise Failure('--explain: no total time in the output')
    warm_memory(3 * options.size)
    return float(total[-1].split()[2]), timed_run([*shell, *command])[0]


def bench_explain(options, directory):
    generate(f'{directory}/random', '-b', str(options.size))
    generate(f'{directory}/gensort', '-n', str(options.size // 100), '--gensort=ascii')
    times = {name: [] for name in EXPLAIN_CASES}
    for number in range(options.repeat):
        print(f'round {number + 1} of {options.repeat}', file=sys.stderr)
        for name, rounds in times.items():
            rounds.append(run_explain_case(options, directory, name))
    print(f'{"case":18} {"predicted":>11} {"measured":>11} {"ratio":>7}')
    for name, rounds in times.items():
        predicted, measured = (statistics.median(column) for column in zip(*rounds))
        print(f'{name:18} {predicted:9.3f} s {measured:9.3f} s {predicted / measured:7.2f}')


# --- io ---

# operation, access to files, whether space is reserved, and transfers in flight
IO_CASES = [
    *(('read', mode, False, n) for mode in ('cached', 'cold') for n in (1, 2, 4, 8)),
    *(('read', 'direct', False, n) for n in (1, 4, 8, 16)),
    *(('write', 'cached', reserved, n) for reserved in (False, True) for n in (1, 2, 4)),
    *(('write', 'direct', True, n) for n in (1, 4, 8, 16)),
    *((operation, mode, True, n) for operation in ('copy', 'copy twice')
      for mode, n in (('cached', 2), ('cold', 4), ('direct', 8))),
]


class IoBench:
    """
    Transfers without sorting. "copy twice" is a lower bound for an external sort, which reads and
    writes all data twice. Files have no names, so they disappear with the program. All data is
    synced before each case, so that no case waits for the previous one. A cached case ends when the
    data is in the page cache, like a sort.
    """

    def __init__(self, options, directory):
        self.directory = directory
        self.request, self.nbytes = options.request, options.size - options.size % options.request
        # One buffer for each thread.
        self.buffers = [mmap.mmap(-1, self.request) for _ in range(16)]
        self.input = self.make_file()
        for offset in range(0, self.nbytes, self.request):
            os.pwrite(self.input, os.urandom(self.request), offset)

    def make_file(self):
        return os.open(self.directory, os.O_RDWR | os.O_TMPFILE, 0o600)

    @staticmethod
    def reopen(file, mode):
        """Raises OSError if the file system refuses direct I/O."""
        return os.open(f'/proc/self/fd/{file}',
                       os.O_RDWR | (os.O_DIRECT if mode == 'direct' else 0))

    def prepare(self, mode):
        os.sync()
        if mode != 'cached':
            os.posix_fadvise(self.input, 0, 0, os.POSIX_FADV_DONTNEED)
            return
        for offset in range(0, self.nbytes, self.request):
            os.preadv(self.input, [self.buffers[0]], offset)

    def transfer(self, source, target, depth):
        """Transfer all bytes, with a thread for each transfer in flight."""
        def work(number):
            buffer = self.buffers[number]
            for offset in range(number * self.request, self.nbytes, depth * self.request):
                if source is not None and os.preadv(source, [buffer], offset) != self.request:
                    raise Failure(f'{self.directory}: short read')
                if target is not None and os.pwritev(target, [buffer], offset) != self.request:
                    raise Failure(f'{self.directory}: short write')

        with concurrent.futures.ThreadPoolExecutor(depth) as threads:
            list(threads.map(work, range(depth)))

    def write_new(self, source, mode, reserved, depth):
        unnamed = self.make_file()
        target = self.reopen(unnamed, mode)
        os.close(unnamed)
        if reserved:
            os.posix_fallocate(target, 0, self.nbytes)
        self.transfer(source, target, depth)
        return target

    def run(self, operation, mode, reserved, depth):
        """Return the seconds, or None if direct I/O is refused"""
        try:
            files = [self.reopen(self.input, mode)]
        except OSError:
            return None
        self.prepare(mode)
        begin = time.monotonic()
        if operation == 'read':
            self.transfer(files[0], None, depth)
        for _ in range({'read': 0, 'copy twice': 2}.get(operation, 1)):
            source = None if operation == 'write' else files[-1]
            files.append(self.write_new(source, mode, reserved, depth))
        seconds = time.monotonic() - begin
        # Freeing space is not timed, because its time depends on how much was written to the disk.
        for file in files:
            os.close(file)
        return seconds


def bench_io(options, directory):
    if options.request < 4096 or options.request % 4096:
        raise Failure('--request: must be a multiple of 4 KiB')
    if options.size < options.request:
        raise Failure(f'--size: must be at least one request of {options.request} bytes')
    bench = IoBench(options, directory)
    cases = [case for case in IO_CASES if options.only in (None, case[0])]
    times = [[] for _ in cases]
    for _ in range(options.repeat):
        for case, seconds in zip(cases, times):
            one = bench.run(*case)
            if one is not None:
                seconds.append(one)
    print(f'{"":12} {"":8} {"reserved":10} {"depth":>6} {"seconds":>10} {"MB/s":>8}')
    for (operation, mode, reserved, depth), seconds in zip(cases, times):
        median = statistics.median(seconds) if seconds else None
        print(f'{operation:12} {mode:8} {"yes" if reserved else "no":10} {depth:6} ' +
              (f'{median:10.4f} {bench.nbytes * 1e-6 / median:8.0f}' if seconds else
               f'{"refused":>10}'))
    return {'version': version(), 'processors': CPUS, 'size_bytes': bench.nbytes,
            'request_bytes': options.request,
            'cases': [{'name': operation, 'way': mode, 'reserved': reserved, 'depth': depth,
                       'seconds': [round(one, 6) for one in seconds]}
                      for (operation, mode, reserved, depth), seconds in zip(cases, times)]}


# --- the program ---

def parse_options():
    parser = argparse.ArgumentParser(prog=f'{PROGRAM}-bench', description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--version', action='store_true', help='print the version and exit')
    commands = parser.add_subparsers(metavar='COMMAND')
    for name, measure, repeat, times in (('file', bench_file, 5, 'seven'),
                                         ('explain', bench_explain, 5, 'five'),
                                         ('io', bench_io, 3, 'three')):
        command = commands.add_parser(name, description=measure.__doc__)
        command.set_defaults(measure=measure, json=None)
        command.add_argument('--size', type=parse_size, default=1 << 30, metavar='SIZE',
                             help=f'size of the data (default 1G); needs {times} times as much '
                             'space')
        command.add_argument('--dir', default=os.environ.get('TMPDIR') or '/tmp', metavar='DIR',
                             help='directory for temporary files (default $TMPDIR, else /tmp)')
        command.add_argument('--repeat', type=int, default=repeat, metavar='N',
                             help=f'number of rounds (default {repeat})')
        if name != 'io':
            command.add_argument('--gsort', default=PROGRAM, metavar='PROGRAM',
                                 help=f'the gsort to time (default: {PROGRAM} in $PATH)')
        if name != 'explain':
            command.add_argument('--json', metavar='FILE', help='also write all times to FILE')
        if name == 'file':
            command.add_argument('--only', choices=('all', 'keys', 'records'), default='all',
                                 help='only plain keys, or only records of the sort benchmark')
        if name == 'io':
            command.add_argument('--request', type=parse_size, default=1 << 20, metavar='SIZE',
                                 help='size of a transfer (default 1M)')
            command.add_argument('--only', choices=('read', 'write', 'copy', 'copy twice'),
                                 help='one operation (default: all)')
    options = parser.parse_args()
    if options.version:
        print(f'{PROGRAM}-bench (gsort) {version()}')
        sys.exit(0)
    if 'measure' not in options:
        parser.error('no command; see --help')
    if not 1 <= options.repeat <= MAX_REPEATS:
        parser.error(f'--repeat: must be 1 to {MAX_REPEATS}')
    if options.size < 1 << 20:
        parser.error('--size: must be at least 1 MiB')
    return options


def main():
    options = parse_options()
    try:
        directory = tempfile.mkdtemp(prefix='gsort-bench.', dir=options.dir)
        try:
            results = options.measure(options, directory)
        finally:
            shutil.rmtree(directory)
        if options.json:
            write_json(options.json, results)
    except (Failure, OSError, subprocess.CalledProcessError) as error:
        print(f'{PROGRAM}-bench: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
