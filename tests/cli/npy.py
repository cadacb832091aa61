"""npy - compare sorts of numpy arrays by gsort and by numpy

usage: npy.py GSORT GSORT_CHECK

The oracle is numpy.sort, argsort and unique, with every type that numpy.save writes. Compares
values, and bytes if equal values have equal bytes. Creates files in the current directory. Exits
with 77 (skipped) without numpy.
"""
import subprocess
import sys
import warnings

import assertions
from assertions import claim

try:
    import numpy as np
except ImportError:
    print('no numpy for this Python: install python3-numpy')
    sys.exit(77)

warnings.simplefilter('ignore') # numpy warns that old versions cannot read format 3
GSORT, CHECK = sys.argv[1:3]
rng = np.random.default_rng(1)


def gsort(*arguments, stdin=None):
    return subprocess.run([GSORT, *arguments], input=stdin, capture_output=True)


def sort_to_file(*arguments, stdin=None):
    """Sort to a file and load it. Return None after an error."""
    done = gsort(*arguments, '-o', 'output.npy', stdin=stdin)
    if done.returncode or done.stderr:
        print('gsort', *arguments, ':', done.returncode, done.stderr.decode())
        return None
    return np.load('output.npy')


def same(a, b):
    """Return whether type, shape and values are equal. NaN equals NaN, and NaT NaT."""
    if a is None or a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.names:
        return all(same(a[name], b[name]) for name in a.dtype.names)
    if a.dtype.kind in 'fcmM':
        return bool(np.array_equal(a, b, equal_nan=True))
    return a.tobytes() == b.tobytes()


def make(dtype, n):
    """Return n values of a type, with equal and special values."""
    dtype = np.dtype(dtype)
    if dtype.names:
        a = np.zeros(n, dtype)
        for name in dtype.names:
            a[name] = make(dtype[name], n)
        return a
    if dtype.subdtype:
        inner, shape = dtype.subdtype
        return make(inner, n * int(np.prod(shape))).reshape((n,) + shape)
    raw = rng.integers(0, 256, n * dtype.itemsize, dtype=np.uint8)
    if dtype.kind == 'b':
        return (raw & 1).astype(bool)
    if dtype.kind in 'SU':
        words = ['', 'a', 'ab', 'b', 'zz', 'abc', 'B']
        if dtype.kind == 'U':
            words += ['\u00e4', '\U0001f600', '\u4e2d']
        return rng.choice(words, n).astype(dtype)
    a = np.frombuffer(raw.tobytes(), dtype).copy()
    small = rng.random(n) < 0.5
    if dtype.kind == 'V':
        return np.frombuffer((raw & 1).tobytes(), dtype)
    if dtype.kind in 'iu':
        a[small] = rng.integers(0, 9, small.sum())
    if dtype.kind in 'mM':
        a[small] = rng.integers(0, 9, small.sum()).astype(dtype)
        a[rng.random(n) < 0.1] = 'NaT'
    if dtype.kind in 'fc':
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1]
        if dtype.kind == 'c':
            parts = np.array(special, dtype=dtype.type(0).real.dtype)
            a.real[small] = rng.choice(parts, small.sum())
            a.imag[small] = rng.choice(parts, small.sum())
        else:
            a[small] = rng.choice(special, small.sum()).astype(dtype)
    return a


PLAIN = ('|b1 |u1 |i1 <u2 >u2 <i2 >i2 <u4 >u4 <i4 >i4 <u8 >u8 <i8 >i8 <f2 >f2 <f4 >f4 <f8 >f8 '
         '<c8 >c8 <c16 >c16 <M8[ns] >M8[D] <m8[s] >m8[25us] |S1 |S5 |S40 <U1 >U1 <U3 >U7 |V3 '
         '|V20').split()
STRUCTURES = [
    [('id', '<u8'), ('time', '>i8'), ('name', 'S6'), ('x', '<f8')],
    [('flag', '?'), ('x', '<f4'), ('z', '>c8')],
    # Not f2: numpy puts its NaN first within a structure.
    [('at', [('x', '<f4'), ('when', '<M8[s]')]), ('n', '<U2'), ('v', '<i2')],
    np.dtype([('a', 'u1'), ('b', '<f8'), ('c', 'i2')], align=True),
    [('k', '<i4'), ('row', '|u1', (2, 3))],
]


