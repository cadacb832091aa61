#!/usr/bin/env python3
# mutation_test.py - change the code in small ways and report the changes that no test detects
#
# usage: tools/scripts/mutation_test.py [OPTION]... [FILE...]
#
# --help lists the options. Without FILEs all sources are mutated. Prints a table of mutation scores
# by folder, and the surviving mutants.
#
# A mutant is the source with one change: a comparison flipped, a number off by one, a statement
# dropped, an error returned as 0, two arguments swapped, or a condition negated. A test that fails
# or hangs kills the mutant. A mutant that survives shows a gap in the tests or changes no
# observable behaviour (an equivalent mutant).
#
# Selection of tests: a build with gcov runs every test once and records the lines that it executes.
# A mutant is tested only with tests that execute its line: first the test of its module, then the
# others from fast to slow, until one fails or until their times exceed --effort.
#
# Flaky failures must not kill a mutant on a busy machine:
#  - a test that fails must also pass without the mutant;
#  - a test of the programs, or one that hangs, must fail twice;
#  - times are processor times.
#
# Not counted: mutants that do not compile, and mutants with an unchanged object file. Reviewed
# survivors are listed with a reason in tests/mutation_survivors.txt as equivalent, performance
# (only the run time changes) or accepted. Only accepted ones are counted.
#
# Each job works in a copy of the tree below --work. Results are appended to the file `journal`
# there. A mutant in the journal is not tested again, so an interrupted run can be continued.
# --again tests the survivors again, with tests that are new or were skipped. --sanitize uses the
# sanitizers of tools/scripts/test.sh, to find leaks and races.
import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REVIEWED = os.path.join(TOP, 'tests', 'mutation_survivors.txt')
SOURCES = ('io', 'kernels', 'src')
SUITES = 'unit,kernels,library,fault,cli,mpi'

OPTIMISED = ['--buildtype=plain', '-Doptimization=1', '-Db_ndebug=false',
             '-Dc_args=-Werror=incompatible-pointer-types,-Werror=int-conversion'.replace(',', ' ')]
COVERED = ['--buildtype=plain', '-Doptimization=1', '-Db_coverage=true']
SANITIZED = {'': OPTIMISED,
             'address': OPTIMISED + ['-Db_sanitize=address,undefined'],
             'thread': OPTIMISED + ['-Db_sanitize=thread']}
FINDINGS = {'ASAN_OPTIONS': 'detect_leaks=1', 'UBSAN_OPTIONS': 'halt_on_error=1',
            'TSAN_OPTIONS': 'halt_on_error=1'}

MOST_MEMORY_NBYTES = 16 << 30  # address space of a test: a mutant may allocate any size
LEAST_FREE_NBYTES = 2 << 30  # free disk space that stops a test: a mutant may write for ever
ROUND = 20  # mutants of a job that are tested before the counted ones are counted again
MOST_MEASURE_SECONDS = 600  # limit for a test with gcov
SKIPPED = 77
ELAPSED = 6  # limit of elapsed time, as a multiple of that of processor time: tests also wait


# --- Making mutants -------------------------------------------------------------------------------

@dataclass
class Mutant:
    path: str
    begin: int  # the bytes of the source that are replaced
    end: int
    text: str  # the replacement
    kind: str
    line: int = 0  # first and last line of the change, from 1
    last_line: int = 0
    function: str = ''  # NAME, or NAME#2 for the second equal change in it
    before: str = ''  # the lines without and with the change
    after: str = ''
    verdict: str = ''
    killer: str = ''
    passed: list = field(default_factory=list)  # Test.identity() of tests that did not kill it

    def key(self):
        """Return a key that is equal for the same mutant in another version of the source."""
        return '\t'.join((os.path.basename(self.path), self.function, self.before, self.after))


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def mask(source):
    """Replace comments, strings, preprocessor lines and assertions by blanks or underscores."""
    text = re.sub(r'//[^\n]*|/\*.*?\*/', blank, source, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
                  lambda m: m.group(0)[0] + '_' * (len(m.group(0)) - 2) + m.group(0)[-1], text)
    text = re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', blank, text, flags=re.M)
    return re.sub(r'\b(?:static_assert|_Static_assert|assert)\s*\([^;]*;', blank, text)


