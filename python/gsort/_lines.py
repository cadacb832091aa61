"""Sort lines of text: bytes and str as streams of lines."""

import ctypes

from . import _library

# Options whose output is not a stream of sorted lines.
_NOT_FOR_STREAMS = {'order', 'merge', 'split', 'split_by', 'shard', 'zstd'}
# Lines are passed to the library in pieces of this size.
_PIECE_NBYTES = 1 << 20


def open_sort(keys, progress, options):
    """Open a sort of a stream of lines."""
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
    """Yield pieces of text that contain the lines, each with its line end."""
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
    """Pass lines: a text of any number of lines, or an iterable of such texts."""
    if isinstance(data, (bytes, bytearray, memoryview, str)):
        text = _as_bytes(data)
        # Do not copy a long text to append a line end.
        pieces = [text, b'' if text.endswith(end) or not text else end]
    else:
        pieces = _join(data, end)
    for piece in pieces:
        sort.put_bytes(piece)


def get_lists(sort, nbytes, end):
    """Yield the output as lists of lines without line ends. Reads nbytes for each list."""
    buffer = ctypes.create_string_buffer(nbytes)
    rest = bytearray()  # the beginning of an incomplete line
    while True:
        n = _library.get(sort, buffer, nbytes)
        if n == 0:
            return
        head, found, tail = ctypes.string_at(buffer, n).rpartition(end)
        if found:
            yield bytes(rest + head).split(end)
            rest.clear()
        rest += tail
