#!/usr/bin/env python3
"""check_tutorial - what docs/tutorial.md shows is what the programs say

usage: check_tutorial.py [--write] DOCUMENT DIRECTORY...

The DOCUMENT has blocks of ```console: a line that begins with "$ " is a command, those below it what it
has said. All commands are run, in their order, in a directory of their own, with gsort, gsort-gen and
gsort-check of the DIRECTORYs first in the path. A command below which is written "Killed" is killed as
soon as its checkpoint holds a run.

Then what they say is compared with what is written: every byte of it but what depends on the machine and
its moment. That is masked on both sides: times, rates and what follows from them everywhere; all numbers,
and which stage was the bottleneck, in the output of --stats and --explain. With --write the document is
written anew, with what the commands have said. The status is 1 if anything differs.
"""
import difflib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BLOCK = re.compile(r'(?<=^```console\n).*?(?=^```$)', re.M | re.S)
NUMBER = r'-?\d+(?:\.\d+)?'
EVERYWHERE = [
    (re.compile(rf'{NUMBER} [KMGT]?i?B/s'), '# B/s'),
    (re.compile(rf'\b{NUMBER} s\b'), '# s'),
    (re.compile(r'(?<=resuming: ).*'), '#'),
]
REPORTS = [
    (re.compile(r'^written: .*\n', re.M), ''),
    (re.compile(r'^temporary files .* is in memory .*\n', re.M), ''),
    (re.compile(r'compressed to .*'), 'compressed'),
    (re.compile(r' *<- bottleneck.*'), ''),
    (re.compile(rf'{NUMBER} (?:[KMGT]i)?B\b'), '# B'),
    (re.compile(NUMBER), '#'),
    (re.compile(r'# B/s|(?<=  )-$', re.M), '#'),
    (re.compile(r' +'), ' '),
]
KILLED = 'Killed\n'
TRIES = 100


def examples_of(block):
    """pairs of a command and its output"""
    parts = re.split(r'^\$ (.*)\n', block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def masked(command, output):
    rules = EVERYWHERE + (REPORTS if re.search('--stats|--explain', command) else [])
    for pattern, mask in rules:
        output = pattern.sub(mask, output)
    return output


def said_by(command):
    done = subprocess.run(['bash', '-c', command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.stdout.decode()


def runs_are_kept(state):
    """A manifest tells of the blocks of all runs, some thousands."""
    manifest = state / 'gsort-manifest'
    try:
        return manifest.stat().st_size > 4096
    except FileNotFoundError:
        return False


def killed_in_time(command, state):
    """Has it been killed, with a run in its checkpoint?"""
    process = subprocess.Popen(['bash', '-c', f'exec {command}'], stderr=subprocess.DEVNULL)
    while process.poll() is None and not runs_are_kept(state):
        time.sleep(0.001)
    process.kill()
    return process.wait() == -signal.SIGKILL and runs_are_kept(state)


def kill(command):
    """As often as it takes: a fast machine may be done before it is seen."""
    state = pathlib.Path(re.search(r'--checkpoint=(\S+)', command)[1])
    for _ in range(TRIES):
        if killed_in_time(command, state):
            return KILLED
        for left in state.iterdir():
            left.unlink() if left.is_file() else shutil.rmtree(left)
    return 'it could not be killed in time\n'


def play(text):
    """The document with what its commands say now, and both masked."""
    before, after = [], []

    def rewritten(block):
        said = ''
        for command, output in examples_of(block[0]):
            now = kill(command) if output == KILLED else said_by(command)
            before.append(f'$ {command}\n{masked(command, output)}')
            after.append(f'$ {command}\n{masked(command, now)}')
            said += f'$ {command}\n{now}'
        return said

    return BLOCK.sub(rewritten, text), ''.join(before), ''.join(after)


def main():
    arguments = sys.argv[1:]
    writes = arguments[:1] == ['--write']
    document, *programs = map(pathlib.Path, arguments[writes:])
    text = document.read_text()
    os.environ['PATH'] = os.pathsep.join([*(str(p.resolve()) for p in programs), os.environ['PATH']])
    os.environ['LC_ALL'] = 'C'
    document = document.resolve()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        os.environ['TMPDIR'] = directory
        played, before, after = play(text)
        os.chdir('/')
    if writes:
        document.write_text(played)
        return 0
    difference = difflib.unified_diff(before.splitlines(), after.splitlines(), str(document), 'now', lineterm='')
    told = '\n'.join(difference)
    if told:
        print(f'{told}\n{len(told.splitlines())} lines; tools/scripts/check_tutorial.py --write writes it anew')
    return bool(told)


if __name__ == '__main__':
    sys.exit(main())