def closing(text, at):
    """Return the position of the bracket that closes the one at `at`, or -1."""
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in '([{'
        depth -= text[i] in ')]}'
        if depth == 0:
            return i
    return -1


def split_arguments(text, begin, end):
    """Return the positions (begin, end) of the arguments in text[begin:end]."""
    arguments, depth, first = [], 0, begin
    for i in range(begin, end + 1):
        if i == end or (text[i] == ',' and depth == 0):
            arguments.append((first, i))
            first = i + 1
        else:
            depth += text[i] in '([{'
            depth -= text[i] in ')]}'
    trimmed = []
    for first, last in arguments:
        while first < last and text[first].isspace():
            first += 1
        while last > first and text[last - 1].isspace():
            last -= 1
        trimmed.append((first, last))
    return trimmed


FLIPS = {'<': ['<=', '>'], '<=': ['<', '>='], '>': ['>=', '<'], '>=': ['>', '<='],
         '==': ['!='], '!=': ['==']}
KEYWORDS = {'if', 'for', 'while', 'switch', 'return', 'sizeof', 'defined', 'do', 'else', 'case',
            'default', '_Alignof', '_Alignas', '__attribute__', 'alignas', 'decltype',
            '__launch_bounds__', 'template', 'typename'}
DECLARES = re.compile(r'(?:static|const|struct|union|enum|unsigned|signed|long|short|void|char|'
                      r'int|bool|float|double|typedef|extern|volatile|auto|using|template|typename|'
                      r'constexpr|__shared__|__device__|__global__|_Alignas|public|private)\b|'
                      r'[\w:<>]+(?:\s+\**|\s*\*+)\w+\s*[=;,\[(]|return\b|if\b|for\b|while\b|do\b|'
                      r'else\b|switch\b|case\b|default\b|goto\s+\w+\s*:')


def flip_comparisons(text):
    for m in re.finditer(r'(?<=[\w)\]] )(<=|>=|==|!=|<|>)(?=\s[\w(*&!~\'"-])', text):
        for flipped in FLIPS[m.group(1)]:
            yield m.start(1), m.end(1), flipped, 'comparison'


def move_by_one(text):
    for m in re.finditer(r'(?<=[\w)\]])\s[+-] 1\b(?!\.)', text):
        yield m.start(), m.end(), '', 'off by one'
    for m in re.finditer(r'(?:<=|>=|==|!=|<|>|[^<]<<|/|\*|%)\s([0-9]+)\b(?![.x])', text):
        yield m.start(1), m.end(1), str(int(m.group(1)) + 1), 'off by one'
    for m in re.finditer(r'\bfor \([^;=]*= (0);', text):
        yield m.start(1), m.end(1), '1', 'off by one'
    for m in re.finditer(r'\+\+(?=\s*[;,)])', text):
        before = re.search(r'([\w.\->\[\]]+)$', text[:m.start()])
        if before and 'for' not in text[text.rfind('\n', 0, m.start()):m.start()]:
            yield m.start(), m.end(), ' += 2', 'off by one'


def drop_statements(text):
    for m in re.finditer(r'^\t+(?=[A-Za-z_*(])', text, flags=re.M):
        first = m.end()
        before = text[:m.start()].rstrip()
        if DECLARES.match(text, first) or not before or \
                (before[-1] not in ';{})' and not re.search(r'\b(else|do)$|[^?]:$', before)):
            continue
        if re.match(r'\w+:', text[first:]):
            continue
        depth, i = 0, first
        while i < len(text) and (text[i] != ';' or depth) and depth >= 0:
            depth += text[i] in '([{'
            depth -= text[i] in ')]}'
            i += 1
        if depth == 0 and i < len(text):
            yield first, i + 1, ';', 'statement dropped'


def return_success(text):
    for m in re.finditer(r'\breturn (-E[A-Z]+|-errno|r|fail\w*\(|\w+_fail\w*\(|r < 0 \?)', text):
        end = text.index(';', m.start())
        yield m.start(), end, 'return 0', 'error as 0'


