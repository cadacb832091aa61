#!/usr/bin/env python3
"""explain - check that --explain and --explain=json agree, and that the sort does what they predict

usage: explain.py GSORT GSORT_GEN

Creates files in the current directory.
"""
import json
import os
import re
import struct
import subprocess
import sys

import assertions
from assertions import claim

GSORT, GSORT_GEN = sys.argv[1:3]
UNITS = {'B': 1, 'KiB': 1 << 10, 'MiB': 1 << 20, 'GiB': 1 << 30, 'TiB': 1 << 40}


def run(*arguments, pipe=None):
    stdin = open(pipe, 'rb') if pipe else None
    if pipe:
        cat = subprocess.Popen(['cat'], stdin=stdin, stdout=subprocess.PIPE)
        done = subprocess.run([GSORT, *arguments], stdin=cat.stdout, capture_output=True)
        cat.stdout.close()
        cat.wait()
    else:
        done = subprocess.run([GSORT, *arguments], capture_output=True)
    is_silent = re.fullmatch(rb'(gsort: --ranks: assuming .*\n)?', done.stderr)
    claim(done.returncode == 0 and is_silent, f'{arguments}: {done.returncode} {done.stderr}')
    return done.stdout.decode()


def is_size(text, nbytes):
    """Return whether the text is the rounded form of nbytes."""
    number, unit = text.split()
    return abs(float(number) * UNITS[unit] - nbytes) <= 0.11 * UNITS[unit]


def row(text, name):
    found = re.search(rf'^{name}  +(.*)$', text, re.M)
    return found.group(1) if found else None


def size_in(text, name):
    return re.search(r'[0-9.]+ (B|[KMGT]iB)', row(text, name)).group(0)


def moved_bytes(text):
    """Return (phase, stage) -> size from the table of moved bytes."""
    phases, phase = {}, None
    for line in text.split('\n\n')[1].splitlines()[1:]:
        if not line.startswith(' '):
            phase = line.split(':')[0]
        else:
            name, number, unit = line.split()[:3]
            phases[phase, name] = f'{number} {unit}'
    return phases


PHASES = {'run_generation': 'run generation', 'merge_passes': 'merge passes',
          'final_merge': 'final merge', 'verify': 'verify'}


def compare_forms(what, *arguments, pipe=None):
    """Compare --explain with --explain=json, except for measured values. Return the JSON."""
    text = run('--explain', *arguments, pipe=pipe)
    report = json.loads(run('--explain=json', *arguments, pipe=pipe))
    plan = report['plan']
    claim(report['backend'] == row(text, 'device'), f'{what}: device')
    claim(row(text, 'record') == f'{report["record_bytes"]} bytes, sorted as elements of '
          f'{report["element_bytes"]} bytes', f'{what}: record')
    claim(is_size(size_in(text, 'memory'), report['memory']['limit_bytes']), f'{what}: memory')
    for name, member in (('codecs', 'codec_bytes'), ('index of runs', 'index_bytes')):
        nbytes = report['memory'][member]
        claim(is_size(size_in(text, name), nbytes) if nbytes else row(text, name) is None, f'{what}: {name}')
    claim(is_size(size_in(text, 'temporary space'), report['temporary']['needed_bytes']),
          f'{what}: temporary space')
    claim(is_size(size_in(text, 'windows'), plan['window_bytes']), f'{what}: windows')
    claim(row(text, 'merge').startswith(f'fan-in {plan["fan_in"]}, blocks of '), f'{what}: merge')
    claim(row(text, 'partitions') is None and plan['partitions'] == 1 or
          row(text, 'partitions').split()[0] == str(plan['partitions']), f'{what}: partitions')
    claim(row(text, 'threads') == f'{plan["readers"]} readers, {plan["writers"]} writers',
          f'{what}: threads')
    if plan['passes'] is not None:
        claim(row(text, 'merge passes') == str(plan['passes']), f'{what}: passes')
    if 'chunks' in plan:
        claim(row(text, 'chunks').split()[0] == str(plan['chunks']), f'{what}: chunks')
        claim(plan['fits_in_memory'] == ('nothing is spilled' in row(text, 'runs')), f'{what}: fits_in_memory')
        claim(plan['fits_in_memory'] or is_size(size_in(text, 'runs'), plan['run_bytes']), f'{what}: runs')
    by_stage = {(PHASES[phase['name']], stage['name']): stage['bytes']
                for phase in report['phases'] for stage in phase['stages']}
    shown = moved_bytes(text)
    claim(by_stage.keys() == shown.keys(), f'{what}: stages {by_stage.keys() ^ shown.keys()}')
    for key in by_stage.keys() & shown.keys():
        claim(is_size(shown[key], by_stage[key]), f'{what}: {key}: {shown[key]} {by_stage[key]}')
    check_times(what, report)
    return report


