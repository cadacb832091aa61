#!/usr/bin/env python3
"""check_tutorial - run the commands of docs/tutorial.md and compare their output

usage: check_tutorial.py [--write] DOCUMENT DIRECTORY...

DOCUMENT contains ```console blocks. A line that begins with "$ " is a command. The lines below it
are its output. Runs all commands in order in a temporary directory, with the DIRECTORYs of the
programs first in PATH. A command whose output is "Killed" is killed as soon as its checkpoint holds
a run.

Compares the outputs with the document. Text that depends on the machine is masked on both sides:
 - times and rates in all outputs;
 - all numbers and the bottleneck in outputs of --stats and --explain.
Prints the differences and exits with 1 if there are any. --write replaces the outputs in the
document instead.
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
    """Return the pairs (command, output) of a block."""
    parts = re.split(r'^\$ (.*)\n', block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def masked(command, output):
    """Return the output without the text that depends on the machine."""
    rules = EVERYWHERE + (REPORTS if re.search('--stats|--explain', command) else [])
    for pattern, mask in rules:
        output = pattern.sub(mask, output)
    return output


def run_command(command):
    done = subprocess.run(['bash', '-c', command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.stdout.decode()


def runs_are_kept(state):
    """Return whether the manifest lists runs. With runs it has thousands of bytes."""
    manifest = state / 'gsort-manifest'
    try:
        return manifest.stat().st_size > 4096
    except FileNotFoundError:
        return False


def killed_in_time(command, state):
    """Run the command and kill it. Return whether that succeeded after the first run was stored."""
    process = subprocess.Popen(['bash', '-c', f'exec {command}'], stderr=subprocess.DEVNULL)
    while process.poll() is None and not runs_are_kept(state):
        time.sleep(0.001)
    process.kill()
    return process.wait() == -signal.SIGKILL and runs_are_kept(state)


def kill(command):
    """Kill the command in time. Retries, because on a fast machine the sort may end first."""
    state = pathlib.Path(re.search(r'--checkpoint=(\S+)', command)[1])
    for _ in range(TRIES):
        if killed_in_time(command, state):
            return KILLED
        shutil.rmtree(state, ignore_errors=True)
    return 'the sort ended before it was killed\n'


def play(text):
    """Run all commands. Return the new document, and the old and new outputs, masked."""
    before, after = [], []

    def rewritten(block):
        transcript = ''
        for command, output in examples_of(block[0]):
            now = kill(command) if output == KILLED else run_command(command)
            before.append(f'$ {command}\n{masked(command, output)}')
            after.append(f'$ {command}\n{masked(command, now)}')
            transcript += f'$ {command}\n{now}'
        return transcript

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
    text = '\n'.join(difference)
    if text:
        print(f'{text}\n{len(text.splitlines())} lines differ; '
              'tools/scripts/check_tutorial.py --write updates the document')
    return bool(text)


if __name__ == '__main__':
    sys.exit(main())