def swap_arguments(text):
    for m in re.finditer(r'\b([A-Za-z_]\w*)\(', text):
        # After a type, this is a definition and not a call.
        if m.group(1) in KEYWORDS or re.search(r'[\w*>]\s?\**$', text[:m.start()][-3:]) and \
                not re.search(r'\b(return|else)\s$', text[:m.start()][-8:]):
            continue
        end = closing(text, m.end() - 1)
        if end < 0:
            continue
        arguments = split_arguments(text, m.end(), end)
        for (a, b), (c, d) in zip(arguments, arguments[1:]):
            if text[a:b] != text[c:d] and b > a and d > c:
                yield a, d, (a, b, c, d), 'arguments swapped'


def negate_conditions(text):
    for m in re.finditer(r'\b(?:if|while) \(', text):
        end = closing(text, m.end() - 1)
        if end > 0:
            yield m.end(), end, None, 'condition negated'
    for m in re.finditer(r'(&&|\|\|)(?=\s)', text):
        yield m.start(), m.end(), '||' if m.group(1) == '&&' else '&&', 'condition negated'


def one_line(text):
    return re.sub(r'\s+', ' ', text).strip()


def function_at(text, at):
    """Return the name of the function that contains text[at]."""
    names = re.findall(r'^[A-Za-z_][^\n;=]*?\b(\w+)\((?=[^;{}]*\)\s*\{)', text[:at] + '){',
                       flags=re.M)
    return names[-1] if names else ''


def mutants_of(tree, path):
    with open(os.path.join(tree, path)) as f:
        source = f.read()
    text = mask(source)
    found, seen = [], {}
    for make in (flip_comparisons, move_by_one, drop_statements, return_success, swap_arguments,
                 negate_conditions):
        for begin, end, replacement, kind in make(text):
            if replacement is None:
                replacement = '!(' + source[begin:end] + ')'
            elif isinstance(replacement, tuple):
                a, b, c, d = replacement
                replacement = source[c:d] + source[b:c] + source[a:b]
            mutant = Mutant(path, begin, end, replacement, kind)
            mutant.line = source.count('\n', 0, begin) + 1
            mutant.last_line = source.count('\n', 0, end) + 1
            from_, to = source.rfind('\n', 0, begin) + 1, source.find('\n', end)
            mutant.before = one_line(source[from_:to])
            mutant.after = one_line(source[from_:begin] + replacement + source[end:to])
            mutant.function = function_at(text, begin)
            nth = seen[mutant.key()] = seen.get(mutant.key(), 0) + 1
            if nth > 1:
                mutant.function += f'#{nth}'
            found.append(mutant)
    return found


def choose(tree, paths, seed):
    """Return all mutants in random order, with the kinds in turn. Each prefix is a fair sample."""
    chance = random.Random(seed)
    by_kind = {}
    for path in paths:
        for mutant in mutants_of(tree, path):
            by_kind.setdefault(mutant.kind, []).append(mutant)
    for kind in by_kind:
        chance.shuffle(by_kind[kind])
    ordered = []
    while any(by_kind.values()):
        for kind in sorted(by_kind):
            if by_kind[kind]:
                ordered.append(by_kind[kind].pop())
    return ordered


# --- Trees and builds -----------------------------------------------------------------------------

def run(command, log=None, **options):
    """Run a command, append its output to a log and return its exit status."""
    with open(log or os.devnull, 'a') as out:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              **options).returncode


def output_of(command, **options):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, **options).stdout


def copy_tree(to):
    """Copy the files that git does not ignore. Keep unchanged files, with their times."""
    names = output_of(['git', '-C', TOP, 'ls-files', '-co', '--exclude-standard']).splitlines()
    names = [name for name in names if os.path.isfile(os.path.join(TOP, name))]
    for name in names:
        source, target = os.path.join(TOP, name), os.path.join(to, name)
        with open(source, 'rb') as f:
            content = f.read()
        if os.path.exists(target):
            with open(target, 'rb') as f:
                if f.read() == content:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, 'wb') as f:
            f.write(content)
        shutil.copymode(source, target)
    kept = set(names)
    for root, _, files in os.walk(to):
        for name in files:
            path = os.path.join(root, name)
            if os.path.relpath(path, to) not in kept:
                os.unlink(path)


