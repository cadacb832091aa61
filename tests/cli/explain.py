#!/usr/bin/env python3
"""explain - text and JSON of --explain agree, and the sort does what was planned

usage: explain.py GSORT GSORT_GEN, in a writable directory
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
    claim(done.returncode == 0 and not done.stderr, f'{arguments}: {done.returncode} {done.stderr}')
    return done.stdout.decode()


def is_size(text, nbytes):
    """Is the text this number of bytes, rounded?"""
    number, unit = text.split()
    return abs(float(number) * UNITS[unit] - nbytes) <= 0.11 * UNITS[unit]


def row(text, name):
    found = re.search(rf'^{name}  +(.*)$', text, re.M)
    return found.group(1) if found else None


def size_in(text, name):
    return re.search(r'[0-9.]+ (B|[KMGT]iB)', row(text, name)).group(0)


def moved(text):
    """Return (phase, stage) -> size from the table of stages."""
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


def agree(what, *arguments, pipe=None):
    """Compare text and JSON, except measured numbers; return the JSON."""
    text = run('--explain', *arguments, pipe=pipe)
    plan_json = json.loads(run('--explain=json', *arguments, pipe=pipe))
    plan = plan_json['plan']
    claim(plan_json['backend'] == row(text, 'device'), f'{what}: device')
    claim(row(text, 'record') == f'{plan_json["record_bytes"]} bytes, sorted as elements of '
          f'{plan_json["element_bytes"]} bytes', f'{what}: record')
    claim(is_size(size_in(text, 'memory'), plan_json['memory']['limit_bytes']), f'{what}: memory')
    claim(is_size(size_in(text, 'temporary space'), plan_json['temporary']['needed_bytes']),
          f'{what}: temporary space')
    claim(is_size(size_in(text, 'windows'), plan['window_bytes']), f'{what}: windows')
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
    in_json = {(PHASES[phase['name']], stage['name']): stage['bytes']
            for phase in plan_json['phases'] for stage in phase['stages']}
    in_text = moved(text)
    claim(in_json.keys() == in_text.keys(), f'{what}: stages {in_json.keys() ^ in_text.keys()}')
    for key in in_json.keys() & in_text.keys():
        claim(is_size(in_text[key], in_json[key]), f'{what}: {key}: {in_text[key]} {in_json[key]}')
    check_times(what, plan_json)
    return plan_json


def ranks(what, *arguments, pipe=None):
    """Compare text and JSON of a distributed sort; return the JSON."""
    text = run('--explain', *arguments, pipe=pipe)
    plan_json = json.loads(run('--explain=json', *arguments, pipe=pipe))
    of_ranks = plan_json['ranks']
    each = of_ranks['per_rank']
    claim(plan_json['phases'] == [], f'{what}: phases of this machine')
    claim(f'each of {of_ranks["ranks"]} ranks' in text, f'{what}: ranks')
    claim(is_size(size_in(text, '  reads'), each['read_bytes']), f'{what}: reads')
    claim(is_size(size_in(text, '  writes'), each['written_bytes']), f'{what}: writes')
    claim(is_size(size_in(text, '  receives'), each['received_bytes']), f'{what}: receives')
    claim(row(text, '  merges').split()[0] == str(each['runs_merged']), f'{what}: merges')
    claim(each['disk_bytes'] == each['read_bytes'] + each['written_bytes'] +
          2 * (each['spilled_bytes'] + each['merge_pass_bytes']), f'{what}: disk')
    claim(each['spilled_bytes'] + each['spilled_to_memory_bytes'] == each['read_bytes'], f'{what}: stored')
    claim((each['merge_pass_bytes'] > 0) == (plan_json['plan']['passes'] > 1), f'{what}: passes')
    claim(abs(sum(phase['expected_s'] for phase in of_ranks['phases']) - plan_json['expected_s']) < 1e-4,
          f'{what}: phases do not add up')
    for limit in of_ranks['limits']:
        claim(limit['exceeded'] == (limit['value'] > limit['limit']), f'{what}: {limit}')
    claim(f'{of_ranks["limiting_factor"]}' in [limit['name'] for limit in of_ranks['limits']] and
          text.count('<- limiting factor') == 1, f'{what}: limiting factor')
    return plan_json


def bytes_of(phases):
    return {(phase['name'], stage['name']): stage['bytes']
            for phase in phases for stage in phase['stages'] if stage['bytes']}


def does_as_planned(*arguments):
    """Check that a sort of distinct keys moves the planned bytes."""
    what = ' '.join(arguments)
    output = 'divided' if '--split' in what else 'output'
    plan_json = json.loads(run('--explain=json', *arguments, '-o', output))
    run('--stats-json=stats', *arguments, '-o', output)
    with open('stats') as stats:
        did = json.load(stats)
    claim(did['chunk_bytes'] == plan_json['plan'].get('chunk_bytes', 0), f'{what}: chunks')
    for name in 'runs_spilled', 'passes', 'partitions':
        claim(did[name] == plan_json['plan'][name], f'{what}: {name}')
    claim(did['peak_temporary_bytes'] <= plan_json['temporary']['needed_bytes'], f'{what}: space')
    moves, moved = bytes_of(plan_json['phases']), bytes_of(did['phases'])
    for key in moves.keys() | moved.keys():
        claim(moves.get(key) == moved.get(key),
              f'{what}: {key}: planned {moves.get(key)}, moved {moved.get(key)}')
    return {'needed': plan_json['temporary']['needed_bytes'], 'taken': did['peak_temporary_bytes']}


SIZES = {'1 TB': 10 ** 12, '100 TB': 10 ** 14, '1 PB': 10 ** 15}


def cluster_row(size, n_ranks):
    """Return a current line of the table in docs/cluster.md."""
    command = [GSORT, '--explain=json', f'--ranks={n_ranks}', f'--assume-size={SIZES[size]}b',
               '-R', '100', '-k', '0:b10', '-S', '128G', '--parallel=16']
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
    begin = f'| {size} | {n_ranks} |'
    if done.returncode:
        return begin + ' refused: more memory is needed | | | | | | |'
    plan_json = json.loads(done.stdout)
    each = plan_json['ranks']['per_rank']
    limits = {limit['name']: limit['value'] / limit['limit'] for limit in plan_json['ranks']['limits']}
    first = plan_json['ranks']['limiting_factor']
    return begin + (f' {each["runs_merged"]} | {each["disk_bytes"] / each["read_bytes"]:.2f} |'
                    f' {each["received_bytes"] / each["received_record_bytes"]:.3f} |'
                    f' {plan_json["plan"]["block_bytes"] / 1024:.0f} KiB |'
                    f' {each["message_bytes"] / 1024:.0f} KiB | {plan_json["expected_s"] / 60:.1f} |'
                    f' {first}: {limits[first] * 100:.0f} % |')


def cluster_table():
    return [cluster_row(size, n_ranks) for size in SIZES for n_ranks in (4, 64, 1000)]


def cells(line):
    return [cell.strip() for cell in line.strip().strip('|').split('|')]


def is_close(documented, actual):
    """
    Are the words of two cells the same, and their numbers within one unit of the last digit, or
    2 % if they are whole? How much scratch memory a sort needs depends on the vector instructions
    of the processor. So do the lengths of chunks and blocks, slightly.
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
              f'cluster.md does not say: {line}')