def compare_forms_of_ranks(what, *arguments, pipe=None):
    """Compare --explain with --explain=json for --ranks. Return the JSON."""
    text = run('--explain', *arguments, pipe=pipe)
    report = json.loads(run('--explain=json', *arguments, pipe=pipe))
    of_ranks = report['ranks']
    each = of_ranks['per_rank']
    claim(report['phases'] == [], f'{what}: phases of this machine')
    claim(f'each of {of_ranks["ranks"]} ranks' in text, f'{what}: ranks')
    claim(is_size(size_in(text, '  reads'), each['read_bytes']), f'{what}: reads')
    claim(is_size(size_in(text, '  writes'), each['written_bytes']), f'{what}: writes')
    claim(is_size(size_in(text, '  receives'), each['received_bytes']), f'{what}: receives')
    claim(row(text, '  merges').split()[0] == str(each['runs_merged']), f'{what}: merges')
    claim(each['disk_bytes'] == each['read_bytes'] + each['written_bytes'] +
          2 * (each['spilled_bytes'] + each['merge_pass_bytes']), f'{what}: disk')
    claim(each['spilled_bytes'] + each['spilled_to_memory_bytes'] == each['read_bytes'], f'{what}: stored')
    claim((each['merge_pass_bytes'] > 0) == (report['plan']['passes'] > 1), f'{what}: passes')
    claim(abs(sum(phase['expected_s'] for phase in of_ranks['phases']) - report['expected_s']) < 1e-4,
          f'{what}: phases do not add up')
    for limit in of_ranks['limits']:
        claim(limit['exceeded'] == (limit['value'] > limit['limit']), f'{what}: {limit}')
    claim(f'{of_ranks["limiting_factor"]}' in [limit['name'] for limit in of_ranks['limits']] and
          text.count('<- limiting factor') == 1, f'{what}: limiting factor')
    return report


def bytes_of(phases):
    return {(phase['name'], stage['name']): stage['bytes']
            for phase in phases for stage in phase['stages'] if stage['bytes']}


def check_estimate(*arguments):
    """Compare the bytes that a sort of unique keys moves with those of its plan."""
    what = ' '.join(arguments)
    output = 'divided' if '--split' in what else 'output'
    if '-S' not in arguments:  # --explain takes longer with the default memory
        arguments = '-S', '64M', *arguments
    report = json.loads(run('--explain=json', *arguments, '-o', output))
    run('--stats-json=stats', *arguments, '-o', output)
    with open('stats') as file:
        stats = json.load(file)
    claim(stats['chunk_bytes'] == report['plan'].get('chunk_bytes', 0), f'{what}: chunks')
    for name in 'runs_spilled', 'passes', 'partitions':
        claim(stats[name] == report['plan'][name], f'{what}: {name}')
    claim(stats['peak_temporary_bytes'] <= report['temporary']['needed_bytes'], f'{what}: space')
    estimated, moved = bytes_of(report['phases']), bytes_of(stats['phases'])
    for key in estimated.keys() | moved.keys():
        claim(estimated.get(key) == moved.get(key),
              f'{what}: {key}: estimated {estimated.get(key)}, moved {moved.get(key)}')
    return {'needed': report['temporary']['needed_bytes'], 'taken': stats['peak_temporary_bytes']}


SIZES = {'1 TB': 10 ** 12, '100 TB': 10 ** 14, '1 PB': 10 ** 15}


def cluster_row(size, n_ranks):
    """Return a row of the table of docs/cluster.md as the program computes it now."""
    command = [GSORT, '--explain=json', f'--ranks={n_ranks}', f'--assume-size={SIZES[size]}b',
               '-R', '100', '-k', '0:b10', '-S', '128G', '--parallel=16']
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    begin = f'| {size} | {n_ranks} |'
    if done.returncode:
        return begin + ' refused: more memory is needed | | | | | | |'
    report = json.loads(done.stdout)
    each = report['ranks']['per_rank']
    limits = {limit['name']: limit['value'] / limit['limit'] for limit in report['ranks']['limits']}
    first = report['ranks']['limiting_factor']
    return begin + (f' {each["runs_merged"]} | {each["disk_bytes"] / each["read_bytes"]:.2f} |'
                    f' {each["received_bytes"] / each["received_record_bytes"]:.3f} |'
                    f' {report["plan"]["block_bytes"] / 1024:.0f} KiB |'
                    f' {each["message_bytes"] / 1024:.0f} KiB | {report["expected_s"] / 60:.1f} |'
                    f' {first}: {limits[first] * 100:.0f} % |')