class Build:
    """A copy of the tree and its build directory."""

    def __init__(self, place, options):
        self.place = place
        self.is_sanitized = any('-Db_sanitize' in option for option in options)
        # With many random address bits ThreadSanitizer finds no room for its tables.
        self.wrapper = ['setarch', '-R'] if '-Db_sanitize=thread' in options else []
        self.tree = os.path.join(place, 'tree')
        self.folder = os.path.join(place, 'build')
        self.log = os.path.join(place, 'log')
        copy_tree(self.tree)
        linker = '-fuse-ld=lld' if shutil.which('ld.lld') else ''
        if not os.path.exists(os.path.join(self.folder, 'build.ninja')):
            cache = 'ccache ' if shutil.which('ccache') else ''
            environment = dict(os.environ, CC=cache + 'gcc', CXX=cache + 'g++')
            if run(['meson', 'setup', self.folder, self.tree, '-Dcuda=disabled',
                    '-Dc_link_args=' + linker, '-Dcpp_link_args=' + linker] + options,
                   self.log, env=environment):
                sys.exit(f'mutation_test.py: meson setup failed, see {self.log}')
        # Programs of tests are linked before they are run.
        known = json.loads(output_of(['meson', 'introspect', '--targets', self.folder]))
        if self.make([os.path.relpath(name, self.folder) for target in known
                      if target['type'] == 'static library' for name in target['filename']]):
            sys.exit(f'mutation_test.py: the build failed, see {self.log}')

    def make(self, targets):
        return run(['ninja', '-C', self.folder] + targets, self.log)

    def tests(self, suites):
        """Return the tests of the suites. Each mode of a fault test is a test of its own."""
        known = json.loads(output_of(['meson', 'introspect', '--tests', self.folder]))
        by_id = {t['id']: t for t in
                 json.loads(output_of(['meson', 'introspect', '--targets', self.folder]))}
        tests = []
        for test in known:
            if test['name'] == 'style' or not {s.split(':')[-1] for s in test['suite']} & suites:
                continue
            targets = [os.path.relpath(name, self.folder) for id_ in test['depends']
                       for name in by_id[id_]['filename']]
            sources = {name for id_ in test['depends'] for of in by_id[id_]['target_sources']
                       for name in of.get('sources', [])} | set(test['cmd'])
            sources = [name for name in sources
                       if name.startswith(os.path.join(self.tree, 'tests', ''))]
            environment = dict(test['env'], **FINDINGS)
            # Each test runs in its own folder, but Meson's paths are relative to the build.
            test['cmd'] = [os.path.join(self.folder, word) if word in targets else word
                           for word in test['cmd']]
            tests += [Test(name, self.wrapper + command, environment, targets,
                           digest_files(sources), test['suite'][0].split(':')[-1],
                           self.is_sanitized)
                      for name, command in modes_apart(test_name(test), test['cmd'])]
        return tests

    def objects_of(self):
        """Return source -> the object files that depend on it."""
        objects, target = {}, None
        for line in output_of(['ninja', '-C', self.folder, '-t', 'deps']).splitlines():
            if line and not line[0].isspace():
                target = line.split(':')[0]
            elif line.strip() and target and target.endswith('.o'):
                path = os.path.normpath(os.path.join(self.folder, line.strip()))
                if path.startswith(self.tree + os.sep):
                    objects.setdefault(os.path.relpath(path, self.tree), set()).add(target)
        return objects


def test_name(test):
    """Return a unique name: a program and a script may have the same name."""
    return test['name'] + ('.sh' if test['suite'][0].endswith(('cli', 'mpi')) else '')


def modes_apart(name, command):
    """Return (name, command) of each mode if the argument of the test is a list of modes."""
    if len(command) == 2 and ',' in command[1]:
        return [(f'{name}:{mode}', [command[0], mode]) for mode in command[1].split(',')]
    return [(name, command)]