def check_type(dtype):
    what = str(dtype)
    a = make(dtype, 3000)
    np.save('input.npy', a)
    expected = np.sort(a, kind='stable')
    claim(same(sort_to_file('input.npy'), expected), what)
    claim(same(sort_to_file('-S', '1M', 'input.npy', 'input.npy'),
               np.sort(np.concatenate([a, a]).astype(a.dtype), kind='stable')),
          what + ': two inputs, little memory')
    order = sort_to_file('--argsort', 'input.npy')
    claim(order is not None and order.dtype == np.dtype('<i8') and
          same(order, np.argsort(a, kind='stable')), what + ': --argsort')
    np.save('sorted.npy', expected)
    claim(gsort('-c', 'sorted.npy').returncode == 0, what + ': -c of what numpy has sorted')
    claim(subprocess.run([CHECK, 'sorted.npy'], capture_output=True).returncode == 0,
          what + ': gsort-check')
    claim(same(sort_to_file('-m', 'sorted.npy'), expected), what + ': -m')
    done = gsort(stdin=open('input.npy', 'rb').read())
    open('piped.npy', 'wb').write(done.stdout)
    claim(done.returncode == 0 and same(np.load('piped.npy'), expected), what + ': through pipes')
    check_unique(a, what)


def check_unique(a, what):
    if a.dtype.kind == 'V' or a.dtype.names and any(a.dtype[n].subdtype for n in a.dtype.names):
        return
    if a.dtype.kind == 'c': # numpy.unique treats all values with a NaN as equal, numpy.sort does not
        a[np.isnan(a)] = 1
        np.save('input.npy', a)
    values, first, counts = np.unique(a, return_index=True, return_counts=True)
    # In structures, numpy.unique treats NaN as different.
    is_plain = not a.dtype.names
    counted = sort_to_file('-u', '--count', 'input.npy')
    if counted is None:
        return claim(False, what + ': -u --count')
    claim(counted['count'].sum() == len(a), what + ': counts add up')
    if is_plain:
        claim(same(counted['value'], values) and np.array_equal(counted['count'], counts),
              what + ': -u --count')
        claim(same(sort_to_file('-u', 'input.npy'), values), what + ': -u')
        claim(sort_to_file('-u', 'input.npy').tobytes() == a[first].tobytes(),
              what + ': -u keeps the first')
        claim(same(sort_to_pipe('-u', stdin=open('input.npy', 'rb').read()), values),
              what + ': -u through pipes')


def sort_to_pipe(*arguments, stdin=None):
    """Sort to a pipe and load the output. Return None after an error."""
    done = gsort(*arguments, stdin=stdin)
    if done.returncode or done.stderr:
        print('gsort', *arguments, ':', done.returncode, done.stderr.decode())
        return None
    open('piped.npy', 'wb').write(done.stdout)
    return np.load('piped.npy')


