"""Sorting lines of text: bytes and str as streams of lines."""

import ctypes

from . import _library

# Options that write something else than sorted lines.
_NOT_FOR_STREAMS = {'order', 'merge', 'split', 'split_by', 'shard', 'zstd'}
# Lines are passed to the library in pieces of this size.
_PIECE_NBYTES = 1 << 20


def open_sort(keys, progress, options):
    """A sort of a stream of lines."""
    for option in options:
        if option in _NOT_FOR_STREAMS:
            raise TypeError(f'Sorter() got an unexpected keyword argument {option!r} with '
                            'lines=True')
    rows = _library.option_rows('Sorter', dict(options, keys=keys, lines=True))
    return _library.Sort(rows, progress)


def _as_bytes(text):
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode('utf-8', 'surrogateescape')
    if isinstance(text, (bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f'lines are bytes or str, not {type(text).__name__}')


def _join(lines, end):
    """Yield pieces of text that hold the lines, each with its end."""
    piece, nbytes = [], 0
    for line in lines:
        line = _as_bytes(line)
        piece.append(line if line.endswith(end) else line + end)
        nbytes += len(line)
        if nbytes >= _PIECE_NBYTES:
            yield b''.join(piece)
            piece, nbytes = [], 0
    yield b''.join(piece)


def put_lines(sort, data, end):
    """Pass lines: text that holds any number, or an iterable of such texts."""
    if isinstance(data, (bytes, bytearray, memoryview, str)):
        text = _as_bytes(data)
        # A long text is not copied to append the end of its last line.
        pieces = [text, b'' if text.endswith(end) or not text else end]
    else:
        pieces = _join(data, end)
    for piece in pieces:
        _library.put(sort, piece, len(piece))


def get_lists(sort, nbytes, end):
    """Yield the output as lists of lines without their ends; nbytes are read for each."""
    buffer = ctypes.create_string_buffer(nbytes)
    rest = bytearray()  # the beginning of a line
    while True:
        n = _library.get(sort, buffer, nbytes)
        if n == 0:
            return
        head, found, tail = ctypes.string_at(buffer, n).rpartition(end)
        if found:
            yield bytes(rest + head).split(end)
            rest.clear()
        rest += tail
