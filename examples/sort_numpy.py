#!/usr/bin/env python3
"""sort_numpy - an array of numpy, sorted by libgsort within 16 MiB

usage: sort_numpy.py [LIBRARY]
"""
import ctypes
import sys

import numpy

gsort = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else 'libgsort.so.0.3')
gsort.gsort_message.restype = ctypes.c_char_p


def gsorted(array, memory=16 << 20):
    sort, got = ctypes.c_void_p(), ctypes.c_size_t(1)
    result = numpy.empty_like(array)

    def call(function, *arguments):
        if getattr(gsort, function)(sort, *arguments) < 0:
            raise OSError(gsort.gsort_message(sort).decode())

    gsort.gsort_open(ctypes.byref(sort))
    try:
        call('gsort_set_type', array.dtype.str.encode() + (b':n' if array.dtype.kind in 'fcM' else b''))
        call('gsort_set_memory', ctypes.c_uint64(memory))
        call('gsort_put', array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes))
        call('gsort_finish')
        call('gsort_get', result.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes), ctypes.byref(got))
        call('gsort_get', ctypes.byref(ctypes.c_char()), ctypes.c_size_t(1), ctypes.byref(got)) # the end: all is checked
    finally:
        gsort.gsort_close(sort)
    return result


if __name__ == '__main__':
    numbers = numpy.random.default_rng(1).standard_normal(3_000_000)
    numbers[::100_000] = numpy.nan
    assert numpy.array_equal(gsorted(numbers), numpy.sort(numbers), equal_nan=True)
    print(len(numbers), 'numbers as numpy sorts them')