def check_times(what, plan_json):
    claim(abs(sum(phase['expected_s'] for phase in plan_json['phases']) - plan_json['expected_s']) < 1e-4,
          f'{what}: phases do not add up')
    stages = [stage for phase in plan_json['phases'] for stage in phase['stages']]
    claim(plan_json['complete'] == all(stage['bytes_per_s'] for stage in stages),
          f'{what}: is_complete')
    for phase in plan_json['phases']:
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

    plan_json = agree('keys', '-S', '1M', 'keys', '-o', 'output')
    claim(plan_json['input'] == {'files': 1, 'bytes': 4000000, 'records': 500000, 'assumed_bytes': None,
                            'format': 'raw', 'compressed_files': 0, 'unprobed_files': 0}, 'input')
    claim(plan_json['output']['needed_bytes'] == 4000000 and plan_json['output']['sufficient'], 'output')
    claim(plan_json['plan']['passes'] > 1 and plan_json['plan']['runs_spilled'] > 1, 'runs are spilled')
    claim(plan_json['temporary']['sufficient'] is True, 'there is room')
    plan_json = agree('a limit', '-S', '1M', '--temp-limit=1M', 'keys', '-o', 'output')
    claim(plan_json['temporary']['sufficient'] is False and
          plan_json['temporary']['available_bytes'] == 1 << 20, 'there is no room')
    plan_json = agree('no directory', '-S', '64M', '-T', 'nowhere', 'keys')
    claim(plan_json['temporary']['sufficient'] is None and plan_json['output']['sufficient'] is None,
          'nobody knows whether there is room')
    plan_json = agree('records', '-S', '64M', '-R', '32', '-k', '8:u64:r', 'records')
    claim(plan_json['type'] == '8:u64le:r' and plan_json['record_bytes'] == 32 and plan_json['plan']['fits_in_memory'],
          'records')
    plan_json = agree('array', '-S', '64M', 'array')
    claim(plan_json['input']['format'] == 'npy' and plan_json['type'].startswith('f64'), 'array')
    run('--zstd', 'keys', '-o', 'keys.zst')
    plan_json = agree('compressed', '-S', '64M', 'keys.zst')
    claim(plan_json['input']['compressed_files'] == 1, 'compressed')
    plan_json = agree('partitions', '--split=3', '--split-by=keys', '--partitions=2', '-S', '256M', 'keys', '-o',
                 'divided')
    claim(plan_json['plan']['partitions'] == 3 and plan_json['plan']['concurrent_partitions'] == 2, 'partitions')
    plan_json = agree('compressed output', '--partitions=3', '--parallel=4', '-S', '256M', '--zstd', 'keys')
    claim(plan_json['plan']['partitions'] == 1, 'a compressed output has no partitions')
    plan_json = agree('merge', '-m', 'keys', 'keys', '-S', '64M')
    claim('chunks' not in plan_json['plan'], 'a merge has no chunks')
    plan_json = agree('pipe', '-S', '1M', pipe='keys')
    claim(plan_json['per_input_bytes'] == 1 << 30 and plan_json['input']['bytes'] is None and
          plan_json['temporary']['needed_bytes'] > 0 and plan_json['temporary']['sufficient'] is None, 'pipe')
    plan_json = agree('assumed', '-S', '1M', '--assume-size=1G', pipe='keys')
    claim(plan_json['per_input_bytes'] is None and plan_json['input']['assumed_bytes'] == 1 << 30, 'assumed')
    plan_json = ranks('ranks', '--ranks=3', '-S', '1M', 'keys', '-T', 'nowhere', '-o', 'nowhere/output')
    claim(plan_json['input']['records'] == 500000 and plan_json['plan']['runs_spilled'] > 0,
          'ranks of a file')
    plan_json = ranks('checkpoint', '--ranks=3', '-S', '1M', 'keys', '--checkpoint=nowhere', '-o',
                 'nowhere/output')
    claim(plan_json['ranks']['per_rank']['spilled_to_memory_bytes'] == 0, 'a checkpoint keeps nothing in memory')
    plan_json = ranks('assumed', '--ranks=1000', '--assume-size=100T', '-S', '128G', '--parallel=8',
                 '--assume-rates=network=1000000000,disk=1G', '-R', '100', '-k', '0:b10',
                 pipe='keys')
    claim(plan_json['input'] == {'files': 1, 'bytes': None, 'records': None, 'assumed_bytes': 100 << 40,
                            'format': 'raw', 'compressed_files': 0, 'unprobed_files': 0},
          'an input that is not there')
    claim(plan_json['memory']['limit_bytes'] == 128 << 30 and
          plan_json['memory']['exchange_bytes'] == (128 << 30) // 5, 'all of the memory is named')
    text = run('--explain', '--ranks=8', '--assume-size=1T', '-S', '64G', pipe='keys')
    claim(size_in(text, 'memory') == '64 GiB' and size_in(text, 'exchange') == '12.8 GiB',
          'sizes are not cut')
    links = {link['name']: link for link in plan_json['ranks']['phases'][1]['links']}
    claim(links['network']['per_s'] == 10 ** 9 and links['network']['user_supplied'] and
          not links['messages']['user_supplied'] and links['processors']['per_s'] is None, 'rates')
    for arguments in ['-u', '--split=4', '--partitions=3'], ['--partitions=3', '--limit=200000'], \
            ['--argsort', '--partitions=3'], ['-S', '1M', '-u'], \
            ['-S', '1M', '--batch-size=2', '--limit=60000'], \
            ['-S', '1M', '--batch-size=3', '--argsort'], \
            ['-S', '1M', '--limit=1000', '--split=3'], \
            ['--split=3', '--split-by=keys', '--partitions=2'], \
            ['--split=3', '--split-by=keys', '--partitions=3', '--limit=400000']:
        does_as_planned(*arguments, 'keys')
    does_as_planned('-S', '1M', '-R', '32', '-k', '8:u64', 'records')
    run('keys', '-o', 'sorted')
    does_as_planned('-m', '--limit=1000', 'sorted', 'sorted')
    five = ['-m', '-S', '1M', '--batch-size=2', '--temp-compress=none'] + ['sorted'] * 5
    does_as_planned('--limit=1000', *five)
    space = does_as_planned(*five[:3], '--batch-size=3', *five[4:])
    claim(space['needed'] <= 1.15 * space['taken'], f'the space of what merges store: {space}')
    check_cluster_table(os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                     '../../docs/cluster.md'))
    return assertions.status()


if __name__ == '__main__':
    sys.exit(main())