def check_unique_in_order():
    """With -u to a pipe, the header must contain the number of records before the final merge."""
    a = rng.integers(0, 200000, 300000, dtype='<u4')
    np.save('few.npy', a)
    np.save('sorted.npy', np.sort(a))
    values, first, counts = np.unique(a, return_index=True, return_counts=True)
    twice = np.dtype([('count', '<u8'), ('value', '<u4')])
    counted = np.zeros(len(values), twice)
    counted['count'], counted['value'] = 2 * counts, values
    for options in [[], ['-S', '1M'], ['-S', '1M', '--batch-size=2'], ['--parallel=1']]:
        claim(same(sort_to_pipe('-u', *options, 'few.npy'), values), '-u to a pipe: %s' % options)
    claim(same(sort_to_pipe('-u', '--count', '-S', '1M', 'few.npy', 'few.npy'), counted), '-u --count to a pipe')
    claim(same(sort_to_pipe('-u', '--argsort', '-S', '1M', 'few.npy'), first), '-u --argsort to a pipe')
    claim(same(sort_to_pipe('-u', '-r', 'few.npy'), values[::-1]), '-u -r to a pipe')
    for limit in [0, 1, 7, 70000, 10**6]:
        claim(same(sort_to_pipe('-u', '--limit=%d' % limit, '-S', '1M', 'few.npy'), values[:limit]),
              '-u --limit=%d to a pipe' % limit)
    claim(same(sort_to_pipe('-m', '-u', 'sorted.npy'), values), '-m -u to a pipe')
    claim(same(sort_to_pipe('-m', '-u', '-S', '1M', '--batch-size=2', 'sorted.npy', 'sorted.npy', '-',
                     stdin=open('sorted.npy', 'rb').read()), values), '-m -u of three to a pipe')
    claim(same(sort_to_pipe('-m', '-u', stdin=open('sorted.npy', 'rb').read()), values), '-m -u, pipes only')
    for n in [0, 1]:
        np.save('short.npy', a[:n])
        claim(same(sort_to_pipe('-u', 'short.npy'), a[:n]), '-u of %d to a pipe' % n)
        claim(same(sort_to_pipe('-m', '-u', 'short.npy'), a[:n]), '-m -u of %d to a pipe' % n)
    done = gsort('-u', '--zstd', '--verify', '-S', '1M', 'few.npy', '-o', 'few.npy.zst')
    claim(done.returncode == 0 and same(sort_to_file('few.npy.zst'), values), '-u --zstd')
    done = gsort('-u', '--zstd', '--split=3', '--verify', 'few.npy', '-o', 'apart')
    claim(done.returncode == 0 and same(sort_to_file('-m', 'apart'), values), '-u --zstd --split')
    np.save('none.npy', a[:0])
    done = gsort('--zstd', '--split=2', '--split-by=keys', 'none.npy', '-o', 'divided')
    claim(done.returncode == 0 and same(sort_to_file('-m', 'divided'), a[:0]), '--zstd --split-by=keys of nothing')
    done = gsort('-u', '--temp-limit=1K', 'few.npy')
    claim(done.returncode == 2 and b'temporary' in done.stderr and not done.stdout,
          'what is counted is temporary data: %s' % done.stderr)


def check_merge_of_pipes():
    """The header of the first pipe describes all of them."""
    a, b = np.sort(make('<f8', 3000)), np.sort(make('<f8', 2000))
    expected = np.sort(np.concatenate([a, b]), kind='stable')
    np.save('a.npy', a)
    np.save('b.npy', b)
    whole = open('a.npy', 'rb').read()
    claim(same(sort_to_pipe('-m', stdin=whole), a), '-m of a pipe')
    done = subprocess.run(['bash', '-c', '"$0" -m <(cat a.npy) <(cat b.npy)', GSORT], capture_output=True)
    open('piped.npy', 'wb').write(done.stdout)
    claim(done.returncode == 0 and same(np.load('piped.npy'), expected),
          '-m of two pipes: %s' % done.stderr)
    open('a.raw', 'wb').write(a.tobytes())
    for first, second in [('a.raw', 'b.npy'), ('b.npy', 'a.raw')]:
        done = subprocess.run(['bash', '-c', '"$0" -m -t f64:n <(cat %s) <(cat %s)' % (first, second),
                               GSORT], capture_output=True)
        claim(done.returncode == 2 and b'.npy file' in done.stderr and not done.stdout,
              '-m of %s and %s: %s' % (first, second, done.stderr))
    done = gsort('-m', '-t', 'f64:n', stdin=a.tobytes())
    claim(done.returncode == 0 and done.stdout == a.tobytes(), '-m of a pipe of records')
    subprocess.run([GSORT, '--zstd', 'a.npy', '-o', 'a.npy.zst'])
    claim(same(sort_to_pipe('-m', stdin=open('a.npy.zst', 'rb').read()), a), '-m of a compressed pipe')
    done = gsort('-m', stdin=open('a.npy', 'rb').read()[:-8])
    claim(done.returncode == 2 and b'declares 3000' in done.stderr, '-m of a cut pipe')


def npy_bytes(descr, data, n):
    header = "{'descr': %s, 'fortran_order': False, 'shape': (%d,), }\n" % (descr, n)
    return b'\x93NUMPY\1\0' + len(header).to_bytes(2, 'little') + header.encode('latin1') + data


