"""Sort binary files, text files and numpy arrays that may be larger than memory.

This package calls libgsort, an external sort that uses all processor threads or a GPU, keeps a
memory limit and verifies every result.

Files:   sort, merge, argsort, check, explain
Arrays:  sort_array, argsort_array
Streams: Sorter (arrays, or lines of text)

Options of the program ``gsort`` are keyword arguments: ``--temp-limit=4G`` is
``temp_limit='4G'``, ``--unique`` is ``unique=True``. An option that may be repeated takes a list.
Sizes are numbers of bytes, or strings such as ``'512M'``. Four options have a second name:
``memory`` (``buffer_size``), ``threads`` (``parallel``), ``keys`` (``key``) and
``temp_directory`` (``temporary_directory``). An unknown option is a TypeError.

With ``lines=True`` the functions for files and Sorter sort lines of text as GNU sort does in the C
locale. The options are then those of ``gsort --lines``.

Errors: FileNotFoundError, PermissionError, MemoryError, ValueError for wrong options or data of
the wrong size, and gsort.Error (an OSError) for everything else. After an error an output file is
unchanged. Warnings of gsort are Python warnings of the class gsort.SortWarning.

Ctrl-C cancels a sort and removes its temporary files. Other threads run during a sort. Different
sorts may run in different threads.

>>> import gsort, numpy as np
>>> gsort.sort_array(np.array([3, 1, 2]))
array([1, 2, 3])
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from . import _arrays, _library, _lines
from ._library import Error, SortWarning

__all__ = ['Error', 'SortWarning', 'Sorter', 'argsort', 'argsort_array', 'check', 'explain',
           'merge', 'sort', 'sort_array']
__version__ = _library.version()

Path = Union[str, bytes, os.PathLike]
Paths = Union[Path, Iterable[Path]]
Progress = Union[None, bool, Callable[[str, int, int], object]]
Names = Union[None, str, Iterable[str]]


def _open_files(function, inputs, output, progress, options):
    """Open a sort of files with inputs and an output."""
    if isinstance(inputs, (str, bytes, os.PathLike)):
        inputs = [inputs]
    elif hasattr(inputs, 'read'):
        raise TypeError(f'{function}() expects paths, not a file object')
    paths = [_library.encode(path) for path in inputs]
    if not paths:
        raise ValueError(f'{function}() got no inputs')
    if output is None and function == 'sort':
        raise TypeError(f'{function}() got no output')
    handle = _library.Sort(_library.option_rows(function, options), progress)
    try:
        for path in paths:
            handle.add_input(path)
        if output is not None:
            handle.set_output(_library.encode(output))
    except BaseException:
        handle.close()
        raise
    return handle


def sort(inputs: Paths, output: Path, *, progress: Progress = None,
         **options: Any) -> dict[str, Any]:
    """Sort one or several files into one, and return the statistics as a dict.

    inputs: a path or several, in any order; equal records keep the order of the inputs. Files in
        the format of numpy (.npy) and compressed ones (.zst) are recognised; others are raw
        records, which need ``type``, or ``record_size`` and ``keys``.
    output: a path, which may be one of the inputs. The file appears when it is complete and
        verified; with ``split=N`` it is a directory of N files.
    progress: True for a progress bar (tqdm if it is installed), or a function that is called with
        (phase, done, total) in bytes.
    options: the options of ``gsort``, among them
        type: type of a record that is one number: 'u64', '<f4', 'f64:n' ...
        record_size, keys: length of a record, and its keys 'OFFSET:TYPE[:r]'; in .npy files with
            fields the names 'time', 'value:r'
        reverse, unique, limit: descending; one of equal keys; only the first records
        memory, threads, gpus: limits of the resources
        temp_directory: directory of the temporary files
        lines: sort lines of text, with the options of GNU sort: keys 'FIELD[.CHAR][,FIELD[.CHAR]]'
            with the letters of GNU sort, field_separator, numeric_sort, version_sort, stable,
            unique, zero_terminated, ...; header=1 keeps the first line in front

    >>> import tempfile, os
    >>> directory = tempfile.TemporaryDirectory()
    >>> path = os.path.join(directory.name, 'numbers.bin')
    >>> np.array([5, 3, 9], 'u8').tofile(path)
    >>> gsort.sort(path, path, type='u64')['records_out']
    3
    >>> np.fromfile(path, 'u8')
    array([3, 5, 9], dtype=uint64)

    >>> path = os.path.join(directory.name, 'prices.csv')
    >>> with open(path, 'w') as file:
    ...     print('item,price', 'tea,12', 'milk,9', sep='\\n', file=file)
    >>> statistics = gsort.sort(path, path, lines=True, field_separator=',', keys='2,2n', header=1)
    >>> statistics['records_out']
    2
    >>> print(open(path).read(), end='')
    item,price
    milk,9
    tea,12
    """
    with _open_files('sort', inputs, output, progress, options) as handle:
        handle.call('run')
        handle.call('write_reports')
        return handle.statistics()


def merge(inputs: Paths, output: Path, *, progress: Progress = None,
          **options: Any) -> dict[str, Any]:
    """Merge sorted files into one. Otherwise like sort().

    An input that is not sorted is a ValueError that names the record. Files of lines need not be
    sorted.
    """
    return sort(inputs, output, progress=progress, merge=True, **options)


def argsort(inputs: Paths, output: Path, *, progress: Progress = None,
            **options: Any) -> dict[str, Any]:
    """Write the positions of the records in sorted order instead of the records.

    Positions count from 0 through all inputs. They are 64-bit numbers. The output is a .npy file if
    the input is one. Otherwise like sort(). Not for lines.
    """
    if options.get('lines'):
        raise TypeError('argsort() is for records, not for lines')
    return sort(inputs, output, progress=progress, argsort=True, **options)


def check(path: Path, *, progress: Progress = None, **options: Any) -> int | None:
    """Return None if a file is sorted, else the index of the first record that is out of order.

    With ``unique=True`` a record that equals the one before it is out of order, too. With
    ``lines=True`` it is the index of a line, from 0, header lines included.

    >>> import tempfile, os
    >>> directory = tempfile.TemporaryDirectory()
    >>> path = os.path.join(directory.name, 'numbers.bin')
    >>> np.array([1, 2, 0], 'u4').tofile(path)
    >>> gsort.check(path, type='u32')
    2
    """
    with _open_files('check', path, None, progress, options) as handle:
        number = _library.check(handle)
        return number - 1 if number else None


def explain(inputs: Paths, output: Path | None = None, **options: Any) -> dict[str, Any]:
    """Return the plan of a sort with its estimated time, as a dict, without sorting.

    The members are those of ``gsort --explain=json``.
    """
    with _open_files('explain', inputs, output, None, options) as handle:
        return _library.explain(handle, 0)


def sort_array(array: npt.ArrayLike, *, keys: Names = None, order: Names = None,
               axis: int | None = -1, out: np.ndarray | None = None, progress: Progress = None,
               **options: Any) -> np.ndarray:
    """Return a sorted copy of an array, like ``numpy.sort(array, kind='stable')``.

    array: an array of numbers, strings, times or records, which may be memory-mapped. A contiguous
        array is read without a copy.
    keys: fields to sort an array of records by, 'NAME' or 'NAME:r' (descending). Records with
        equal keys keep their order.
    order: like numpy's: fields to sort by; the other fields break ties. Without keys and order all
        fields are compared.
    axis: axis along which rows are sorted; None sorts the flattened array. Rows of less than
        64 KiB are sorted by numpy, which starts faster.
    out: the array that the result is written to; it may be ``array`` itself.
    progress: as for sort().
    options: ``reverse``, ``unique``, ``limit``, ``memory``, ``threads``, ``gpus`` and other options
        of the program. With ``unique`` or ``limit`` a one-dimensional result can be shorter.

    Unlike numpy, which keeps the order of floating-point zeros, -0.0 may come before 0.0.

    >>> a = np.array([(2, 'b'), (1, 'z'), (2, 'a')], [('n', 'i4'), ('s', 'S1')])
    >>> gsort.sort_array(a, keys='n:r').tolist()
    [(2, b'b'), (2, b'a'), (1, b'z')]
    """
    how = dict(keys=keys, order=order, progress=progress, options=options)
    array, axis = _along(array, axis)
    if out is None:
        result = np.empty(array.shape, array.dtype)
    else:
        if not isinstance(out, np.ndarray):
            raise TypeError(f'out must be an array, not {type(out).__name__}')
        if out.dtype != array.dtype or out.shape != array.shape:
            raise ValueError('out must have the dtype and the shape of the array')
        if not out.flags.writeable:
            raise ValueError('out is read-only')
        result = out
    if array.ndim == 1:
        row = result if result.flags.c_contiguous else np.empty(array.shape, array.dtype)
        n = _arrays.sort_row(array, row, **how)
        if row is not result:
            result[:n] = row[:n]
        return result if n == len(result) else result[:n]
    if options.get('unique') or options.get('limit') is not None:
        raise ValueError('unique and limit are for one-dimensional arrays')
    rows, results = np.moveaxis(array, axis, -1), np.moveaxis(result, axis, -1)
    if _arrays.numpy_is_faster(rows, keys, options):
        results[...] = np.sort(rows, order=order, kind='stable')
        return result
    for index in np.ndindex(rows.shape[:-1]):
        row = np.empty(rows.shape[-1], array.dtype)
        _arrays.sort_row(rows[index], row, **how)
        results[index] = row
    return result


def argsort_array(array: npt.ArrayLike, *, keys: Names = None, order: Names = None,
                  axis: int | None = -1, progress: Progress = None,
                  **options: Any) -> npt.NDArray[np.intp]:
    """Return the indices that sort an array, like ``numpy.argsort(array, kind='stable')``.

    The arguments are those of sort_array().

    >>> gsort.argsort_array(np.array([30, 10, 20]))
    array([1, 2, 0])
    """
    how = dict(keys=keys, order=order, progress=progress, options=options)
    array, axis = _along(array, axis)
    if array.ndim == 1:
        return _arrays.argsort_row(array, **how)
    if options.get('limit') is not None:
        raise ValueError('limit is for one-dimensional arrays')
    rows, result = np.moveaxis(array, axis, -1), np.empty(array.shape, np.intp)
    results = np.moveaxis(result, axis, -1)
    if _arrays.numpy_is_faster(rows, keys, options):
        results[...] = np.argsort(rows, order=order, kind='stable')
        return result
    for index in np.ndindex(rows.shape[:-1]):
        results[index] = _arrays.argsort_row(rows[index], **how)
    return result


def _along(array, axis):
    """Return the array, flattened if axis is None, and the axis."""
    array = _arrays.as_array(array)
    if axis is None:
        return array.reshape(-1), 0
    if array.ndim == 0:
        raise ValueError('an array with at least one dimension is expected')
    axis = operator.index(axis)
    if not -array.ndim <= axis < array.ndim:
        raise getattr(np, 'exceptions', np).AxisError(axis, array.ndim)  # of numpy 2 or 1
    return array, axis


class Sorter:
    """Sort a stream of arrays or of lines: put() them, then iterate over the sorted ones.

    dtype: type of the records
    lines: sort lines of text instead of records, with the options of ``gsort --lines``
    keys, order, progress, options: as for sort_array(); with lines as for sort()
    batch: length of the arrays that the iteration returns; with lines, the number of bytes that
        are read for each list

    The sort uses at most ``memory`` and spills to ``temp_directory``. The end of the iteration
    verifies the result. Do not rely on returned arrays or lines before it.

    >>> with gsort.Sorter('u4', memory='16M', batch=2) as sorter:
    ...     sorter.put(np.array([9, 4], 'u4'))
    ...     sorter.put(np.array([7], 'u4'))
    ...     for array in sorter:
    ...         print(array)
    [4 7]
    [9]

    >>> with gsort.Sorter(lines=True, keys='2n') as sorter:
    ...     sorter.put(['tea 12', 'milk 9'])
    ...     sorter.put('bread 3\\nsalt 1\\n')
    ...     for lines in sorter:
    ...         print(lines)
    [b'salt 1', b'bread 3', b'milk 9', b'tea 12']
    """

    def __init__(self, dtype: npt.DTypeLike = None, *, lines: bool = False, keys: Names = None,
                 order: Names = None, batch: int = 1 << 20, progress: Progress = None,
                 **options: Any) -> None:
        if batch < 1:
            raise ValueError('batch must be at least 1')
        if (dtype is None) != bool(lines):
            raise TypeError('Sorter() needs either a dtype or lines=True')
        self.batch = batch
        self.statistics: dict[str, Any] | None = None  #: set at the end of the iteration
        self.dtype = None if lines else np.dtype(dtype)
        self._finished = False
        if lines:
            self._end = b'\0' if options.get('zero_terminated') else b'\n'
            options = options if order is None else dict(options, order=order)
            self._sort = _lines.open_sort(keys, progress, options)
            self._batches = _lines.get_lists(self._sort, batch, self._end)
        else:
            self._sort = _arrays.open_sort('Sorter', self.dtype, keys, order, progress, options)
            self._batches = _arrays.get_arrays(self._sort, batch, self.dtype)

    def put(self, data: npt.ArrayLike | bytes | str | Iterable[bytes | str]) -> None:
        """Add lines, or the records of an array, which must have the dtype of the sorter.

        With ``lines=True``, data is bytes or str with one or more lines, or an iterable of these,
        such as a list or an open file. The last line end may be missing. str is encoded as UTF-8.
        """
        if self._finished:
            raise ValueError('put() after the iteration has begun')
        if self.dtype is None:
            _lines.put_lines(self._sort, data, self._end)
            return
        array = _arrays.as_array(data)
        if array.dtype != self.dtype:
            raise TypeError(f'an array of {self.dtype} is expected, not {array.dtype}')
        _arrays.put_array(self._sort, array.reshape(-1))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over arrays, or over lists of lines as bytes without their line ends."""
        return self

    def __next__(self) -> Any:
        if self.statistics is not None:
            raise StopIteration
        if not self._finished:
            self._sort.call('finish')
            self._finished = True
        batch = next(self._batches, None)
        if batch is None:
            self._sort.call('write_reports')
            self.statistics = self._sort.statistics()
            self._sort.close()
            raise StopIteration
        return batch

    def cancel(self) -> None:
        """Cancel the sort, from any thread."""
        self._sort.cancel()

    def close(self) -> None:
        """Free the sort. Cancels a running sort."""
        self._sort.close()

    def __enter__(self) -> Sorter:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