@dataclass
class Test:
    name: str
    command: list
    env: dict
    targets: list
    digest: str  # of its own sources
    suite: str
    is_sanitized: bool
    seconds: float = 0
    lines: dict = field(default_factory=dict)

    def identity(self):
        return f'{self.name} {self.digest[:12]}'

    def run(self, seconds, log, extra_env=None):
        """Run the test and kill all its processes. Return its status and processor time."""
        scratch = tempfile.mkdtemp(prefix='mutant-', dir=scratch_folder())
        environment = dict(os.environ, **self.env, **(extra_env or {}), TMPDIR=scratch)
        end = time.monotonic() + ELAPSED * seconds
        with open(log, 'a') as out:
            process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, cwd=scratch, env=environment,
                                       preexec_fn=lambda: go_apart(self.is_sanitized, seconds))
            status, pause = None, 0.001
            while status is None:
                has_ended, code, usage = os.wait4(process.pid, os.WNOHANG)
                if has_ended:
                    status = os.waitstatus_to_exitcode(code)
                elif time.monotonic() > end or \
                        shutil.disk_usage(scratch).free < LEAST_FREE_NBYTES:
                    status = 'no end'
                else:
                    time.sleep(pause)
                    pause = min(2 * pause, 0.1)
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            if status == 'no end':
                _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0  # wait4() reaped it
        shutil.rmtree(scratch, ignore_errors=True)
        return 'no end' if status == -signal.SIGXCPU else status, usage.ru_utime + usage.ru_stime


def go_apart(is_sanitized, seconds):
    os.setpgrp()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
    if not is_sanitized:  # sanitizers have tables for all addresses
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_NBYTES, MOST_MEMORY_NBYTES))


def scratch_folder():
    return '/dev/shm' if os.access('/dev/shm', os.W_OK) else None


# --- Coverage -------------------------------------------------------------------------------------

def lines_of(build, prefix):
    """Return file -> all lines, and file -> executed lines, from the gcov data below `prefix`."""
    # glob would skip the objects of other folders, whose names begin with dots.
    data = [os.path.join(folder, name) for folder, _, names in os.walk(prefix)
            for name in names if name.endswith('.gcda')]
    known, executed = {}, {}
    for name in data:
        # gcov expects notes and counts in the same folder.
        notes = os.path.join('/', os.path.relpath(name, prefix))[:-len('gcda')] + 'gcno'
        if os.path.exists(notes):
            shutil.copy(notes, name[:-len('gcda')] + 'gcno')
    for i in range(0, len(data), 50):
        text = output_of(['gcov', '--json-format', '--stdout'] + data[i:i + 50], cwd=prefix)
        for line in text.splitlines():
            for file in json.loads(line)['files']:
                path = os.path.normpath(os.path.join(build.folder, file['file']))
                if not path.startswith(build.tree + os.sep):
                    continue
                path = os.path.relpath(path, build.tree)
                for entry in file['lines']:
                    known.setdefault(path, set()).add(entry['line_number'])
                    if entry['count']:
                        executed.setdefault(path, set()).add(entry['line_number'])
    return known, executed


def measure(build, test, limit_seconds):
    """
    Run a test once, store the lines that it executes, and return all lines of its program. The
    status is ignored: some tests of limits fail with gcov, but they execute lines, too.
    """
    prefix = tempfile.mkdtemp(prefix='coverage-', dir=build.place)
    status, test.seconds = test.run(limit_seconds, build.log, {'GCOV_PREFIX': prefix})
    known, test.lines = lines_of(build, prefix)
    shutil.rmtree(prefix, ignore_errors=True)
    log(f'{test.name}: status {status}, {test.seconds:.1f} s')
    return known


def digest_files(names):
    digest = hashlib.sha256()
    for name in sorted(names):
        with open(name, 'rb') as f:
            digest.update(os.path.basename(name).encode() + b'\0' + f.read())
    return digest.hexdigest()


