"""The Python package against numpy: files, arrays, streams, errors, Ctrl-C, threads and fork."""

import contextlib
import doctest
import errno
import inspect
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import types
import warnings

import gsort
import numpy as np
import pytest

random = np.random.default_rng(20261124)

SCALARS = ['?', 'i1', 'u1', '<i2', '>u2', '<i4', '>i4', '<u8', '>i8', '<f2', '>f2', '<f4', '>f4', '<f8', '>f8',
           '<c8', '>c16', '<M8[ns]', '<m8[s]', 'S1', 'S7', 'S40', '<U3', '>U2']


def make(dtype, n):
    """Return random records of a dtype. Half of them have few values, so many are equal."""
    dtype = np.dtype(dtype)
    if dtype.names:
        array = np.zeros(n, dtype)
        for name in dtype.names:
            array[name] = make(dtype[name], n)
        return array
    if dtype.subdtype:
        return make(dtype.base, n * dtype.itemsize // dtype.base.itemsize).reshape((n,) + dtype.shape)
    if dtype.kind in 'SU':
        letters = random.integers(97, 103, (n, dtype.itemsize // (4 if dtype.kind == 'U' else 1)))
        return np.array([''.join(map(chr, row)) for row in letters]).astype(dtype)
    if dtype.kind == '?' or dtype.kind == 'b':
        return random.integers(0, 2, n).astype(dtype)
    if dtype.kind in 'fc':
        values = random.standard_normal(n)
        values[::2] = random.choice([0.5, 1, np.inf, -np.inf, np.nan, 3], len(values[::2]))
        if dtype.kind == 'c':
            with np.errstate(invalid='ignore'):
                values = values + 1j * np.roll(values, 1)
        return values.astype(dtype)
    values = random.integers(0, 256, n * dtype.itemsize, dtype='u1').view(dtype.newbyteorder('='))
    values[::2] = values[random.integers(0, min(n, 5) or 1, len(values[::2]))] if n else values[::2]
    return values.astype(dtype)


def same(a, b):
    """Return whether arrays are equal. NaN equals NaN, and -0.0 equals 0.0 (see sort_array)."""
    assert a.dtype == b.dtype and a.shape == b.shape
    if a.dtype.names:  # bytes between fields may differ
        return all(same(a[name], b[name]) for name in a.dtype.names)
    if a.dtype.kind in 'fc':
        return np.array_equal(a, b, equal_nan=True)
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize('dtype', SCALARS)
@pytest.mark.parametrize('n', [0, 1, 2, 1000, 70001])
def test_arrays_are_sorted_as_numpy_sorts_them(dtype, n):
    array = make(dtype, n)
    before = array.copy()
    assert same(gsort.sort_array(array), np.sort(array, kind='stable'))
    assert np.array_equal(gsort.argsort_array(array), np.argsort(array, kind='stable'))
    assert array.tobytes() == before.tobytes()


RECORDS = [
    [('time', '<i8'), ('value', '<f4'), ('name', 'S3')],
    np.dtype([('flag', '?'), ('value', '>f8'), ('id', '<u2')], align=True),
    [('inner', [('a', 'i1'), ('b', '<u4')]), ('tag', '<U2')],
    [('point', '<u2', (3,)), ('n', 'i1')],
]


@pytest.mark.parametrize('dtype', RECORDS, ids=str)
def test_records_are_sorted_as_numpy_sorts_them(dtype):
    array = make(dtype, 3000)
    names = array.dtype.names
    assert same(gsort.sort_array(array), np.sort(array, kind='stable'))
    for order in (names[0], [names[-1]], list(reversed(names))):
        assert same(gsort.sort_array(array, order=order), np.sort(array, order=order, kind='stable'))
        assert np.array_equal(gsort.argsort_array(array, order=order), np.argsort(array, order=order, kind='stable'))


def test_keys_are_stable_and_may_descend():
    array = make(RECORDS[0], 2000)
    array['value'] = np.round(np.nan_to_num(array['value'], posinf=9, neginf=-9), 1)
    indices = np.argsort(array['name'], kind='stable')
    assert np.array_equal(gsort.argsort_array(array, keys='name'), indices)
    indices = np.lexsort((-array['time'], array['name']))
    assert np.array_equal(gsort.argsort_array(array, keys=['name', 'time:r']), indices)
    nested = make(RECORDS[2], 500)
    assert np.array_equal(gsort.argsort_array(nested, keys='inner.b'), np.argsort(nested['inner']['b'], kind='stable'))


@pytest.mark.parametrize('min_row_nbytes', [0, 1 << 20])
def test_rows_of_any_layout_are_sorted(min_row_nbytes, monkeypatch):
    monkeypatch.setattr(gsort._arrays, '_MIN_ROW_NBYTES', min_row_nbytes)
    array = random.integers(0, 1000, (3, 9, 4)).astype('<i4')
    for axis in (0, 1, 2, -1, -2, None):
        assert np.array_equal(gsort.sort_array(array, axis=axis), np.sort(array, axis=axis))
        assert np.array_equal(gsort.argsort_array(array, axis=axis), np.argsort(array, axis=axis, kind='stable'))
    for function in gsort.sort_array, gsort.argsort_array:
        for shape, axis in ((5,), 1), ((5,), -2), ((2, 3), 2):
            with pytest.raises(ValueError, match='out of bounds'):
                function(np.zeros(shape), axis=axis)
    column = array[:, :, 1][2]
    assert not column.flags.c_contiguous
    assert np.array_equal(gsort.sort_array(column), np.sort(column))
    assert np.array_equal(gsort.sort_array(column[::-1]), np.sort(column))
    big = random.integers(0, 1 << 60, (2, 1 << 19))[0][::2]
    assert np.array_equal(gsort.sort_array(big), np.sort(big))


def test_out_may_be_the_array():
    array = random.integers(0, 1 << 60, 500_000)
    expected = np.sort(array)
    assert gsort.sort_array(array, out=array) is array
    assert np.array_equal(array, expected)
    every_second = np.zeros(1_000_000, array.dtype)
    gsort.sort_array(array[::-1], out=every_second[::2])
    assert np.array_equal(every_second[::2], expected) and not every_second[1::2].any()
    with pytest.raises(ValueError):
        gsort.sort_array(array, out=np.empty(3, array.dtype))
    with pytest.raises(ValueError, match='read-only'):
        gsort.sort_array(np.array([2, 1], 'u1'), out=np.frombuffer(b'ab', 'u1'))


def test_memory_mapped_arrays_are_sorted(tmp_path):
    np.save(tmp_path / 'in.npy', random.integers(0, 1 << 60, 400_000))
    array = np.load(tmp_path / 'in.npy', mmap_mode='r')
    out = np.lib.format.open_memmap(tmp_path / 'out.npy', 'w+', array.dtype, array.shape)
    gsort.sort_array(array, out=out)
    out.flush()
    assert np.array_equal(np.load(tmp_path / 'out.npy'), np.sort(array))


def test_options_select_records():
    array = random.integers(0, 1000, 5000)
    assert np.array_equal(gsort.sort_array(array, unique=True), np.unique(array))
    last = len(array) - 1 - np.unique(array[::-1], return_index=True)[1]
    assert np.array_equal(gsort.argsort_array(array, unique=True, keep='last'), last)
    assert np.array_equal(gsort.sort_array(array, limit=7), np.sort(array)[:7])
    assert np.array_equal(gsort.sort_array(array, reverse=True), np.sort(array)[::-1])
    assert np.array_equal(gsort.argsort_array(array, limit=7), np.argsort(array, kind='stable')[:7])


def test_what_cannot_be_sorted_is_refused():
    with pytest.raises(TypeError, match='object'):
        gsort.sort_array(np.array([1, 'a'], object))
    with pytest.raises(TypeError, match='float128'):
        gsort.sort_array(np.zeros(3, np.longdouble))
    with pytest.raises(ValueError, match='no field'):
        gsort.sort_array(np.zeros(3, [('a', 'i4')]), keys='b')
    with pytest.raises(ValueError, match='dimension'):
        gsort.sort_array(np.array(3))
    with pytest.raises(TypeError, match='argsort'):
        gsort.sort_array(np.zeros(3), argsort=True)
    with pytest.raises(TypeError, match='masked'):
        gsort.sort_array(np.ma.masked_array([3, 1, 2], [0, 1, 0]))


def test_files_are_sorted(tmp_path):
    a, b = random.integers(0, 1 << 60, 30_000, 'u8'), random.integers(0, 1 << 60, 20_000, 'u8')
    a.tofile(tmp_path / 'a.bin')
    b.tofile(tmp_path / 'b.bin')
    both = np.sort(np.concatenate([a, b]))
    statistics = gsort.sort([tmp_path / 'a.bin', str(tmp_path / 'b.bin')], tmp_path / 'out.bin', type='u64')
    assert statistics['records_in'] == statistics['records_out'] == 50_000
    assert np.array_equal(np.fromfile(tmp_path / 'out.bin', 'u8'), both)
    assert gsort.check(tmp_path / 'out.bin', type='u64') is None
    first = int(np.flatnonzero(np.diff(a.astype('f8')) < 0)[0]) + 1
    assert gsort.check(tmp_path / 'a.bin', type='u64') == first
    gsort.sort(tmp_path / 'a.bin', tmp_path / 'a.bin', type='u64')
    gsort.sort(tmp_path / 'b.bin', tmp_path / 'b.bin', type='u64', threads=1)
    gsort.merge([tmp_path / 'a.bin', tmp_path / 'b.bin'], tmp_path / 'merged.bin', type='u64')
    assert np.array_equal(np.fromfile(tmp_path / 'merged.bin', 'u8'), both)
    gsort.sort(tmp_path / 'merged.bin', tmp_path / 'parts', type='u64', split=4)
    assert len(list((tmp_path / 'parts').glob('part-*'))) == 4


def test_numpy_files_are_sorted(tmp_path):
    array = make([('time', '<i8'), ('value', '<f4')], 4000)
    np.save(tmp_path / 'in.npy', array)
    gsort.sort(tmp_path / 'in.npy', tmp_path / 'out.npy', keys=['value:r', 'time'], memory='16M')
    expected = gsort.sort_array(array, keys=['value:r', 'time'])
    assert np.load(tmp_path / 'out.npy').tobytes() == expected.tobytes()
    gsort.argsort(tmp_path / 'in.npy', tmp_path / 'order.npy', keys=['time'])
    assert np.array_equal(np.load(tmp_path / 'order.npy'), np.argsort(array['time'], kind='stable'))


def test_a_sort_that_spills_is_right(tmp_path):
    array = random.integers(0, 1 << 60, 1 << 20)
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    result = gsort.sort_array(array, memory='4M', temp_directory=temporary)
    assert np.array_equal(result, np.sort(array))
    assert not list(temporary.iterdir())


def test_sizes_are_bytes_or_strings(tmp_path):
    np.save(tmp_path / 'in.npy', np.arange(1000))
    (tmp_path / 'in.txt').write_bytes(b'b\na\n')
    for name, options in (('in.npy', {}), ('in.txt', {'lines': True})):
        for size in (32 << 20, np.int64(32 << 20), '32M', str(32 << 10)):
            statistics = gsort.sort(tmp_path / name, tmp_path / 'out', memory=size, **options)
            assert statistics['memory_limit_bytes'] == 32 << 20


def test_a_plan_is_a_dict(tmp_path):
    np.save(tmp_path / 'in.npy', np.arange(1000))
    assert isinstance(gsort.explain(tmp_path / 'in.npy', memory='1G'), dict)


def make_lines(n):
    """Return random lines of three columns with many equal values."""
    words = random.choice([b'pear', b'Apple', b'fig', b'', b'zz top'], n)
    numbers = random.integers(-20, 20, n)
    versions = random.integers(0, 12, (n, 2))
    return [b'%s,%d,v%d.%d' % (w, i, *v) for w, i, v in zip(words, numbers, versions)]


def test_lines_are_sorted_as_python_sorts_bytes(tmp_path):
    lines = make_lines(60_000)
    (tmp_path / 'in').write_bytes(b'\n'.join(lines))
    first, second = lines[:20_000], lines[20_000:]
    (tmp_path / 'first').write_bytes(b'\n'.join(sorted(first)) + b'\n')
    (tmp_path / 'second').write_bytes(b'\n'.join(sorted(second)) + b'\n')
    out = tmp_path / 'out'

    def written():
        return out.read_bytes().split(b'\n')[:-1]

    statistics = gsort.sort(tmp_path / 'in', out, lines=True)
    assert written() == sorted(lines) and statistics['records_out'] == len(lines)
    gsort.sort(tmp_path / 'in', out, lines=True, memory='4M', temp_directory=tmp_path, reverse=True)
    assert written() == sorted(lines, reverse=True)
    gsort.sort(tmp_path / 'in', out, lines=True, unique=True, limit=9)
    assert written() == sorted(set(lines))[:9]
    gsort.sort(tmp_path / 'in', out, lines=True, field_separator=',', keys=['2,2n'], stable=True)
    assert written() == sorted(lines, key=lambda line: int(line.split(b',')[1]))
    gsort.merge([tmp_path / 'first', tmp_path / 'second'], out, lines=True)
    assert written() == sorted(lines)
    gsort.sort(tmp_path / 'in', out, lines=True, header=2)
    assert written() == lines[:2] + sorted(lines[2:])
    gsort.sort(out, out, lines=True, checkpoint=tmp_path / 'runs', memory='4M')
    assert written() == sorted(lines) and not (tmp_path / 'runs').exists()


@pytest.mark.parametrize('options, words', [
    ({}, []), ({'reverse': True}, ['-r']), ({'field_separator': ',', 'keys': ['3,3V', '1,1fr']}, ['-t,', '-k3,3V', '-k1,1fr']),
    ({'field_separator': ',', 'keys': '2n', 'unique': True}, ['-t,', '-k2n', '-u']),
    ({'ignore_case': True, 'stable': True}, ['-f', '-s']), ({'sort': 'version'}, ['-V']),
    ({'zero_terminated': True}, ['-z']), ({'dictionary_order': True, 'threads': 1}, ['-d'])], ids=str)
def test_lines_are_sorted_as_gnu_sort_sorts_them(options, words, tmp_path):
    lines = make_lines(5000)
    (tmp_path / 'in').write_bytes((b'\0' if '-z' in words else b'\n').join(lines))
    gsort.sort(tmp_path / 'in', tmp_path / 'out', lines=True, **options)
    expected = subprocess.run(['sort', *words, tmp_path / 'in'], stdout=subprocess.PIPE, check=True,
                              env={'LC_ALL': 'C', 'PATH': os.environ['PATH']}).stdout
    assert (tmp_path / 'out').read_bytes() == expected


def test_lines_are_checked(tmp_path):
    path = tmp_path / 'in'
    for text, options, first in ((b'a\nb\nb\n', {}, None), (b'a\nc\nb\n', {}, 2), (b'b\nb', {'unique': True}, 1),
                                 (b'10\n9\n', {}, None), (b'10\n9\n', {'numeric_sort': True}, 1), (b'', {}, None)):
        path.write_bytes(text)
        assert gsort.check(path, lines=True, **options) == first
    assert gsort.explain(path, lines=True, memory='1G')['type'] == 'lines'


def flatten(sorter):
    return [line for lines in sorter for line in lines]


def test_a_stream_of_lines_is_sorted(tmp_path):
    lines = make_lines(60_000)
    for batch, n in ((1, 500), (7, 500), (1 << 20, 60_000)):
        options = {'memory': '4M', 'temp_directory': tmp_path, 'batch': batch}
        with gsort.Sorter(lines=True, **options) as sorter:
            sorter.put(lines[:n])
            assert flatten(sorter) == sorted(lines[:n])
        assert sorter.statistics['records_out'] == n
    with gsort.Sorter(lines=True, field_separator=',', keys=['2,2n'], stable=True) as sorter:
        for line in lines:
            sorter.put(line)
        assert flatten(sorter) == sorted(lines, key=lambda line: int(line.split(b',')[1]))
    with gsort.Sorter(lines=True, zero_terminated=True, unique=True) as sorter:
        sorter.put(b'\0'.join(lines))
        assert flatten(sorter) == sorted(set(lines))


def test_lines_may_be_bytes_or_text(tmp_path):
    (tmp_path / 'in').write_text('file 2\nfile 1', 'utf-8')
    with gsort.Sorter(lines=True) as sorter, open(tmp_path / 'in', encoding='utf-8') as file:
        for data in (b'b\na\n', 'd\nc', bytearray(b'e'), ['', b'f\n', 'ö'], (w for w in 'hg'),
                     file, b'', '', [], np.array(['n2', 'n1']), io.BytesIO(b'i\nj\n')):
            sorter.put(data)
        expected = ['', *'abcdef', 'file 1', 'file 2', *'ghij', 'n1', 'n2', 'ö']
        assert flatten(sorter) == [line.encode() for line in expected]
    with gsort.Sorter(lines=True) as sorter:
        for data in (5, [5], [None]):
            with pytest.raises(TypeError):
                sorter.put(data)
        assert flatten(sorter) == []
        with pytest.raises(ValueError, match='after'):
            sorter.put('late')
    for arguments in ({}, {'dtype': 'u8', 'lines': True}, {'lines': True, 'order': 'a'},
                      {'lines': True, 'zstd': True}):
        with pytest.raises(TypeError):
            gsort.Sorter(**arguments)


def test_options_of_lines_and_records_are_apart(tmp_path):
    with pytest.raises(TypeError, match="'type' with lines=True"):
        gsort.sort('a', 'b', lines=True, type='u64')
    with pytest.raises(TypeError, match="'field_separator' without lines=True"):
        gsort.sort('a', 'b', field_separator=',')
    with pytest.raises(TypeError, match="did you mean 'field_separator'"):
        gsort.sort('a', 'b', lines=True, field_seperator=',')
    with pytest.raises(TypeError, match='not for lines'):
        gsort.argsort('a', 'b', lines=True)
    with pytest.raises(TypeError, match='lines'):
        gsort.sort_array(np.zeros(3), lines=True)
    (tmp_path / 'in').write_bytes(b'a\n')
    with pytest.raises(ValueError, match='field number is zero'):
        gsort.sort(tmp_path / 'in', tmp_path / 'out', lines=True, keys='0')
    with pytest.raises(FileNotFoundError, match='nowhere'):
        gsort.sort(tmp_path / 'nowhere', tmp_path / 'out', lines=True)
    assert not (tmp_path / 'out').exists()


def test_streams_are_sorted():
    array = random.integers(0, 1 << 60, 300_000)
    with gsort.Sorter('i8', memory='1G', batch=1 << 16) as sorter:
        for piece in np.array_split(array, 7):
            sorter.put(piece)
        batches = list(sorter)
        with pytest.raises(ValueError):
            sorter.put(array)
    assert np.array_equal(np.concatenate(batches), np.sort(array))
    assert sorter.statistics['records_out'] == len(array)
    with gsort.Sorter('i8') as sorter:
        with pytest.raises(TypeError):
            sorter.put(array.astype('f8'))
        sorter.put(array)  # and leave without an end
    with gsort.Sorter('u2') as sorter:
        assert list(sorter) == []


def test_unknown_options_are_type_errors(tmp_path):
    with pytest.raises(TypeError, match="'temp_limt'.*'temp_limit'"):
        gsort.sort('a', 'b', temp_limt='1G')
    with pytest.raises(TypeError, match='True or False'):
        gsort.sort('a', 'b', unique='yes')
    with pytest.raises(TypeError):
        gsort.sort('a', 'b', help=True)


def test_unknown_options_suggest_a_part_of_their_name():
    for keyword, suggestion in (('numeric', 'numeric_sort'), ('separator', 'field_separator')):
        with pytest.raises(TypeError, match=f"did you mean '{suggestion}'"):
            gsort.sort('in', 'out', lines=True, **{keyword: True})


def test_synonyms_of_options_are_suggested():
    for keyword, suggestion, options in (
            ('delimiter', "'field_separator'\\?", {'lines': True}),
            ('delimiter', "'field_separator' with lines=True", {}),
            ('descending', "'reverse'\\?", {}), ('descending', "'reverse'\\?", {'lines': True})):
        with pytest.raises(TypeError, match=f'did you mean {suggestion}'):
            gsort.sort('in', 'out', **{keyword: ','}, **options)


def test_messages_name_keyword_arguments(tmp_path, monkeypatch):
    """A path with the form of an option stays as it is."""
    monkeypatch.chdir(tmp_path)
    text = tmp_path / 'a -t --format=raw'
    text.write_text('item,price\ntea,12\n' * 1000)
    with pytest.raises(ValueError) as caught:
        gsort.sort(text.name, 'out')
    assert str(caught.value) == ("a -t --format=raw: is text; lines=True sorts lines; to read it as "
                                 "records use type, record_size or format='raw'")
    for lines in (False, True):
        with pytest.raises(ValueError, match="^memory: 'abc' "):
            gsort.sort(text, 'out', memory='abc', lines=lines)
        with pytest.raises(ValueError, match='^threads: '):
            gsort.sort(text, 'out', threads='x', lines=lines)


def test_records_of_unknown_type_cause_a_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.array([3, 1, 2], 'u8').tofile('in')
    np.save('in.npy', np.array([3, 1, 2]))
    for function in (gsort.sort, gsort.argsort):
        with pytest.warns(gsort.SortWarning, match='^in: no type given, sorting as u64$'):
            function('in', 'out')
    with pytest.warns(gsort.SortWarning, match='checking as u64'):
        assert gsort.check('in') == 1
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        gsort.sort('in.npy', 'out')
        for options in ({'type': 'u64'}, {'record_size': 8, 'keys': '0:u64'}, {'lines': True},
                        {'fields': 'a:u64', 'keys': 'a'}):
            gsort.sort('in', 'out', **options)
        gsort.sort_array(np.array([3, 1, 2]))


def test_wrong_arguments_are_refused_before_the_sort(tmp_path):
    path = tmp_path / 'table'
    path.write_text('b\na\n')
    with path.open() as file, pytest.raises(TypeError, match='not a file object'):
        gsort.sort(file, tmp_path / 'out', lines=True)
    with pytest.raises(ValueError, match='no inputs'):
        gsort.sort([], tmp_path / 'out', lines=True)
    with pytest.raises(TypeError, match='no output'):
        gsort.sort(path, None, lines=True)
    with pytest.raises(TypeError, match='progress'):
        gsort.sort(path, tmp_path / 'out', lines=True, progress=3)
    assert os.listdir(tmp_path) == ['table']


def test_null_bytes_are_refused(tmp_path):
    path = tmp_path / 'in'
    path.write_bytes(b'b\0002\na\0001\n')
    for arguments in ((str(path) + '\0x', tmp_path / 'out'), (path, str(tmp_path / 'out') + '\0x')):
        with pytest.raises(ValueError, match='null byte'):
            gsort.sort(*arguments, lines=True)
    with pytest.raises(ValueError, match='null byte'):
        gsort.sort(path, tmp_path / 'out', lines=True, memory='1G\0')
    assert os.listdir(tmp_path) == ['in']
    gsort.sort(path, path, lines=True, field_separator='\0', keys='2,2n')
    assert path.read_bytes() == b'a\0001\nb\0002\n'


def test_values_of_options_are_named(tmp_path):
    array = np.array([3, 1, 2])
    with pytest.raises(TypeError, match='memory: an int'):
        gsort.sort_array(array, memory=1e9)
    with pytest.raises(TypeError, match='out must be an array'):
        gsort.sort_array(array, out=[1, 2, 3])
    for kind in (np.uint16, np.dtype('>u2'), 'u16'):
        np.array([3, 1], kind if kind != 'u16' else '<u2').tofile(tmp_path / 'in')
        gsort.sort(tmp_path / 'in', tmp_path / 'out', type=kind)
        assert sorted((tmp_path / 'in').read_bytes()) == sorted((tmp_path / 'out').read_bytes())
        assert np.fromfile(tmp_path / 'out', kind if kind != 'u16' else '<u2').tolist() == [1, 3]


def test_errors_are_those_of_python(tmp_path):
    out = tmp_path / 'out'
    out.write_bytes(b'older')
    (tmp_path / 'odd').write_bytes(b'x' * 13)
    (tmp_path / 'in').write_bytes(b'x' * 16)
    with pytest.raises(FileNotFoundError) as raised:
        gsort.sort(tmp_path / 'nowhere', out, type='u64')
    assert raised.value.filename == str(tmp_path / 'nowhere')
    assert raised.value.strerror == 'cannot open: No such file or directory'
    with pytest.raises(ValueError, match='13 bytes'):
        gsort.sort(tmp_path / 'odd', out, type='u64')
    with pytest.raises(ValueError, match='memory|buffer-size'):
        gsort.sort(tmp_path / 'in', out, type='u64', memory='much')
    with pytest.raises(gsort.Error) as error:
        gsort.sort(tmp_path / 'in', '/dev/full', type='u64')
    assert error.value.errno == errno.ENOSPC
    np.array([2, 1], 'u8').tofile(tmp_path / 'in')
    with pytest.raises(ValueError, match='sorted|order'):
        gsort.merge(tmp_path / 'in', out, type='u64')
    assert out.read_bytes() == b'older'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['in', 'odd', 'out']


@contextlib.contextmanager
def unprivileged():
    """Drop the privileges of root, who can read and write any file."""
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(65534)
    except OSError as error:
        pytest.skip(f'cannot become another user: {error}')
    try:
        yield
    finally:
        os.seteuid(0)


def test_files_without_permission_are_permission_errors():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        directory.chmod(0o777)
        for name, mode in (('in', 0o644), ('secret', 0), ('out', 0o666)):
            (directory / name).write_bytes(b'x' * 16)
            (directory / name).chmod(mode)
        (directory / 'closed').mkdir(mode=0o555)
        with unprivileged():
            with pytest.raises(PermissionError, match='secret'):
                gsort.sort(directory / 'secret', directory / 'out', type='u64')
            with pytest.raises(PermissionError, match='secret'):
                gsort.check(directory / 'secret', lines=True)
            with pytest.raises(PermissionError, match='closed'):
                gsort.sort(directory / 'in', directory / 'closed/out', type='u64')
        assert (directory / 'out').read_bytes() == b'x' * 16
        names = sorted(path.name for path in directory.iterdir())
        assert names == ['closed', 'in', 'out', 'secret']


@pytest.mark.parametrize('kind', ['array', 'file', 'lines'])
def test_a_lack_of_memory_is_a_memory_error(kind, tmp_path):
    """Sort 96 MiB in 64 MiB of address space. In a child, because the limit is permanent."""
    np.arange(12 << 20).tofile(tmp_path / 'in')
    (tmp_path / 'out').write_bytes(b'older')
    code = '''
import gsort, numpy as np, resource, sys
array = np.fromfile('in', 'u8')
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
options = {'lines': True} if sys.argv[1] == 'lines' else {'type': 'u64'}
try:
    if sys.argv[1] == 'array':
        gsort.sort_array(array, out=array, memory='1G')
    else:
        gsort.sort('in', 'out', memory='1G', **options)
except MemoryError as error:
    assert 'memory' in str(error)
    sys.exit(42)
'''
    child = subprocess.run([sys.executable, '-c', code, kind], cwd=tmp_path)
    assert child.returncode == 42
    assert (tmp_path / 'out').read_bytes() == b'older'
    assert sorted(path.name for path in tmp_path.iterdir()) == ['in', 'out']


def test_warnings_are_python_warnings(tmp_path):
    """The output begins like a Zstandard file, which causes a warning."""
    raw = {'record_size': 8, 'keys': '0:b8', 'format': 'raw'}
    (tmp_path / 'in').write_bytes(b'zzzzzzzz' + bytes.fromhex('28b52ffd') + bytes(4))
    for function, path in ((gsort.sort, 'out'), (gsort.merge, 'merged')):
        with pytest.warns(gsort.SortWarning, match='Zstandard') as caught:
            function(tmp_path / 'in', tmp_path / path, **raw)
            os.replace(tmp_path / path, tmp_path / 'in')
        assert [warning.filename for warning in caught] == [__file__]  # the caller, not the package
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        with pytest.raises(gsort.SortWarning):
            gsort.sort(tmp_path / 'in', tmp_path / 'out', **raw)
    assert (tmp_path / 'out').read_bytes() == (tmp_path / 'in').read_bytes()


@pytest.mark.parametrize('how', ['sort', 'lines', 'check', 'array', 'argsort', 'sorter'])
def test_reports_are_written(tmp_path, how):
    (tmp_path / 'in').write_bytes(b'sorted 1\nsorted 2\n')
    files = {name: tmp_path / name for name in ('stats_json', 'trace', 'report')}
    raw = dict(type='u8', **files)
    if how == 'sort':
        gsort.sort(tmp_path / 'in', tmp_path / 'out', **raw)
    elif how == 'lines':
        gsort.sort(tmp_path / 'in', tmp_path / 'out', lines=True, **files)
    elif how == 'check':
        gsort.check(tmp_path / 'in', **raw)
    elif how == 'array':
        gsort.sort_array(np.arange(10), **files)
    elif how == 'argsort':
        gsort.argsort_array(np.arange(10), **files)
    else:
        with gsort.Sorter('u8', **files) as sorter:
            sorter.put(np.arange(10, dtype='u8'))
            list(sorter)
    for path in files.values():
        assert path.stat().st_size > 0


def test_part_files_of_lines_need_lines(tmp_path):
    (tmp_path / 'in').write_bytes(b'b\na\n')
    gsort.sort(tmp_path / 'in', tmp_path / 'parts', lines=True, split=2)
    with pytest.raises(ValueError, match='part files hold lines; use lines=True'):
        gsort.check(tmp_path / 'parts')


# Sorting this array takes several progress intervals on any processor.
def sort_slowly(progress):
    gsort.sort_array(random.integers(0, 1 << 60, 12 << 20), memory='16M', threads=1, progress=progress)


def test_progress_is_reported():
    calls = []
    sort_slowly(lambda *call: calls.append(call))
    assert calls and all(isinstance(phase, str) and done >= 0 and total >= 0 for phase, done, total in calls)
    phase, done, total = calls[-1]
    assert phase == 'final merge' and done == total > 0

    def fail(*_):
        raise KeyError('from the callback')

    with pytest.raises(KeyError, match='from the callback'):
        sort_slowly(fail)


@pytest.mark.parametrize('with_tqdm', [False, True])
def test_progress_is_shown(with_tqdm, monkeypatch, capsys):
    bars = []

    class Bar:
        """A double of tqdm with the methods that the package calls."""

        def __init__(self, **options):
            self.n, self.total, self.phases, self.is_open = 0, None, set(), True
            bars.append(self)

        def set_description(self, phase, refresh):
            self.phases.add(phase)

        def update(self, n):
            self.n += n

        def close(self):
            self.is_open = False

    tqdm = types.SimpleNamespace(tqdm=Bar) if with_tqdm else None
    monkeypatch.setitem(sys.modules, 'tqdm', tqdm)
    sort_slowly(True)
    line = capsys.readouterr().err
    if with_tqdm:
        assert len(bars) == 1 and any(bars[0].phases) and not bars[0].is_open and line == ''
        assert 0 < bars[0].n == bars[0].total
    else:
        assert '%' in line and line.endswith(' \r')


SORTS = {
    'array': '''
array = np.random.default_rng(1).integers(0, 1 << 60, 24 << 20)
sort = functools.partial(gsort.sort_array, array, memory='4M')
''',
    'array in memory': '''
array = np.random.default_rng(1).integers(0, 1 << 60, 24 << 20)
sort = functools.partial(gsort.sort_array, array)
''',
    'lines': '''
path = sys.argv[1] + '/in'
with open(path, 'w') as file:
    print(*np.random.default_rng(1).integers(0, 1 << 60, 1 << 20), sep='\\n', file=file)
sort = functools.partial(gsort.sort, [path] * 40, sys.argv[1] + '/out', lines=True, memory='8M')
'''}


@pytest.mark.parametrize('name', SORTS)
def test_control_c_stops_a_sort(name, tmp_path):
    """A child sorts for seconds. SIGINT raises KeyboardInterrupt and leaves no temporary files."""
    code = 'import functools, gsort, numpy as np, signal, sys' + SORTS[name] + '''
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background ignores it
try:
    sort(temp_directory=sys.argv[1], threads=1, progress=lambda *_: print('running', flush=True))
except KeyboardInterrupt:
    sys.exit(42)
'''
    child = subprocess.Popen([sys.executable, '-c', code, str(tmp_path)], stdout=subprocess.PIPE)
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    child.stdout.read()
    assert child.wait() == 42
    assert [path.name for path in tmp_path.iterdir() if path.name != 'in'] == []


def test_sorts_run_in_threads_beside_each_other():
    arrays = [random.integers(0, 1 << 60, 200_000) for _ in range(4)]
    results = [None] * len(arrays)

    def sort(i):
        results[i] = gsort.sort_array(arrays[i], threads=1)

    threads = [threading.Thread(target=sort, args=(i,)) for i in range(len(arrays))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array, result in zip(arrays, results):
        assert np.array_equal(result, np.sort(array))


def test_sorts_release_the_interpreter(tmp_path):
    """Two sorts wait for pipes, which this thread fills after both are open."""
    array = random.integers(0, 1 << 60, 1000)
    threads = []
    for name in 'ab':
        os.mkfifo(tmp_path / name)
        paths = tmp_path / name, tmp_path / (name + '.out')
        threads.append(threading.Thread(target=gsort.sort, args=paths, kwargs={'type': 'i64'}))
        threads[-1].start()
    with open(tmp_path / 'a', 'wb') as a, open(tmp_path / 'b', 'wb') as b:
        a.write(array.tobytes())
        b.write(array.tobytes())
    for thread in threads:
        thread.join()
    for name in 'ab':
        assert np.array_equal(np.fromfile(tmp_path / (name + '.out'), 'i8'), np.sort(array))


def test_a_child_of_fork_can_sort():
    array = random.integers(0, 1 << 60, 100_000)
    sorter = gsort.Sorter(array.dtype)
    sorter.put(array)
    expected = np.sort(array)
    child = os.fork()
    if child == 0:
        right = np.array_equal(gsort.sort_array(array, backend='cpu'), expected)
        sorter.close()  # a handle of the parent: has no effect in the child
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(np.concatenate(list(sorter)), expected)


def test_examples_of_docstrings_are_right():
    failed, attempted = doctest.testmod(gsort, extraglobs={'gsort': gsort, 'np': np})
    assert attempted > 5 and failed == 0


def test_public_functions_have_type_hints():
    methods = [method for method in vars(gsort.Sorter).values() if inspect.isfunction(method)]
    for function in [getattr(gsort, name) for name in gsort.__all__ if name.islower()] + methods:
        names = [name for name in inspect.signature(function).parameters if name != 'self']
        assert set(function.__annotations__) == {*names, 'return'}, function


SOURCE = pathlib.Path(os.environ['GSORT_SOURCE'])


def test_the_code_of_the_manual_runs(tmp_path, monkeypatch):
    events = make([('time', '<i8'), ('value', '<f4')], 1000)
    np.save(tmp_path / 'events.npy', events)
    events['time'].tofile(tmp_path / 'a.bin')
    events['time'].tofile(tmp_path / 'b.bin')
    for name in ('access.log', 'a.csv', 'b.csv'):
        (tmp_path / name).write_bytes(b'\n'.join(make_lines(100)))
    used = []
    names = {'array': events['time'], 'source': [events['time'].view('u8')],
             'use': used.append, 'paths': [tmp_path / 'a.csv', tmp_path / 'b.csv']}
    monkeypatch.chdir(tmp_path)
    text = (SOURCE / 'docs/python.md').read_text('utf-8')
    blocks = re.findall('```python\n(.*?)```', text, re.DOTALL)
    for block in blocks:
        exec(block.replace('/scratch', '.'), names)
    assert len(blocks) >= 4 and len(used) >= 2
    assert np.array_equal(names['sorted_array'], np.sort(events['time']))
    assert gsort.check('sorted.npy', keys=['time', 'value:r']) is None


def test_the_example_script_runs(tmp_path):
    example = SOURCE / 'examples/numpy_files.py'
    subprocess.run([sys.executable, example], check=True, cwd=tmp_path)
