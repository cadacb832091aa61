#!/usr/bin/env python3
"""lines_random - compare gsort --lines with GNU sort for random files and options

usage: lines_random.py [--seed=N] [--count=N] [--first=N] [--large=N] [--large-nbytes=N]
                       [--cuda] [--ranks]

Each case sorts, merges or checks a few random files with random options, with both programs in the
C locale. Output and exit status must be equal. A failure prints the case and the command. Exits
with 1 after a failure.

    --seed=N          seed of all cases (default: 1)
    --count=N         number of cases (default: 1500)
    --first=N         number of the first case (default: 0)
    --large=N         number of large files (default: 6), which gsort spills and merges, some of
                      them in several passes
    --large-nbytes=N  minimum size of a large file (default: 8 MiB)
    --cuda            sort on a GPU, the large files with little device memory
    --ranks           sort with 2 to 5 ranks of gsort-mpi; does not check files

The environment variable GSORT is the program (default: gsort). --ranks uses MPIRUN and GSORT_MPI.

Inputs have no NaN, which GNU sort orders arbitrarily, and no byte 0x80, which coreutils 9.1 takes
for a separator of digits.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

GSORT = os.environ.get('GSORT', 'gsort')
ENVIRONMENT = dict(os.environ, LC_ALL='C')
# GNU sort allocates much more memory than it uses, and meson makes malloc() fill it.
REFERENCE_ENVIRONMENT = dict(ENVIRONMENT, MALLOC_PERTURB_='0')

WORDS = [b'a', b'A', b'b', b'ab', b'aB', b'abc', b'Jan', b'feb', b'MAR', b'december', b'x', b'', b'~', b'.', b'..', b'-', b'+',
         b'a.b', b'.a', b'a~', b'a.tar.gz', b'a1', b'a01', b'a1.2', b'a1.10', b'z0', b'\xe9', b'\x81\xff',
         b'inf', b'-inf', b'0x1f', b'1e3', b'1e-3', b'.5', b'5.', b'-0', b'0', b'00', b'007', b'1', b'10', b'9', b'-1', b'-10',
         b'1.5', b'1.50', b'1.05', b'-1.5', b'1K', b'2k', b'1m', b'1M', b'-1K', b'3G', b'12345678901234567890', b'1e400', b'a\x01b']
BLANKS = [b' ', b'  ', b'\t', b' \t ']


def random_line(rng, style, delimiter):
    if style == 'words':
        line = b''.join(rng.choice(WORDS) + rng.choice(BLANKS + [b'', b',']) for _ in range(rng.randrange(6)))
        return rng.choice([b'', b' ']) + line
    if style == 'csv':
        return b','.join(rng.choice(WORDS) for _ in range(rng.randrange(1, 5)))
    if style == 'numbers':
        return b'%d' % rng.randrange(-50, 50) + rng.choice([b'', b'.', b'.%d' % rng.randrange(1000), b'K', b'M x'])
    if style == 'long':
        return b'prefix ' * rng.randrange(4, 9) + b'%d' % rng.randrange(9)
    if style == 'versions':
        return rng.choice([b'', b'.', b'lib']) + b'.'.join(rng.choice([b'%d' % rng.randrange(12), b'a', b'rc1', b'~', b'so', b'0'])
                                                           for _ in range(rng.randrange(1, 5)))
    if style == 'bytes':
        return bytes(rng.randrange(256) for _ in range(rng.randrange(40))).translate(None, delimiter + b'\x80')
    return bytes(rng.choice(b'ab\x00') for _ in range(rng.randrange(5))).replace(delimiter, b'')


def random_file(rng, delimiter):
    style = rng.choice(['words', 'words', 'csv', 'numbers', 'long', 'versions', 'bytes', 'short'])
    n = rng.choice([0, 1, 2, 3, 10, 50, 50, 200])
    text = b''.join(random_line(rng, style, delimiter) + delimiter for _ in range(n))
    if text and rng.random() < 0.3:
        text = text[:-1]
    return text


def random_letters(rng):
    letters = ''
    if rng.random() < 0.6:
        letters += rng.choice(['n', 'g', 'h', 'M', 'V', 'd', 'f', 'i', 'df', 'fi', 'di', 'nf', 'hf', 'Vf', 'dn'])
    if rng.random() < 0.3:
        letters += 'b'
    if rng.random() < 0.3:
        letters += 'r'
    return letters


def random_key(rng):
    key = '%d' % rng.randrange(1, 5)
    if rng.random() < 0.3:
        key += '.%d' % rng.randrange(1, 5)
    key += random_letters(rng)
    if rng.random() < 0.6:
        key += ',%d' % rng.randrange(1, 5)
        if rng.random() < 0.3:
            key += '.%d' % rng.randrange(0, 5)
        key += random_letters(rng) if rng.random() < 0.3 else ''
    return key


def random_options(rng):
    options = ['-z'] if rng.random() < 0.1 else []
    options += random_keys(rng)
    for option in ('-s', '-u', '-r'):
        if rng.random() < 0.2:
            options.append(option)
    return options


def random_keys(rng):
    options = []
    if rng.random() < 0.4:
        options += ['-' + letter for letter in random_letters(rng)]
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        options += ['-k', random_key(rng)]
    if rng.random() < 0.3:
        options += ['-t', rng.choice([',', ' ', '.', 'a', '\\0'])]
    return options


def run(program, options, files, stdin):
    result = subprocess.run(program + options + files, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=REFERENCE_ENVIRONMENT if program == ['sort'] else ENVIRONMENT)
    return result.returncode, result.stdout, result.stderr


def run_in_parts(program, options, files, directory, n):
    """Sort to part files and return their contents."""
    parts = os.path.join(directory, 'parts')
    shutil.rmtree(parts, ignore_errors=True)
    status, _, stderr = run(program + ['--split=%d' % n, '-o', parts], options, files, b'')
    text = b''
    for i in range(n if status == 0 else 0):
        with open(os.path.join(parts, 'part-%04d' % i), 'rb') as file:
            text += file.read()
    return status, text, stderr


def run_ranks(rng, options, files, directory):
    """Sort with several ranks and return the output."""
    is_compressed = shutil.which('zstd') and rng.random() < 0.2
    output = os.path.join(directory, 'output.zst' if is_compressed else 'output')
    program = [os.environ['MPIRUN'], '-np', '%d' % rng.randrange(2, 6), os.environ['GSORT_MPI'], '--lines']
    if rng.random() < 0.3:
        program.append('--shared-memory=off')
    if rng.random() < 0.2:
        program.append('--checkpoint=' + os.path.join(directory, 'checkpoint'))
    if '--count' not in options and rng.random() < 0.3:
        return run_in_parts(program, options, files, directory, rng.randrange(1, 6))
    status, text, stderr = run(program + ['-o', output], options, files, b'')
    if status == 0 and is_compressed:
        text = subprocess.run(['zstd', '-dcq', output], stdout=subprocess.PIPE, check=True).stdout
    elif status == 0:
        with open(output, 'rb') as file:
            text += file.read()
    if status == 0:
        os.remove(output)
    return status, text, stderr


def last_message(stderr):
    """Return the message of -c without the name of the program."""
    return stderr.partition(b': ')[2] if b'disorder' in stderr else b''


def choose_reference(rng, options, compares_counts):
    """Return the program to compare with, and more options. GNU sort does not count."""
    if compares_counts and '-u' in options and rng.random() < 0.5:
        return [GSORT, '--lines', '--backend=cpu'], ['--count']
    return ['sort'], []


def check_case(seed, number, directory, cuda, ranks):
    rng = random.Random(f'{seed} {number}')
    options = random_options(rng)
    delimiter = b'\0' if '-z' in options else b'\n'
    texts = [random_file(rng, delimiter) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
    mode = 'sort' if ranks else rng.choice(['sort', 'sort', 'sort', 'check', 'quiet', 'stdin', 'sorted check'])
    files = []
    for i, text in enumerate(texts):
        files.append(os.path.join(directory, f'in{i}'))
        with open(files[-1], 'wb') as file:
            file.write(text)
    stdin = b''
    if mode == 'stdin':
        stdin = texts[0]
        files[0] = '-'
    elif mode != 'sort':
        if mode == 'sorted check':
            subprocess.run(['sort'] + options + [files[0], '-o', files[0]], env=REFERENCE_ENVIRONMENT,
                           stderr=subprocess.DEVNULL)
        options.append('-C' if mode == 'quiet' else '-c')
        files = files[:1]
    backend = ['--backend=cuda'] if cuda else []
    own = [GSORT, '--lines'] + backend
    reference, with_count = choose_reference(rng, options if mode == 'sort' else [], cuda or ranks)
    expected = run(reference, options + with_count, files, stdin)
    if ranks:
        found = run_ranks(rng, backend + options + with_count, files, directory)
    elif with_count:
        found = run(own, options + with_count, files, stdin)
    elif cuda and mode == 'sort' and rng.random() < 0.3:
        found = run_in_parts(own, options, files, directory, rng.randrange(1, 6))
    else:
        found = run(own, options, files, stdin)
    if expected[:2] != found[:2] or last_message(expected[2]) != last_message(found[2]):
        print(f'case {number} of seed {seed}: sort {" ".join(options)} {" ".join(files)}')
        print('files:', *(repr(text)[:400] for text in texts), sep='\n  ')
        print('expected:', expected[0], repr(expected[1])[:600], expected[2])
        print('found:   ', found[0], repr(found[1])[:600], found[2])
        return False
    return True


def large_file(rng, delimiter, nbytes):
    """Return nbytes to 2 * nbytes of lines in one style, some with a random number at the end."""
    style = rng.choice(['words', 'csv', 'numbers', 'long', 'versions', 'bytes', 'short'])
    lines = [random_line(rng, style, delimiter) for _ in range(2000)]
    if rng.random() < 0.3:
        lines += [line * rng.randrange(100, 2000) for line in lines[:5]]
    suffix = rng.choice([b'', b' %d', b'%d', b',%d'])
    size = rng.randrange(nbytes, 2 * nbytes)
    text = bytearray()
    while len(text) < size:
        line = rng.choice(lines)
        if suffix:
            line += suffix % rng.randrange(10 ** rng.randrange(1, 10))
        # Some lines are repeated many times.
        text += (line + delimiter) * rng.choice([1, 1, 1, 3, 50])
    return bytes(text)


def check_large_case(seed, number, directory, cuda, ranks, nbytes):
    rng = random.Random(f'large {seed} {number}')
    options = random_options(rng)
    text = large_file(rng, b'\0' if '-z' in options else b'\n', nbytes)
    path = os.path.join(directory, 'large')
    with open(path, 'wb') as file:
        file.write(text)
    own = ['-S', '1M', '--parallel=%d' % rng.randrange(1, 5)]
    if cuda:
        own += ['--backend=cuda', '--device-memory=%d' % (rng.choice([20, 40, 1000]) * nbytes // 8192)]
    if rng.random() < 0.5:
        own.append('--batch-size=%d' % rng.randrange(2, 4))
    reference, with_count = choose_reference(rng, options, cuda or ranks)
    expected = run(reference, options + with_count, [path], b'')
    if ranks:
        found = run_ranks(rng, own + options + with_count, [path], directory)
    else:
        found = run([GSORT, '--lines'], own + options + with_count, [path], b'')
    if expected[:2] != found[:2]:
        print(f'large case {number} of seed {seed}: sort {" ".join(own + options)} {path}')
        print(f'status {found[0]}, expected {expected[0]}; {len(found[1])} bytes, expected {len(expected[1])}', found[2])
        return False
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=1500)
    parser.add_argument('--first', type=int, default=0)
    parser.add_argument('--large', type=int, default=6)
    parser.add_argument('--large-nbytes', type=int, default=8 << 20)
    parser.add_argument('--cuda', action='store_true')
    parser.add_argument('--ranks', action='store_true')
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for number in range(arguments.first, arguments.first + arguments.count):
            failures += not check_case(arguments.seed, number, directory, arguments.cuda, arguments.ranks)
            if failures >= 3:
                break
        for number in range(arguments.large):
            failures += not check_large_case(arguments.seed, number, directory, arguments.cuda,
                                             arguments.ranks, arguments.large_nbytes)
    if failures:
        sys.exit(1)
    print(f'{arguments.count} and {arguments.large} large cases agree with GNU sort')


if __name__ == '__main__':
    main()
