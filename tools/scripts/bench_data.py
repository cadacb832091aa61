"""bench_data - write measurements as the JSON files of docs/data, which plot_benchmarks.py draws"""
import datetime
import json
import os
import platform
import statistics
import subprocess


def case(name, nbytes, seconds, **more):
    """Return one case of a series: the times of all rounds and their median."""
    return {'name': name, 'input_bytes': nbytes, **more, 'median_s': round(statistics.median(seconds), 6),
            'seconds': [round(s, 6) for s in seconds]}


def machine():
    """Return the GPUs, the number of processors and the kernel version in one line."""
    try:
        gpus = subprocess.run(['nvidia-smi', '--query-gpu=name', '--format=csv,noheader'],
                              capture_output=True, text=True).stdout.split('\n')[:-1]
    except FileNotFoundError:
        gpus = []
    gpu = f'{len(gpus)} {gpus[0]}' if len(gpus) > 1 else ''.join(gpus)
    return ', '.join(filter(None, [gpu, f'{len(os.sched_getaffinity(0))} processors',
                                   f'Linux {platform.release().split("-")[0]}']))


def write(directory, series, command):
    """
    Write a series to directory/SERIES.json.

    series: a dict with "series", "data" and "cases"
    command: the script that measured it
    """
    version = subprocess.run(['gsort', '--version'], capture_output=True, text=True).stdout.split()[1]
    head = {'series': series['series'], 'date': datetime.date.today().isoformat(), 'machine': machine(),
            'command': command, 'version': version,
            'processors': len(os.sched_getaffinity(0)), 'data': series['data']}
    rows = ''.join(f'  {json.dumps(key)}: {json.dumps(value)},\n' for key, value in head.items())
    cases = ',\n'.join(f'    {json.dumps(one)}' for one in series['cases'])
    path = directory / f"{series['series']}.json"
    path.write_text(f'{{\n{rows}  "cases": [\n{cases}\n  ]\n}}\n')
    print(path, flush=True)