def coverage(work, tests, n_jobs, limit_seconds):
    """
    Set the times and the executed lines of all tests, and return all lines. The results are cached
    until the sources or the test change. A test is stopped at the limit. A test that is not built
    with gcov executes no lines.
    """
    limit_seconds = min(limit_seconds, MOST_MEASURE_SECONDS)
    store = os.path.join(work, 'coverage.json')
    names = output_of(['git', '-C', TOP, 'ls-files', *SOURCES]).splitlines()
    sources = digest_files(name for name in (os.path.join(TOP, name) for name in names)
                           if os.path.isfile(name))
    have = {}
    if os.path.exists(store):
        with open(store) as f:
            have = json.load(f)
    if have.get('sources') != sources:
        have = {'sources': sources, 'lines': {}, 'tests': {}}

    def is_known(test):
        it = have['tests'].get(test.name)
        # A test that was stopped is measured again with a higher limit.
        return it and it['digest'] == test.digest and \
            (it['seconds'] < it['limit'] or it['limit'] >= limit_seconds)

    missing = [test for test in tests if not is_known(test)]
    if missing:
        build = Build(os.path.join(work, 'covered'), COVERED)
        by_name = {test.name: test for test in build.tests(set(SUITES.split(',')))}
        missing = [test for test in missing if test.name in by_name]
        covered = [by_name[test.name] for test in missing]
        build.make(sorted({target for test in covered for target in test.targets}))
        with ThreadPoolExecutor(n_jobs) as pool:
            for test, own, known in zip(covered, missing,
                                        pool.map(lambda test: measure(build, test, limit_seconds),
                                                 covered)):
                for path, lines in known.items():
                    have['lines'][path] = sorted(set(have['lines'].get(path, [])) | lines)
                have['tests'][test.name] = {
                    'digest': own.digest, 'seconds': test.seconds, 'limit': limit_seconds,
                    'lines': {path: sorted(lines) for path, lines in test.lines.items()}}
                with open(store + '.new', 'w') as f:
                    json.dump(have, f)
                os.replace(store + '.new', store)
    for test in tests:
        it = have['tests'].get(test.name, {'seconds': 0, 'lines': {}})
        test.seconds = it['seconds']
        test.lines = {p: set(lines) for p, lines in it['lines'].items()}
    return have['lines']


def concerned(mutant, tests, lines, limit_seconds, effort_seconds):
    """
    Return the number of tests that execute the mutant, and those to run: the test of the module
    first, then from fast to slow, within the effort.
    """
    def who_comes_to(near):
        return [test for test in tests if near & test.lines.get(mutant.path, set())]

    def last_before(known):
        return {max((line for line in known if line < mutant.line), default=mutant.line)}

    known = lines.get(mutant.path, [])
    near = {line for line in known if mutant.line <= line <= mutant.last_line}
    found = who_comes_to(near or last_before(known))
    if not found:  # gcov may count a line as not executed that has no branch of its own
        found = who_comes_to(last_before(line for test in tests
                                         for line in test.lines.get(mutant.path, ())))
    stem = os.path.splitext(os.path.basename(mutant.path))[0]
    if not found:
        found = [test for test in tests if mutant.path in test.lines]
    # Processes that are killed do not write what they came to.
    found += [test for test in tests if test.name == stem and test not in found]
    shown, seconds = [], 0
    for test in sorted(found, key=lambda test: (test.name != stem, test.seconds)):
        if test.identity() in mutant.passed:
            continue
        seconds += test.seconds
        if test.seconds < limit_seconds and (seconds <= effort_seconds or not effort_seconds):
            shown.append(test)
    return len(found), shown


# --- Testing mutants ------------------------------------------------------------------------------

def log(text):
    print(text, file=sys.stderr, flush=True)


def digest_objects(build, objects):
    sums = []
    for name in sorted(objects):
        with open(os.path.join(build.folder, name), 'rb') as f:
            sums.append(hashlib.sha256(f.read()).hexdigest())
    return sums


def wanted_tests(build, arguments):
    return [test for test in build.tests(arguments.suites)
            if not arguments.only or test.name in arguments.only]