def cluster_table():
    return [cluster_row(size, n_ranks) for size in SIZES for n_ranks in (4, 64, 1000)]


def cells(line):
    return [cell.strip() for cell in line.strip().strip('|').split('|')]


def is_close(documented, actual):
    """
    Return whether two cells have the same words and close numbers: within one unit of the last
    digit, or within 2 % if they are whole. Scratch memory, and so the lengths of chunks and blocks,
    depend slightly on the vector instructions of the processor.
    """
    number = r'[0-9]+(?:\.[0-9]+)?'
    if re.sub(number, '#', documented) != re.sub(number, '#', actual):
        return False
    for a, b in zip(re.findall(number, documented), re.findall(number, actual)):
        n_decimals = len(a.partition('.')[2])
        tolerance = 10.0 ** -n_decimals if n_decimals else max(1, 0.02 * float(a))
        if abs(float(a) - float(b)) > 1.001 * tolerance:
            return False
    return True


def check_cluster_table(path):
    with open(path) as stream:
        rows = [cells(line) for line in stream if line.startswith('|')]
    documented = {tuple(documented_cells[:2]): documented_cells for documented_cells in rows}
    for line in cluster_table():
        actual = cells(line)
        expected = documented.get(tuple(actual[:2]), [])
        claim(len(expected) == len(actual) and all(map(is_close, expected, actual)),
              f'docs/cluster.md: expected {line}')


def check_times(what, report):
    claim(abs(sum(phase['expected_s'] for phase in report['phases']) - report['expected_s']) < 1e-4,
          f'{what}: phases do not add up')
    stages = [stage for phase in report['phases'] for stage in phase['stages']]
    claim(report['complete'] == all(stage['bytes_per_s'] for stage in stages),
          f'{what}: is_complete')
    for phase in report['phases']:
        longest = max(phase['stages'], key=lambda stage: stage['expected_s'] or 0)
        claim(phase['bottleneck'] in (longest['name'], None), f'{what}: bottleneck')


