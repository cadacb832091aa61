#!/usr/bin/env python3
"""numpy_files - sort a numpy file that is larger than the memory limit, step by step

usage: numpy_files.py

Creates its files in a temporary directory. Editors that support "# %%" run the cells one by one.
"""

# %% Create a file of measurements: 1 million records of 20 bytes
import pathlib
import tempfile

import gsort
import numpy as np

directory = tempfile.TemporaryDirectory()
path = pathlib.Path(directory.name)
random = np.random.default_rng(1)
events = np.zeros(1_000_000, [('time', '<i8'), ('sensor', '<u4'), ('value', '<f8')])
events['time'] = random.integers(0, 10**9, len(events))
events['sensor'] = random.integers(0, 1000, len(events))
events['value'] = random.standard_normal(len(events))
np.save(path / 'events.npy', events)

# %% Print the plan of a sort in 16 MiB
plan = gsort.explain(path / 'events.npy', keys=['sensor', 'time'], memory='16M', temp_directory=path)
print('members of the plan:', ', '.join(sorted(plan)[:5]), '...')

# %% Sort by sensor, and by time within a sensor
statistics = gsort.sort(path / 'events.npy', path / 'sorted.npy', keys=['sensor', 'time'], memory='16M',
                        temp_directory=path)
print(statistics['records_out'], 'records')
result = np.load(path / 'sorted.npy', mmap_mode='r')
assert np.array_equal(result, events[np.lexsort([events['time'], events['sensor']])])

# %% Find the ten largest values and their positions in the file
gsort.argsort(path / 'events.npy', path / 'order.npy', keys='value:r', limit=10)
order = np.load(path / 'order.npy')
print(events['value'][order])
assert np.array_equal(np.sort(events['value'])[::-1][:10], events['value'][order])

# %% Sort an array in memory with all processors
assert np.array_equal(gsort.sort_array(events['value']), np.sort(events['value']))

# %% Sort a stream of arrays
with gsort.Sorter(events.dtype, keys='time', memory='16M', temp_directory=path) as sorter:
    for piece in np.array_split(events, 10):
        sorter.put(piece)
    n = sum(len(batch) for batch in sorter)
print(n, 'records came back')

# %% Sort a CSV file by its third column, descending, and keep its header
with open(path / 'events.csv', 'w') as file:
    print('time', 'sensor', 'value', sep=',', file=file)
    np.savetxt(file, events[:10_000].tolist(), fmt='%d,%d,%.6f')
gsort.sort(path / 'events.csv', path / 'sorted.csv', lines=True, field_separator=',', keys='3,3gr', header=1)
with open(path / 'sorted.csv') as file:
    print(file.readline().strip(), file.readline().strip(), sep=' | ')
