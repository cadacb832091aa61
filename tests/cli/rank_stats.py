#!/usr/bin/env python3
"""rank_stats - check that statistics and trace of gsort-mpi cover all ranks

usage: rank_stats.py STATS [TRACE]
"""
import json
import sys

import assertions
from assertions import claim


def check_sums(stats):
    """Check that the totals are the sums over the ranks."""
    ranks = stats['ranks']
    for name in ('records_in', 'records_out', 'runs', 'spilled_compressed_bytes', 'disk_read_bytes',
                 'disk_written_bytes', 'sent_bytes', 'peak_rss_bytes',
                 'peak_temporary_bytes'):
        total = sum(rank[name] for rank in ranks)
        claim(stats[name] == total, f'{name}: {stats[name]}, sum of ranks {total}')
    claim([rank['rank'] for rank in ranks] == list(range(len(ranks))), 'ranks are in order')
    claim(all(rank['host'] for rank in ranks), 'each rank has a host')
    claim(all(rank['device'] for rank in ranks), 'each rank has a device')
    most = max(rank['records_out'] for rank in ranks) * len(ranks) / stats['records_out']
    claim(abs(stats['imbalance_percent'] - 100 * (most - 1)) < 0.01, 'imbalance')


def check_phases(stats):
    """Check that a phase has the time of the slowest rank and the volumes of all ranks."""
    for phase in stats['phases']:
        times = [p['elapsed_s'] for rank in stats['ranks'] for p in rank['phases']
                 if p['name'] == phase['name']]
        claim(abs(phase['elapsed_s'] - max(times)) < 1e-5, f'{phase["name"]}: {times}')
    total = sum(phase.get('sent_bytes', 0) for phase in stats['phases'])
    claim(total == stats['sent_bytes'], f'sent: {stats["sent_bytes"]}, sum of phases {total}')


def check_volumes(stats):
    volume = stats['disk_read_bytes'] + stats['disk_written_bytes']
    claim(volume <= 4.05 * stats['input_bytes'], f'disk: {volume}')
    claim(stats['sent_bytes'] > 0, 'messages')


def check_trace(stats, path):
    """Check that each rank is a process of the trace and that their clocks agree."""
    with open(path) as file:
        events = json.load(file)
    numbers = list(range(len(stats['ranks'])))
    for kind in ('process_name', 'process_sort_index'):
        named = [e for e in events if e['name'] == kind]
        claim(sorted(e['pid'] for e in named) == numbers, f'{kind}: {named}')
    for e in events:
        if e['name'] == 'process_name':
            claim(e['args']['name'].startswith(f'rank {e["pid"]}, on '), e['args']['name'])
    for rank in stats['ranks']:
        phases = [e for e in events if e['pid'] == rank['rank'] and e.get('cat') == 'phase']
        claim(len(phases) == len(rank['phases']), f'phases of {rank["rank"]}')
        for event, phase in zip(phases, rank['phases']):
            claim(abs(event['dur'] / 1e6 - phase['elapsed_s']) < 1e-5, f'{event}')
    # Ranks wait for each other at a barrier, so none ends before all have begun to work.
    begins = [min(e['ts'] for e in events if e['pid'] == n and e.get('cat') == 'work')
              for n in numbers]
    ends = [max(e['ts'] + e['dur'] for e in events if e['pid'] == n and e.get('cat') == 'phase')
            for n in numbers]
    claim(max(begins) < min(ends), f'clocks: {begins}, {ends}')


def main():
    with open(sys.argv[1]) as file:
        stats = json.load(file)
    check_sums(stats)
    check_phases(stats)
    check_volumes(stats)
    if len(sys.argv) > 2:
        check_trace(stats, sys.argv[2])
    sys.exit(assertions.status())


main()
