"""Sorting numpy arrays: dtypes as gsort's record formats, and arrays as streams of records."""

import ctypes
import re

import numpy as np

from . import _library

# Options whose output does not consist of the array's records.
_NOT_FOR_ARRAYS = {'count', 'keys_only', 'argsort', 'zstd', 'type', 'record_size', 'fields', 'key',
                   'format', 'skip_bytes', 'partial', 'merge', 'split', 'split_by', 'shard',
                   'checkpoint', 'verify', 'fsync', 'lines'}
# Starting a sort takes about a millisecond. numpy sorts a row of this size in that time.
_MIN_ROW_NBYTES = 64 << 10
# An array that is not contiguous is copied in pieces of this size.
_PIECE_NBYTES = 16 << 20
# Shorter arrays are copied, to pass many of them in one call.
_SHORT_NBYTES = 64 << 10


def _scalar_keys(dtype, offset):
    """Return the keys 'OFFSET:TYPE' that order a scalar dtype as numpy does."""
    kind, nbytes = dtype.kind, dtype.itemsize
    if nbytes == 0:
        return []
    if kind == 'b':
        return [f'{offset}:bool']
    if kind in 'iu':
        return [f'{offset}:{dtype.str}']
    if (kind == 'f' and nbytes <= 8) or (kind == 'c' and nbytes <= 16) or kind in 'mM':
        return [f'{offset}:{dtype.str.partition("[")[0]}:n']
    if kind in 'SV':
        return [f'{offset}:b{nbytes}']
    if kind == 'U':
        order = '>' if dtype.str[0] == '>' else '<'
        return [f'{i}:{order}u4' for i in range(offset, offset + nbytes, 4)]
    raise TypeError(f'arrays of dtype {dtype} cannot be sorted')


def _field_keys(dtype, offset):
    """Return the keys of a dtype, in the order of its fields if it has any."""
    if dtype.subdtype is not None:
        # numpy compares arrays within a record as bytes.
        return [f'{offset}:b{dtype.itemsize}'] if dtype.itemsize else []
    if dtype.names is None:
        return _scalar_keys(dtype, offset)
    keys = []
    for name in dtype.names:
        field, field_offset = dtype.fields[name][:2]
        keys += _field_keys(field, offset + field_offset)
    return keys


def _find_field(dtype, name):
    """Return (dtype, offset) of a field, or None. 'a.b' is field b of field a."""
    if name in (dtype.names or ()):
        return dtype.fields[name][:2]
    outer, dot, inner = name.partition('.')
    if dot and outer in (dtype.names or ()):
        field, offset = dtype.fields[outer][:2]
        found = _find_field(field, inner)
        if found:
            return found[0], offset + found[1]
    return None


def _named_keys(dtype, name):
    """Return the keys of a field 'NAME[:r]'. A key 'OFFSET:TYPE[:r]' is returned unchanged."""
    found, suffix = _find_field(dtype, name), ''
    if not found and name.endswith(':r'):
        found, suffix = _find_field(dtype, name[:-2]), ':r'
    if found:
        return [key + suffix for key in _field_keys(*found)]
    if re.match(r'\d+:', name):
        return [name]
    raise ValueError(f'no field of name {name!r} in {dtype}')


def _names(names):
    return [names] if isinstance(names, str) else list(names)


def record_rows(dtype, keys=None, order=None):
    """Return the options for records of a dtype and their order, as rows for gsort_set()."""
    if dtype.hasobject:
        raise TypeError(f'arrays of dtype {dtype} cannot be sorted')
    if keys is not None and order is not None:
        raise ValueError('keys and order cannot be combined')
    if dtype.names is None:
        if order is not None:
            raise ValueError('order is for arrays with fields')
        rows = _scalar_keys(dtype, 0) if keys is None else _names(keys)
        if keys is None and len(rows) == 1:
            return [('type', rows[0].partition(':')[2].encode())]
    elif keys is not None:
        rows = [key for name in _names(keys) for key in _named_keys(dtype, name)]
    else:
        # As in numpy, the fields that `order` does not name break ties.
        names = [] if order is None else _names(order)
        names += [name for name in dtype.names if name not in names]
        rows = [key for name in names for key in _named_keys(dtype, name)]
    if not rows:
        raise TypeError(f'arrays of dtype {dtype} have nothing to be sorted by')
    return [('record-size', b'%d' % dtype.itemsize)] + [('key', key.encode()) for key in rows]


def open_sort(function, dtype, keys, order, progress, options, argsort=False):
    """Open a sort of records of a dtype."""
    for option in options:
        if option in _NOT_FOR_ARRAYS:
            raise TypeError(f'{function}() got an unexpected keyword argument {option!r}')
    rows = record_rows(dtype, keys, order) + _library.option_rows(function, options)
    if argsort:
        rows.append(('argsort', None))
    return _library.Sort(rows, progress)


def as_array(array):
    """Convert to an array. Rejects masked arrays, because the mask would be lost."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError('masked arrays cannot be sorted; pass array.filled() or array.compressed()')
    return np.asarray(array)


def numpy_is_faster(rows, keys, options):
    """Return whether numpy can sort the rows and is faster, because they are short."""
    return rows.shape[-1] * rows.itemsize < _MIN_ROW_NBYTES and keys is None and not options


def _pointer(array):
    """Return a pointer to the memory of an array. It keeps the array alive."""
    return array.ctypes.data_as(ctypes.c_void_p)


def put_array(sort, array):
    """Pass the records of a one-dimensional array. Many contiguous records are not copied."""
    if array.nbytes < _SHORT_NBYTES:
        sort.put_bytes(array.tobytes())
        return
    if array.flags.c_contiguous:
        _library.put(sort, _pointer(array), array.nbytes)
        return
    step = max(1, _PIECE_NBYTES // array.itemsize)
    for begin in range(0, len(array), step):
        piece = np.ascontiguousarray(array[begin:begin + step])
        _library.put(sort, _pointer(piece), piece.nbytes)


def get_array(sort, out):
    """Fill a contiguous array with the whole output. Returns the number of records."""
    nbytes = _library.get(sort, _pointer(out), out.nbytes) if out.nbytes else 0
    if nbytes == out.nbytes and not _library.get_end(sort):
        raise AssertionError('the output is longer than the array')
    return nbytes // out.itemsize


def get_arrays(sort, n, dtype):
    """Yield the output as arrays of n records."""
    while True:
        out = np.empty(n, dtype)
        nbytes = _library.get(sort, _pointer(out), out.nbytes)
        if nbytes == 0:
            return
        yield out[:nbytes // out.itemsize]


def sort_row(array, out, **how):
    """Sort a one-dimensional array into a contiguous one, which may be the same memory."""
    with open_sort('sort_array', array.dtype, **how) as sort:
        put_array(sort, array)
        sort.call('finish')
        n = get_array(sort, out)
        sort.call('write_reports')
    return n


def argsort_row(array, **how):
    out = np.empty(len(array), '<u8')
    with open_sort('argsort_array', array.dtype, argsort=True, **how) as sort:
        put_array(sort, array)
        sort.call('finish')
        n = get_array(sort, out)
        sort.call('write_reports')
    return out[:n].astype(np.intp, copy=False)