def main():
    subprocess.run([GSORT_GEN, '-n', '500000', '-o', 'keys'], check=True)
    subprocess.run([GSORT_GEN, '-R', '32', '-k', '8:u64', '-n', '100000', '-o', 'records'],
                   check=True)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (500000,), }"
    header += b' ' * (118 - 1 - len(header)) + b'\n'
    with open('array', 'wb') as array, open('keys', 'rb') as keys:
        array.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + keys.read())

    report = compare_forms('keys', '-S', '1M', 'keys', '-o', 'output')
    claim(report['input'] == {'files': 1, 'bytes': 4000000, 'records': 500000, 'assumed_bytes': None,
                            'format': 'raw', 'compressed_files': 0, 'unprobed_files': 0}, 'input')
    claim(report['output']['needed_bytes'] == 4000000 and report['output']['sufficient'], 'output')
    claim(report['plan']['passes'] > 1 and report['plan']['runs_spilled'] > 1, 'runs are spilled')
    claim(report['temporary']['sufficient'] is True, 'the space suffices')
    report = compare_forms('an input of more than half of the memory', '-S', '7M', 'keys')
    claim(report['plan']['fits_in_memory'] and report['plan']['runs_spilled'] == 0, 'no run is spilled')
    report = compare_forms('a limit', '-S', '1M', '--temp-limit=1M', 'keys', '-o', 'output')
    claim(report['temporary']['sufficient'] is False and
          report['temporary']['available_bytes'] == 1 << 20, 'the space does not suffice')
    report = compare_forms('no directory', '-S', '64M', '-T', 'nowhere', 'keys')
    claim(report['temporary']['sufficient'] is None and report['output']['sufficient'] is None,
          'it is unknown whether the space suffices')
    report = compare_forms('records', '-S', '64M', '-R', '32', '-k', '8:u64:r', 'records')
    claim(report['type'] == '8:u64le:r' and report['record_bytes'] == 32 and report['plan']['fits_in_memory'],
          'records')
    report = compare_forms('array', '-S', '64M', 'array')
    claim(report['input']['format'] == 'npy' and report['type'].startswith('f64'), 'array')
    run('--zstd', 'keys', '-o', 'keys.zst')
    report = compare_forms('compressed', '-S', '64M', 'keys.zst')
    claim(report['input']['compressed_files'] == 1, 'compressed')
    report = compare_forms('partitions', '--split=3', '--split-by=keys', '--partitions=2', '-S', '64M', 'keys', '-o',
                 'divided')
    claim(report['plan']['partitions'] == 3 and report['plan']['concurrent_partitions'] == 2, 'partitions')
    report = compare_forms('compressed output', '--partitions=3', '--parallel=4', '-S', '64M', '--zstd', 'keys')
    claim(report['plan']['partitions'] == 1, 'a compressed output has no partitions')
    report = compare_forms('merge', '-m', 'keys', 'keys', '-S', '64M')
    claim('chunks' not in report['plan'], 'a merge has no chunks')
    report = compare_forms('pipe', '-S', '1M', pipe='keys')
    claim(report['per_input_bytes'] == 1 << 30 and report['input']['bytes'] is None and
          report['temporary']['needed_bytes'] > 0 and report['temporary']['sufficient'] is None, 'pipe')
    report = compare_forms('assumed', '-S', '1M', '--assume-size=300M', pipe='keys')
    claim(report['per_input_bytes'] is None and report['input']['assumed_bytes'] == 300 << 20, 'assumed')
    report = compare_forms_of_ranks('ranks', '--ranks=3', '-S', '1M', 'keys', '-T', 'nowhere', '-o', 'nowhere/output')
    claim(report['input']['records'] == 500000 and report['plan']['runs_spilled'] > 0,
          'ranks of a file')
    report = compare_forms_of_ranks('checkpoint', '--ranks=3', '-S', '1M', 'keys', '--checkpoint=nowhere', '-o',
                 'nowhere/output')
    claim(report['ranks']['per_rank']['spilled_to_memory_bytes'] == 0, 'a checkpoint keeps nothing in memory')
    report = compare_forms_of_ranks('assumed', '--ranks=1000', '--assume-size=100T', '-S', '128G', '--parallel=8',
                 '--assume-rates=network=1000000000,disk=1G', '-R', '100', '-k', '0:b10',
                 pipe='keys')
    claim(report['input'] == {'files': 1, 'bytes': None, 'records': None, 'assumed_bytes': 100 << 40,
                            'format': 'raw', 'compressed_files': 0, 'unprobed_files': 0},
          'an input that is not there')
    claim(report['memory']['limit_bytes'] == 128 << 30 and
          report['memory']['exchange_bytes'] == (128 << 30) // 5, 'all of the memory is named')
    text = run('--explain', '--ranks=8', '--assume-size=1T', '-S', '64G', pipe='keys')
    claim(size_in(text, 'memory') == '64 GiB' and size_in(text, 'exchange') == '12.8 GiB',
          'sizes are not cut')
    links = {link['name']: link for link in report['ranks']['phases'][1]['links']}
    claim(links['network']['per_s'] == 10 ** 9 and links['network']['user_supplied'] and
          not links['messages']['user_supplied'] and links['processors']['per_s'] is None, 'rates')
    for arguments in ['-u', '--split=4', '--partitions=3'], ['--partitions=3', '--limit=200000'], \
            ['--argsort', '--partitions=3'], ['-S', '1M', '-u'], \
            ['-S', '1M', '--batch-size=2', '--limit=60000'], \
            ['-S', '1M', '--batch-size=3', '--argsort'], \
            ['-S', '1M', '--limit=1000', '--split=3'], \
            ['--split=3', '--split-by=keys', '--partitions=2'], \
            ['--split=3', '--split-by=keys', '--partitions=3', '--limit=400000']:
        check_estimate(*arguments, 'keys')
    check_estimate('-S', '1M', '-R', '32', '-k', '8:u64', 'records')
    check_estimate('-S', '1M', '-R', '32', '-k', '8:u64', '--keys-only', 'records')
    check_estimate('-R', '32', '-k', '8:u64', 'records')  # references to mapped records
    run('keys', '-o', 'sorted')
    check_estimate('-m', '--limit=1000', 'sorted', 'sorted')
    five = ['-m', '-S', '1M', '--batch-size=2', '--temp-compress=none'] + ['sorted'] * 5
    check_estimate('--limit=1000', *five)
    space = check_estimate(*five[:3], '--batch-size=3', *five[4:])
    claim(space['needed'] <= 1.15 * space['taken'], f'the space of what merges store: {space}')
    check_cluster_table(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                     '../../docs/cluster.md'))
    return assertions.status()


if __name__ == '__main__':
    sys.exit(main())
