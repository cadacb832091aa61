#!/usr/bin/env python3
"""timeline - check that a trace is valid and agrees with the statistics and the output of the sort

usage: timeline.py TRACE STATS OUTPUT
"""
import collections
import json
import os
import re
import sys

import assertions
from assertions import claim

ROLES = ['phases', 'partition', 'reader', 'fetcher', 'CPU queue', 'GPU queue', 'writer', 'verifier']


def ns(us):
    return round(us * 1000)


def check_tracks(events):
    """Check that each track has the name of a role and that roles are in order."""
    names = {e['tid']: e['args']['name'] for e in events if e['name'] == 'thread_name'}
    order = {e['tid']: e['args']['sort_index'] for e in events
             if e['name'] == 'thread_sort_index'}
    used = {e['tid'] for e in events if e['ph'] == 'X'}
    claim(names.keys() == order.keys() == used, 'a track without a name, or a name without a track')
    claim(len(set(names.values())) == len(names), 'two tracks have one name')
    roles = [re.sub(r' [0-9]+$', '', names[tid]) for tid in sorted(names, key=order.get)]
    claim(roles == sorted(roles, key=ROLES.index), f'roles are not in order: {roles}')
    return names


def check_pieces(events):
    """Check that events of one track do not overlap."""
    tracks = collections.defaultdict(list)
    for e in events:
        if e['ph'] == 'X':
            claim(e['ts'] >= 0 and e['dur'] >= 0, f'a time before the beginning: {e}')
            tracks[e['tid']].append((ns(e['ts']), ns(e['ts']) + ns(e['dur']), e['name']))
    for tid, pieces in tracks.items():
        pieces.sort()
        for before, after in zip(pieces, pieces[1:]):
            claim(before[1] <= after[0], f'track {tid}: {before} and {after} overlap')


def check_counters(events, stats, nbytes):
    counters = collections.defaultdict(list)
    for e in events:
        if e['ph'] == 'C':
            counters[e['name']].append((e['ts'], e['args']['bytes']))
    claim(counters.keys() == {'memory', 'temporary space', 'written'}, f'{counters.keys()}')
    for name, samples in counters.items():
        claim(all(a[0] <= b[0] for a, b in zip(samples, samples[1:])), f'{name}: times decrease')
    written = [value for _, value in counters['written']]
    claim(written == sorted(written), 'the written bytes decrease')
    claim(written[-1] == nbytes, f'{written[-1]} bytes written, expected {nbytes}')
    most = max(value for _, value in counters['temporary space'])
    peak = stats['peak_temporary_bytes']
    claim(most <= peak and (most > 0) == (peak > 0), f'temporary space: {most}, at most {peak}')
    claim(max(value for _, value in counters['memory']) > 1 << 20, 'the memory of a process')


def check_phases(events, stats):
    phases = [e for e in events if e.get('cat') == 'phase']
    took = {phase['name']: phase['elapsed_s'] for phase in stats['phases']}
    claim(len(phases) == len(took), 'phases are those of the statistics')
    for event, s in zip(phases, took.values()):
        claim(abs(event['dur'] / 1e6 - s) < 1e-5, f'{event["name"]} took {s} s')


def check_bytes(events, stats):
    """Check that the events of each stage add up to its bytes."""
    sums = collections.Counter()
    for e in events:
        if e.get('cat') == 'work' and e['name'] != 'partition':
            sums[e['name']] += e['args']['bytes']
    expected = collections.Counter()
    for phase in stats['phases']:
        for stage in phase['stages']:
            expected[stage['name']] += stage['bytes']
    for name in expected:
        claim(sums[name] == expected[name], f'{name}: {sums[name]} bytes, expected {expected[name]}')


def check_windows(events):
    """
    Check that each fetch of the final merge has the number of a window that is written. A window
    fetches nothing if all its records are in resident runs or left over from earlier windows. A
    merge of inputs has no resident runs, so each of its windows fetches.
    """
    final = next(e for e in events if e.get('cat') == 'phase' and e['name'] == 'final merge')
    items = collections.defaultdict(set)
    for e in events:
        if e.get('cat') == 'work' and e['ts'] >= final['ts']:
            items[e['name']].add(e['args']['item'])
    fetched, written = items['fetch'], items['write']
    claim(fetched <= written, f'fetched for windows that are not written: {fetched - written}')
    if not any(e['name'] == 'read' for e in events):
        claim(len(written) > 1, 'a merge of inputs takes several windows')
        claim(fetched == written, f'nothing is fetched for windows: {written - fetched}')


def main():
    trace, stats, output = sys.argv[1:4]
    with open(trace) as file:
        events = json.load(file)
    with open(stats) as file:
        stats = json.load(file)
    claim({e['ph'] for e in events} == {'X', 'C', 'M'}, 'kinds of events')
    claim(len({e['pid'] for e in events}) == 1, 'one process')
    claim(events[-1]['name'] == 'process_name', 'the process has a name')
    check_tracks(events)
    check_pieces(events)
    check_counters(events, stats, os.path.getsize(output))
    check_phases(events, stats)
    check_bytes(events, stats)
    check_windows(events)
    return assertions.status()


if __name__ == '__main__':
    sys.exit(main())