def check_headers():
    """Headers that numpy.load accepts are read as numpy reads them. Others are refused."""
    long = 'n' * 2000
    names = [name for name in np.sctypeDict if isinstance(name, str)]
    for descr in ["'<i8,<i8'", "'<i4,3<u2'", "'<i4, (2,3)u1, >f8'", "'<3i2,<i2'", "'1i4,u4'",
                  "'M8[s],m8[25us]'", "[['a', '<i8'], ['b', '<i4']]", "[['a', '<i8', 2]]",
                  "[('a', ('<i4', (2,))), ('b', '<i4')]",                   "[('a', '3i4'), ('b', '<i2,<i2')]", "[('a', '<i4', 1)]", "[('a', '<i4', ())]",
                  "[('a', '<i4',), ('b', '<i4',)]", "([('a', '<i4')], ())", "('<i4', ())",
                  "[(('t', 'a'), '<i4')]", "[('%s', '<i4'), ('b', [('%s', '<i2')])]" % (long, long),
                  "[('', '|V4'), ('a', '<i4')]", "[('a', '<i2'), ('', '|u1')]", "[('a', '<i4', [2, 3])]",
                  "[((None, 'a'), '<i4')]", "[('', '<i2'), ('a', '|u1'), ('', '|u1', (2,))]",
                  "[('', [('x', '|u1')]), ('b', '<i2')]", "'datetime64[s],i1'",
                  *["'%s'" % name for name in names[::5]], "'i4,,i4'", "','", "''", "'2i4'",
                  *"('<i4', (2,))",
                  "'(2,)'", "['<i8']", "('<i4',)", "[('a',)]", "[('a', '<i4', 'b')]", "[]", "3", "None",
                  "'i4 ,i4'", "'i4;i4'", "'(2)i4,i4'", "'()i4,i4'", "'0i4,i4'", "'x'", "'i4,x'",
                  "[('a', '>f4'), 'b']", "'=i4,|i2,<u1'",
                  "[('a', 'i4'), ('a', 'i4')]", "[(('t', 'a'), 'i4'), (('t', 'b'), 'i4')]",
                  "[(('a', 'a'), 'i4')]", "[('x', [('a', 'i4'), (('a', 'b'), 'i4')])]",
                  "'<m8[]'", "'<M8[25 s]'", "'<M8[-1s]'", "'<M8[\u00b5s]'", "'<M8[25s]'", "'<m8[3W]'"]:
        check_header(descr)


def check_header(descr):
    try:
        nbytes = np.lib.format.descr_to_dtype(eval(descr)).itemsize
        data = rng.integers(0, 4, 50 * nbytes, dtype=np.uint8).tobytes()
        open('hand.npy', 'wb').write(npy_bytes(descr, data, 50))
        loaded = np.load('hand.npy', max_header_size=10**6)
    except Exception: # numpy raises many kinds
        loaded = None
        open('hand.npy', 'wb').write(npy_bytes(descr, b'', 0))
    if loaded is None or loaded.dtype.itemsize == 0 or loaded.dtype.char in 'gG':
        claim(gsort('hand.npy').returncode == 2, '%s is refused' % descr)
    else:
        claim(same(sort_to_file('hand.npy'), np.sort(loaded, kind='stable')), '%s by hand' % descr)


def check_fields():
    a = make(STRUCTURES[0], 3000)
    a['id'] &= 3
    np.save('input.npy', a)
    claim(same(sort_to_file('-k', 'id', '-k', 'x', 'input.npy'),
               a[np.lexsort((a['x'], a['id']))]), '-k id -k x')
    by = np.lexsort((np.arange(len(a)), -(a['id'].astype('i8'))))
    claim(same(sort_to_file('-k', 'id:r', 'input.npy'), a[by]), '-k id:r')
    only = sort_to_file('-k', 'x', '-k', 'name', '--keys-only', 'input.npy')
    claim(only is not None and only.dtype == np.dtype([('x', '<f8'), ('name', 'S6')]),
          '--keys-only')
    # The same records in a raw file.
    a.tofile('raw')
    a[np.lexsort((a['name'], a['id']))].tofile('expected')
    done = gsort('--fields=id:u64,time:i64be,name:S6,x:f8', '-k', 'id', '-k', 'name', 'raw')
    claim(done.stdout == open('expected', 'rb').read(), '--fields')