class Worker:
    def __init__(self, work, number, arguments):
        self.build = Build(os.path.join(work, f'{number}{arguments.sanitize}'),
                           SANITIZED[arguments.sanitize])
        self.arguments = arguments
        self.passed = set()  # tests that were seen to pass in this build
        self.tests = wanted_tests(self.build, arguments)
        self.lines = coverage(work, self.tests, arguments.jobs, arguments.seconds) \
            if number == 0 else None
        self.objects = self.build.objects_of()

    def try_all(self, mutants, note, is_time_up):
        """Test mutants of one file in turn, then restore the file."""
        path = os.path.join(self.build.tree, mutants[0].path)
        with open(path) as f:
            source = f.read()
        objects = {name for name in self.objects.get(mutants[0].path, ())
                   if 'tests/unit' not in name}
        self.build.make(sorted(objects))
        sums = digest_objects(self.build, objects)
        try:
            for mutant in mutants:
                if is_time_up():
                    break
                self.write(path, source[:mutant.begin] + mutant.text + source[mutant.end:])
                mutant.verdict, mutant.killer = self.run_mutant(mutant, objects, sums, (path, source))
                note(mutant)
        finally:
            self.write(path, source)

    @staticmethod
    def write(path, text):
        with open(path, 'w') as f:
            f.write(text)

    def run_mutant(self, mutant, objects, sums, original):
        if not objects or self.build.make(sorted(objects)):
            return 'not compiled', ''
        if digest_objects(self.build, objects) == sums:
            return 'same object', ''
        n_concerned, shown = concerned(mutant, self.tests, self.lines, self.arguments.seconds,
                                       self.arguments.effort)
        for test in shown:
            if self.build.make(test.targets):
                return 'not compiled', test.name
            result = self.result(test)
            if result == 'failed' and self.passes_without(test, *original):
                return 'killed', test.name
            if result == 'passed':
                mutant.passed.append(test.identity())
        return 'survived', f'{len(mutant.passed)} of {n_concerned} tests that execute it'

    def result(self, test):
        """Return 'passed', 'skipped' or 'failed'."""
        # The time was measured with gcov, which is slow. Sanitizers are slower.
        limit = 10 + (10 if test.is_sanitized else 3) * test.seconds
        for _ in range(2):
            status, _ = test.run(limit, self.build.log)
            if status == SKIPPED:
                return 'skipped'
            if status == 0:
                self.passed.add(test.name)
                return 'passed'
            if status != 'no end' and test.suite not in ('cli', 'mpi'):
                break
        return 'failed'

    def passes_without(self, test, path, source):
        """Return whether the test passes without the mutant. If it fails, do not run it again."""
        if test.name in self.passed:
            return True
        with open(path) as f:
            mutated = f.read()
        self.write(path, source)
        self.build.make(test.targets)
        if self.result(test) == 'failed':
            log(f'{test.name} fails without a mutant: skipped from now on')
            self.tests.remove(test)
        else:
            self.passed.add(test.name)
        self.write(path, mutated)
        return test.name in self.passed


def read_reviewed():
    """
    Return {key: (word, reason)}. A paragraph of the file has the lines "FILE FUNCTION", "- line",
    "+ line" and "= WORD: reason". WORD is equivalent, accepted or performance.
    """
    reviewed = {}
    if not os.path.exists(REVIEWED):
        return reviewed
    with open(REVIEWED) as f:
        for paragraph in f.read().split('\n\n'):
            rows = [row for row in paragraph.splitlines() if row and not row.startswith('#')]
            if len(rows) >= 4:
                name, _, function = rows[0].partition(' ')  # '': outside of functions
                before, after = rows[1][2:], rows[2][2:]
                word, reason = one_line(' '.join(rows[3:]))[2:].split(': ', 1)
                reviewed['\t'.join((name, function, before, after))] = (word, reason)
    return reviewed


