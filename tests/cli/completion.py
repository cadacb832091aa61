#!/usr/bin/env python3
"""completion - test the Tab key in bash, zsh or fish in a terminal

usage: completion.py SHELL PROGRAM

Types command lines with Tab into the shell and runs them. A stub of the same name as PROGRAM prints
its arguments, which are compared with the expected ones. Exits with 1 if any differ, and with 77
(skipped) if the shell is not installed.
"""
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE_S = 60
TAB = '\t'

# The typed text and the expected arguments.
CASES = [
    ('--backend=cp' + TAB, ['--backend=cpu']),
    ('--check=q' + TAB, ['--check=quiet']),
    ('--chec' + TAB, ['--check']),
    ('-t f3' + TAB, ['-t', 'f32']),
    ('--type=bf' + TAB, ['--type=bf16']),
    ('--temp-compress=de' + TAB, ['--temp-compress=delta']),
    ('--verif' + TAB, ['--verify']),
    ('--temporary-d' + TAB + 'direct', ['--temporary-directory=direct']),
    ('-o dat' + TAB, ['-o', 'data file.bin']),
    ('--output=dat' + TAB, ['--output=data file.bin']),
    ('-T dir' + TAB, ['-T', 'directory']),
    ('--verify dat' + TAB, ['--verify', 'data file.bin']),
]

COMMANDS = {
    'bash': ['bash', '--norc', '--noprofile', '-i'],
    'zsh': ['zsh', '-f', '-i'],
    'fish': ['fish', '--no-config', '-i'],
}
PREPARE = {
    'bash': "PS1='ready> '; bind 'set bell-style none'; . ./completion.bash",
    'zsh': "PS1='ready> '; autoload -Uz compinit; compinit -u -D; . ./completion.zsh",
    'fish': 'function fish_prompt; echo -n "ready> "; end; source ./completion.fish',
}


class Terminal:
    """A shell in a terminal."""

    def __init__(self, command, folder):
        self.shown = ''
        environment = dict(os.environ, TERM='xterm', PATH=f'{folder}/bin:' + os.environ['PATH'],
                           HOME=str(folder), LC_ALL='C.UTF-8', XDG_CONFIG_HOME=str(folder))
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, environment)

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text):
        """Wait until the shell prints `text`. Return the output before it."""
        end = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise SystemExit(f'expected {text!r}, got {self.shown!r}')
            self.shown += os.read(self.fd, 65536).decode(errors='replace')
        before, _, self.shown = self.shown.partition(text)
        return before

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def make_folder(folder, shell, program):
    name = pathlib.Path(program).name
    script = subprocess.run([program, f'--completion={shell}'], check=True, capture_output=True)
    (folder / f'completion.{shell}').write_bytes(script.stdout)
    (folder / 'bin').mkdir()
    stub = folder / 'bin' / name
    stub.write_text('#!/bin/sh\nfor i; do printf "<%s>" "$i"; done; echo "=END="\n')
    stub.chmod(0o755)
    (folder / 'data file.bin').touch()
    (folder / 'directory').mkdir()
    (folder / 'dirt').touch()
    return name


def main():
    shell, program = sys.argv[1], sys.argv[2]
    if not shutil.which(shell):
        print(f'{shell} is not installed')
        return 77
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = make_folder(folder, shell, os.path.abspath(program))
        terminal = Terminal(COMMANDS[shell], folder)
        terminal.type(PREPARE[shell] + '; echo START""ED\n')
        terminal.wait_for('STARTED\r')
        for typed, wanted in CASES:
            terminal.type(f'{command} {typed}\n')
            shown = terminal.wait_for('=END=')
            expected = ''.join(f'<{argument}>' for argument in wanted)
            # Shells differ in the slash after a directory and in the separator of an argument.
            shown = shown.replace('/>', '>').replace('-directory><', '-directory=')
            if not shown.endswith(expected):
                print(f'{typed!r}: expected {expected}, got {shown!r}')
                wrong += 1
        terminal.close()
    print(f'{len(CASES) - wrong} of {len(CASES)} cases passed')
    return wrong > 0


if __name__ == '__main__':
    sys.exit(main())