def check_rows():
    for dtype in ['<i2', '>f4', '<c8', '<U2', '|S3']:
        a = make(dtype, 600).reshape(200, 3)
        np.save('input.npy', a)
        order = np.lexsort(a.T[::-1])
        claim(same(sort_to_file('input.npy'), a[order]), dtype + ': rows')
        claim(same(sort_to_file('-k', '1', 'input.npy'), a[np.argsort(a[:, 1], kind='stable')]),
              dtype + ': -k 1')
    np.save('input.npy', make('<u2', 24).reshape(2, 3, 4))
    claim(sort_to_file('input.npy').shape == (2, 3, 4), 'three dimensions')
    claim(b'numbered from 0 to 11' in gsort('-k', '12', 'input.npy').stderr, 'no such column')


def check_modes():
    a = make('<f8', 200000)
    np.save('input.npy', a)
    expected = np.sort(a, kind='stable')
    claim(same(sort_to_file('-S', '1M', '--verify', 'input.npy'), expected), '--verify')
    claim(same(sort_to_file('-S', '1M', '--checkpoint=state', 'input.npy'), expected), '--checkpoint')
    claim(same(sort_to_file('--limit=7', '-r', 'input.npy', 'input.npy')[-1:],
               np.sort(np.concatenate([a, a]))[::-1][6:7]), '--limit')
    claim(gsort('--limit=9', 'input.npy').stdout[128:] == expected[:9].tobytes() or
          same(np.frombuffer(gsort('--limit=9', 'input.npy').stdout[128:], '<f8'), expected[:9]),
          '--limit through a pipe')
    claim(gsort('input.npy', '-o', 'input.npy').returncode == 0 and
          same(np.load('input.npy'), expected), 'in place')
    np.save('input.npy', a)
    claim(gsort('input.npy', '-o', 'packed.npy.zst').returncode == 0 and
          same(sort_to_file('packed.npy.zst'), expected), '.npy.zst')
    packed = open('packed.npy.zst', 'rb').read()
    claim(same(sort_to_file(stdin=packed), expected), '.npy.zst through a pipe')
    claim(same(sort_to_file('--format=npy', 'input.npy'), expected), '--format=npy')
    total = sort_to_file('-t', 'f64:t', 'input.npy')
    claim(total is not None and total.tobytes() == np.frombuffer(
        gsort('-t', 'f64', stdin=a.tobytes()).stdout, '<f8').tobytes(), '-t f64:t')
    for version in [(1, 0), (2, 0), (3, 0)]:
        with open('version.npy', 'wb') as file:
            np.lib.format.write_array(file, a, version=version)
        claim(same(sort_to_file('version.npy'), expected), 'version %d' % version[0])
    for n in [0, 1]:
        np.save('input.npy', a[:n])
        claim(same(sort_to_file('input.npy'), a[:n]), '%d items' % n)
    np.save('wide.npy', np.zeros(5, [('f%d' % i, '<i2') for i in range(400)]))
    claim(sort_to_file('wide.npy') is not None, 'a header of many fields')
    claim(sort_to_file(stdin=open('wide.npy', 'rb').read()) is not None, 'the same through a pipe')


def check_ties():
    specials = np.array([0.0, -0.0, np.nan, -np.nan, 1.0] * 20, '<f8')
    np.save('specials.npy', specials)
    specials.tofile('specials')
    for n in [1, 9, 30, 70]:
        for options in [[], ['-r']]:
            claim(sort_to_file(*options, '--limit=%d' % n, 'specials.npy').tobytes() ==
                  sort_to_file(*options, 'specials.npy')[:n].tobytes(), '--limit has the bytes of all')
            claim(gsort(*options, '-t', 'f64:n', '--limit=%d' % n, 'specials').stdout ==
                  gsort(*options, '-t', 'f64:n', 'specials').stdout[:8 * n],
                  '--limit has the bytes of all, of plain numbers')
    # Equal records keep their order, unless the array has plain numbers.
    zeros = np.array([0.0, -0.0, 1.0, 0.0, -0.0, -1.0])
    for a in [zeros.reshape(6, 1), zeros.reshape(6, 1, 1), zeros.view([('x', '<f8')])]:
        np.save('input.npy', a)
        claim(sort_to_file('input.npy').tobytes() ==
              np.array([-1.0, 0.0, -0.0, 0.0, -0.0, 1.0]).tobytes(),
              'equal records of one float stay in their order: %s %s' % (a.dtype, a.shape))