def read_journal(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return {key: rest for key, *rest in map(json.loads, f)}


def apply_review(mutant, reviewed):
    """Replace the verdict of a survivor that was reviewed."""
    if mutant.verdict == 'survived' and mutant.key() in reviewed:
        mutant.verdict, mutant.killer = reviewed[mutant.key()]


def counts(mutant):
    return mutant.verdict in ('killed', 'survived', 'accepted')


def report(mutants):
    folders = {}
    for mutant in mutants:
        folders.setdefault(os.path.dirname(mutant.path), []).append(mutant)
    print('| modules of | mutants | killed | survived | score | not counted: same object, '
          'equivalent, performance, not compiled |')
    print('|---|---|---|---|---|---|')
    for folder, of in sorted(folders.items()) + [('all', mutants)]:
        n = {word: sum(m.verdict == word for m in of) for word in
             ('killed', 'survived', 'accepted', 'same object', 'equivalent', 'performance',
              'not compiled')}
        total = n['killed'] + n['survived'] + n['accepted']
        score = f'{100 * n["killed"] / total:.1f} %' if total else '-'
        print(f'| {folder} | {total} | {n["killed"]} | {n["survived"] + n["accepted"]} | {score} | '
              f'{n["same object"]}, {n["equivalent"]}, {n["performance"]}, '
              f'{n["not compiled"]} |')
    for mutant in sorted(mutants, key=lambda m: (m.path, m.line)):
        if mutant.verdict in ('survived', 'accepted'):
            print(f'\n{mutant.path}:{mutant.line}: {mutant.verdict}: {mutant.kind}'
                  f'{": " + mutant.killer if mutant.killer else ""}'
                  f'\n{os.path.basename(mutant.path)} {mutant.function}'
                  f'\n- {mutant.before}\n+ {mutant.after}')


def parse_arguments():
    parser = argparse.ArgumentParser(description='Change the code and report what no test detects.')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--count', type=int, default=300, help='number of counted mutants')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--suites', default=SUITES, type=lambda s: set(s.split(',')))
    parser.add_argument('--only', default='', type=lambda s: set(filter(None, s.split(','))),
                        help='tests, by name')
    parser.add_argument('--seconds', type=float, default=300,
                            help='skip tests that take longer with gcov (processor time)')
    parser.add_argument('--effort', type=float, default=0,
                        help='seconds of tests for each mutant (0: all tests)')
    parser.add_argument('--work', default=os.path.join(tempfile.gettempdir(), 'gsort-mutants'))
    parser.add_argument('--minutes', type=float, default=0, help='start no mutant after this time')
    parser.add_argument('--sanitize', default='', choices=[kind for kind in SANITIZED if kind])
    parser.add_argument('--measure', action='store_true', help='only measure coverage')
    parser.add_argument('--again', action='store_true', help='only test survivors again')
    parser.add_argument('files', nargs='*', metavar='FILE')
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    paths = arguments.files or [
        name for name in output_of(['git', '-C', TOP, 'ls-files'] + list(SOURCES)).splitlines()
        if name.endswith(('.c', '.cu', '.cuh'))]
    os.makedirs(arguments.work, exist_ok=True)
    if arguments.measure:
        covered = Build(os.path.join(arguments.work, 'covered'), COVERED)
        coverage(arguments.work, wanted_tests(covered, arguments), arguments.jobs,
                 arguments.seconds)
        return
    journal = os.path.join(arguments.work, 'journal')
    known, reviewed = read_journal(journal), read_reviewed()
    workers = [Worker(arguments.work, 0, arguments)]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        workers += pool.map(lambda i: Worker(arguments.work, i, arguments),
                            range(1, arguments.jobs))
    order = choose(workers[0].build.tree, paths, arguments.seed)
    for worker in workers[1:]:
        worker.lines = workers[0].lines
        worker.tests = [replace(t, seconds=same.seconds, lines=same.lines)
                        for t, same in zip(worker.tests, workers[0].tests)]

    begin = time.monotonic()

    def is_time_up():
        return arguments.minutes and time.monotonic() - begin > 60 * arguments.minutes

    def note(mutant):
        with open(journal, 'a') as f:
            f.write(json.dumps([mutant.key(), mutant.verdict, mutant.killer, mutant.passed]) + '\n')
        log(f'{mutant.path}:{mutant.line}: {mutant.verdict} {mutant.killer}: {mutant.after}')

    def try_them(mutants):
        """Test the files in parallel, the mutants of each file in turn."""
        by_path = {}
        for mutant in mutants:
            by_path.setdefault(mutant.path, []).append(mutant)
        free = list(workers)

        def take(of_one_file):
            worker = free.pop()
            worker.try_all(of_one_file, note, is_time_up)
            free.append(worker)

        with ThreadPoolExecutor(len(workers)) as pool:
            list(pool.map(take, by_path.values()))

    for mutant in order:
        mutant.verdict, mutant.killer, mutant.passed = known.get(mutant.key(), ('', '', []))
    # Mutants of earlier runs come first: they were chosen at random, too.
    order.sort(key=lambda mutant: not mutant.verdict)
    if arguments.again:
        try_them([m for m in order if m.verdict == 'survived' and m.key() not in reviewed])
    else:
        # In rounds: only after a test is it known whether the mutant counts.
        while not is_time_up():
            enough = sum(map(counts, order)) >= arguments.count
            untried = [m for m in order if not m.verdict]
            if enough or not untried:
                break
            try_them(untried[:min(arguments.count - sum(map(counts, order)), ROUND * arguments.jobs)])
    done = [mutant for mutant in order if mutant.verdict]
    for mutant in done:
        apply_review(mutant, reviewed)
    report(done)


if __name__ == '__main__':
    main()