def expect_error(message, *arguments, stdin=None):
    before = open('output.npy', 'rb').read()
    done = gsort(*arguments, '-o', 'output.npy', stdin=stdin)
    claim(done.returncode == 2 and message in done.stderr.decode() and
          done.stderr.count(b'\n') == 1 and before == open('output.npy', 'rb').read(),
          '%s: %d: %s' % (' '.join(arguments), done.returncode, done.stderr.decode()))


def check_refusals():
    a = make('<f8', 100)
    np.save('a.npy', a)
    np.save('b.npy', make('<f4', 100))
    np.save('s.npy', make(STRUCTURES[0], 100))
    a.tofile('raw')
    expect_error('astype()', 'a.npy', 'b.npy')
    for n in [2, 3]:
        np.save('rows%d.npy' % n, np.zeros((5, n)))
    expect_error("'<f8', (N, 2)\n", 'rows2.npy', 'rows3.npy')
    expect_error('is not a .npy file', 'a.npy', 'raw')
    expect_error('but an earlier input is not', 'raw', 'a.npy')
    expect_error('is not a .npy file', '--format=npy', 'raw')
    expect_error('of type f64le:n, and not f32le', '-t', 'f32', 'a.npy')
    expect_error('records of 8 bytes, not 4', '-R', '4', 'a.npy')
    expect_error('of type f64le:n, and not u64le', '-t', 'u64', 'a.npy')
    expect_error('no field nix to sort by; named fields: id, time', '-k', 'nix', 's.npy')
    np.save('empty.npy', np.zeros(3, [('x', 'V0'), ('y', '<u8')]))
    expect_error('no field x to sort by', '-k', 'x', 'empty.npy')
    expect_error('has no fields with names', '-k', 'nix', 'raw')
    expect_error('reaches past', '-R', '30', '-k', '29:u16', 's.npy')
    for dtype in ['<f16', '<c32']:
        np.save('long.npy', np.zeros(3, dtype))
        expect_error(dtype, 'long.npy')
    np.save('o.npy', np.array([1, 'a'], dtype=object))
    expect_error('Python objects', 'o.npy')
    claim(b'--skip-bytes' not in gsort('o.npy').stderr, 'a pickle is no plain records')
    np.save('many.npy', np.zeros((3, 65536), 'i1'))
    expect_error('exceed the limit of 1048576', '-u', '--count', '--keys-only', 'many.npy')
    np.save('f.npy', np.asfortranarray(make('<u2', 6).reshape(2, 3)))
    expect_error('Fortran order', 'f.npy')
    whole = open('a.npy', 'rb').read()
    open('cut.npy', 'wb').write(whole[:-8])
    expect_error('declares 100 records', 'cut.npy')
    expect_error('declares 100 records', stdin=whole[:-8])
    expect_error('declares 100 records', stdin=whole + b'12345678')
    for n in [2**64 - 2, 2**64 - 1]:
        for descr in ["'<i4'", "'|u1'"]:
            open('most.npy', 'wb').write(npy_bytes(descr, bytes(8), n))
            for how in [[], ['-u'], ['--argsort'], ['-m'], ['--backend=cpu', '-S', '1M']]:
                expect_error('declares %d records' % n, *how, 'most.npy')
        expect_error('declares %d records' % n, stdin=npy_bytes("'<i4'", bytes(8), n))
        expect_error('declares %d records' % n,
                     stdin=npy_bytes("'<i4'", bytes(8), n).replace(b',), }\n', b',2)}\n'))
    expect_error('ends within its header of 128 bytes, after 100', stdin=whole[:100])
    expect_error('more than 1048576', stdin=b'\x93NUMPY\2\0\0\0\0\xf0' + bytes(9999))


def check_redundant_options():
    """Options that agree with the header change nothing. Options that contradict it are refused."""
    pairs = make([('i', '<i4'), ('x', '<f8')], 100)
    for name, a in [('a.npy', make('<f8', 100)), ('wide.npy', make('<f8', 300).reshape(100, 3)),
                    ('pairs.npy', pairs), ('text.npy', make('<U2', 60).reshape(20, 3))]:
        np.save(name, a)
        size = a.dtype.itemsize * (a.shape[1] if a.ndim > 1 else 1)
        claim(same(sort_to_file('-R', str(size), name), sort_to_file(name)), name + ': its -R')
        claim(same(sort_to_file('-R', str(size), '--argsort', name), sort_to_file('--argsort', name)),
              name + ': its -R, and --argsort')
        expect_error('plain records', '-t', 'b%d' % size, name)
        expect_error('plain records', '-R', str(size), '-k', '0:u64', name)
        expect_error('plain records', '--fields=a:u32,b:u32', name)
    np.save('v.npy', make('V8', 50))
    claim(same(sort_to_file('-t', 'b8', 'v.npy'), sort_to_file('v.npy')), '-t b8 of V8')
    expect_error('plain records', '-t', 'V7', 'v.npy')
    claim(same(sort_to_file('-t', 'f64:n', 'wide.npy'), sort_to_file('wide.npy')), '-t of columns')
    a = np.load('wide.npy')
    raw = gsort('-R', '24', '-k', '0:f64', '-k', '8:f64', '-k', '16:f64', stdin=a.tobytes()).stdout
    claim(sort_to_file('-t', 'f64:t', 'wide.npy').tobytes() == raw, '-t f64:t of columns')
    for key in ['0:i32', '0:<i4']:
        claim(same(sort_to_file('-k', key, 'pairs.npy'), sort_to_file('-k', 'i', 'pairs.npy')),
              '-k ' + key)
    claim(same(sort_to_file('-R', '12', '-k', 'i', 'pairs.npy'), sort_to_file('-k', 'i', 'pairs.npy')),
          '-R and -k i')
    expect_error('has x of type f64le:n at byte 4, and not i64le', '-k', '4:i64', 'pairs.npy')
    expect_error('has i of type i32le at byte 0', '-k', '2:u16', 'pairs.npy')
    expect_error('has items of type f64le:n from byte 0 on, but none begins at byte 4',
            '-k', '4:f64', 'wide.npy')
    expect_error('records of 12 bytes, not 8', '-R', '8', '-k', 'i', 'pairs.npy')
    expect_error('omit -k', '-k', '0', 'a.npy')
    expect_error('--split writes all part files', '-m', '--shard=1/3', 'v.npy')
    np.save('fortran.npy', np.asfortranarray(make('<u2', 6).reshape(2, 3)))
    done = gsort('fortran.npy')
    claim(b'ascontiguousarray' in done.stderr and b'raw' not in done.stderr, 'a way out of Fortran')


def check_kept_headers():
    """A header that --skip-bytes copies is refused if the number or type of the records changes."""
    np.save('a.npy', np.array([3, 1, 2, 1], '<u8'))
    for options in [['-u'], ['--limit=1'], ['--argsort'], ['-u', '--count'], ['a.npy']]:
        expect_error('does not fit', '-t', 'u64', '--skip-bytes=128', *options, 'a.npy')
    claim(same(sort_to_file('--skip-bytes=128', '-t', 'u64', 'a.npy'), np.array([1, 1, 2, 3], '<u8')),
          '--skip-bytes')
    whole = open('a.npy', 'rb').read()
    for version in [(4, 0), (0, 0), (1, 1)]:
        open('version.npy', 'wb').write(whole[:6] + bytes(version) + whole[8:])
        expect_error('of version %d.%d' % version, 'version.npy')
        expect_error('of version %d.%d' % version, '-t', 'u64', stdin=whole[:6] + bytes(version) + whole[8:])
    for n in range(6, 12):
        open('cut.npy', 'wb').write(whole[:n])
        expect_error('truncated', 'cut.npy')
        expect_error('truncated', '-t', 'u8', stdin=whole[:n])


def check_names():
    """numpy.load reads the names that gsort writes, and -k finds the names that numpy writes."""
    nested = [('b', [('c', '<i4'), ('d', '<i4')]), ('a', '<i4')]
    for dtype, keys in [(nested, ['b', 'b.c']), (nested, ['a', 'a']),
                        (nested + [('b.c', '<i4')], ['b', 'a']), ([('it\'s "q"', '<i4')], ['it\'s "q"']),
                        ([("it's", [('q"q', '<i4')])], ["it's"])]:
        a = make(dtype, 50)
        np.save('input.npy', a)
        done = sort_to_file('--keys-only', *[w for key in keys for w in ['-k', key]], 'input.npy')
        claim(done is not None and len(done.dtype.names) >= len(keys), '--keys-only %s' % keys)
    for dtype in [[('count', '<i4'), ('count_', '<i4')], [('count', [('a', '<i4')])],
                  [(('count', 'q'), '<i4')], [(('q', 'count'), '<i4')],
                  np.dtype([('r', 'i1'), ('count', '<f8')], align=True),
                  np.dtype([('r', 'i1'), (('count', 'x'), '<f8')], align=True)]:
        np.save('input.npy', np.zeros(9, dtype))
        done = sort_to_file('-u', '--count', 'input.npy')
        claim(done is not None and done.tobytes()[:8] == bytes([9, 0, 0, 0, 0, 0, 0, 0]),
              '-u --count %s' % dtype)
    for name in ['gr\u00f6\u00dfe', 'a\\b', 'a\nb', 'a\tb', 'a\u00a0b', 'a\u0085b', 'a\u200bb', 'a\x7fb',
                 '\'"', '\u4e2d', '\U0001f600', 'a:r', '-x', '17.cnt', ' ']:
        a = make([('z', '<i4'), (name, '<i4')], 50)
        np.save('input.npy', a)
        expected = a[np.argsort(a[name], kind='stable')]
        claim(same(sort_to_file('-k', name, 'input.npy'), expected), '-k %r' % name)
        claim(same(sort_to_file('-k', name + ':r', '-k', 'z', 'input.npy')[name],
                   expected[name][::-1]), '-k %r:r' % name)
        for version in [(1, 0), (2, 0), (3, 0)]:
            try:
                with open('version.npy', 'wb') as file:
                    np.lib.format.write_array(file, a, version=version)
            except ValueError: # the name is not in Latin-1
                continue
            claim(sort_to_file('input.npy', 'version.npy') is not None, '%r in two versions' % name)
    header = b"{'descr': [('\xf6', '<i8')], 'fortran_order': False, 'shape': (0,), }\n"
    claim(gsort(stdin=b'\x93NUMPY\3\0' + len(header).to_bytes(4, 'little') + header).returncode == 2,
          'a name that is not UTF-8')
    np.save('input.npy', make([('z', '<i4'), ('x', '<i4'), ('x:r', '<i4'), ('1:u8', '<i4')], 50))
    expect_error('such as 4:i32le for field x', '-k', 'x:r', 'input.npy')
    expect_error('1:u8 is ambiguous', '-k', '1:u8', 'input.npy')
    claim(sort_to_file('-k', '8:i32', 'input.npy') is not None, 'a place instead of a name')
    expect_error('the order precedes r: z:n:r', '-k', 'z:r:n', 'input.npy')
    # Fields of types that cannot be keys are carried along.
    a = make([('k', '<i4'), ('b', '<i2')], 50)
    wide = np.zeros(50, [('long', np.longdouble), ('k', '<i4'), ('s', [('u', '<i4')], (2,)), ('e', 'S0')])
    wide['k'], wide['s']['u'] = a['k'], a['b'][:, None]
    np.save('input.npy', wide)
    order = np.argsort(wide['k'], kind='stable')
    claim(same(sort_to_file('-k', 'k', 'input.npy')['s'], wide[order]['s']), 'other types are carried')
    expect_error("field long has type '<f16'", 'input.npy')
    expect_error('an array of structures', '-k', 's', 'input.npy')


for dtype in PLAIN + STRUCTURES:
    check_type(dtype)
check_fields()
check_rows()
check_modes()
check_ties()
check_refusals()
check_redundant_options()
check_kept_headers()
check_names()
check_unique_in_order()
check_merge_of_pipes()
check_headers()
sys.exit(assertions.status())
