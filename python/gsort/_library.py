"""The C library libgsort through ctypes: functions, handles and errors."""

import _thread
import ctypes
import errno
import json
import os
import re
import sys
import threading
import warnings
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import numpy as np


class Error(OSError):
    """A sort failed. ``errno`` is the error number, ``strerror`` the message of gsort."""


class SortWarning(UserWarning):
    """A warning of gsort, for example that a limit is too low to be efficient."""


class _Progress(ctypes.Structure):
    _fields_ = [('phase', c_char_p), ('done_nbytes', c_uint64), ('total_nbytes', c_uint64),
                ('overall_done_nbytes', c_uint64), ('overall_total_nbytes', c_uint64),
                ('elapsed_ns', c_uint64), ('phase_elapsed_ns', c_uint64)]


class _Option(ctypes.Structure):
    _fields_ = [('name', c_char_p), ('argument', c_char_p), ('default_value', c_char_p),
                ('help', c_char_p), ('section', c_char_p), ('letter', c_int),
                ('repeatable', c_int), ('cli_only', c_int)]


_MessageCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
_ProgressCallback = ctypes.CFUNCTYPE(None, c_void_p, POINTER(_Progress))
_SEVERITY_WARNING = 1
_PROGRESS_INTERVAL_MS = 100

# Result type and argument types of each function that the package calls.
_PROTOTYPES = {
    'gsort_version': (c_char_p, []),
    'gsort_open': (c_int, [POINTER(c_void_p)]),
    'gsort_close': (None, [c_void_p]),
    'gsort_set': (c_int, [c_void_p, c_char_p, c_char_p]),
    'gsort_add_input_path': (c_int, [c_void_p, c_char_p]),
    'gsort_set_output_path': (c_int, [c_void_p, c_char_p]),
    'gsort_put': (c_int, [c_void_p, c_void_p, c_size_t]),
    'gsort_finish': (c_int, [c_void_p]),
    'gsort_get': (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_size_t)]),
    'gsort_run': (c_int, [c_void_p]),
    'gsort_check': (c_int, [c_void_p, POINTER(c_uint64)]),
    'gsort_explain': (c_int, [c_void_p, c_uint64, POINTER(c_char_p)]),
    'gsort_cancel': (None, [c_void_p]),
    'gsort_message': (c_char_p, [c_void_p]),
    'gsort_set_message_callback': (c_int, [c_void_p, _MessageCallback, c_void_p]),
    'gsort_set_progress_callback': (c_int, [c_void_p, _ProgressCallback, c_void_p, c_uint]),
    'gsort_format_progress': (None, [POINTER(_Progress), c_size_t, c_char_p, c_size_t]),
    'gsort_stats_json': (c_char_p, [c_void_p]),
    'gsort_write_reports': (c_int, [c_void_p]),
    'gsort_get_option': (c_int, [c_uint, POINTER(_Option), c_size_t]),
    'gsort_get_line_option': (c_int, [c_uint, POINTER(_Option), c_size_t]),
    'gsort_suggest': (c_char_p, [c_char_p, c_size_t, POINTER(c_char_p), c_uint]),
}


def _load():
    library = ctypes.CDLL(str(Path(__file__).with_name('libgsort.so')))
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    return library


_lib = _load()

# Python names that differ from the option's name on the command line.
_ALIASES = {'memory': 'buffer-size', 'threads': 'parallel', 'keys': 'key',
            'temp-directory': 'temporary-directory'}
_KEYWORDS = {option: keyword.replace('-', '_') for keyword, option in _ALIASES.items()}

# Words of other programs and packages for options, to suggest.
_SYNONYMS = {'delimiter': 'field_separator', 'sep': 'field_separator', 'descending': 'reverse'}


def _list_options(get_option):
    options, letters = {}, {}
    option = _Option()
    while get_option(len(options), byref(option), ctypes.sizeof(option)) == 0:
        options[option.name.decode()] = (option.argument, bool(option.repeatable),
                                         bool(option.cli_only))
        if option.letter:
            letters[chr(option.letter)] = option.name.decode()
    return options, letters


_record_options, _record_letters = _list_options(_lib.gsort_get_option)
_line_options, _line_letters = _list_options(_lib.gsort_get_line_option)
# Operations that are functions of the package.
_functions = {'check', 'C', 'explain', 'assume-size', 'output', 'help', 'version', 'progress',
              'completion', 'files0-from', 'lines'}


def _suggest(name, options):
    names = [n.replace('-', '_').encode()
             for n, (_, _, cli_only) in options.items() if not cli_only and n not in _functions]
    names += [n.replace('-', '_').encode() for n in _ALIASES] + [b'lines']
    words = (c_char_p * len(names))(*names)
    word = name.encode()
    return _lib.gsort_suggest(word, len(word), words, len(names))


def _find_part(keyword, options):
    """Return the only option that begins or ends with the word, or None (numeric: numeric_sort)."""
    found = [name for name in (option.replace('-', '_') for option in options)
             if name.startswith(keyword + '_') or name.endswith('_' + keyword)]
    return found[0].encode() if len(found) == 1 else None


def encode(text):
    """Encode a path or text. Rejects null bytes, which end a string in C."""
    encoded = os.fsencode(text)
    if b'\0' in encoded:
        raise ValueError('embedded null byte')
    return encoded


def _text(keyword, value, argument):
    """Convert a value to its form on the command line. argument: the placeholder in --help."""
    if keyword == 'type' and (isinstance(value, np.dtype) or isinstance(value, type)):
        return np.dtype(value).str.encode()
    if keyword == 'field_separator' and value in ('\0', b'\0'):
        return b'\\0'
    if isinstance(value, (str, bytes, os.PathLike)):
        return encode(value)
    if hasattr(value, '__index__') and not isinstance(value, type):
        # Sizes without a unit are KiB for some options.
        return b'%db' % value.__index__() if argument == b'SIZE' else b'%d' % value.__index__()
    raise TypeError(f'{keyword}: an int, a string or a path is expected, not {value!r}')


def _option_name(keyword):
    """Return the name of the option of a keyword argument."""
    name = keyword.replace('_', '-')
    return _ALIASES.get(name, name)


def _is_option(name, options):
    """Return whether an option can be a keyword argument."""
    return name in options and not options[name][2] and name not in _functions


def _unexpected(function, keyword, known, lines):
    """Return the message for an unknown option."""
    message = f'{function}() got an unexpected keyword argument {keyword!r}'
    synonym = _SYNONYMS.get(keyword, '')
    if _is_option(_option_name(synonym), known):
        return message + f'; did you mean {synonym!r}?'
    if lines:
        message += ' with lines=True'
    elif _is_option(_option_name(synonym), _line_options):
        return message + f'; did you mean {synonym!r} with lines=True?'
    elif _is_option(_option_name(keyword), _line_options):
        return message + ' without lines=True'
    suggestion = _suggest(keyword, known) or _find_part(keyword, known)
    return message + f'; did you mean {suggestion.decode()!r}?' if suggestion else message


def option_rows(function, options):
    """Translate keyword arguments to (name, value) rows for gsort_set().

    Raises TypeError for an unknown option, as Python does for an unknown keyword argument.
    """
    options = dict(options)
    lines = options.pop('lines', False)
    known = _line_options if lines else _record_options
    rows = [('lines', None)] if lines else []
    for keyword, value in options.items():
        name = _option_name(keyword)
        if not _is_option(name, known):
            raise TypeError(_unexpected(function, keyword, known, lines))
        argument, repeatable, _ = known[name]
        if value is None or value is False:
            continue
        if value is True:
            rows.append((name, None))
        elif not argument:
            raise TypeError(f'{keyword}: True or False is expected, not {value!r}')
        elif isinstance(value, (list, tuple)):
            if repeatable:
                rows += [(name, _text(keyword, v, argument)) for v in value]
            else:
                rows.append((name, b','.join(_text(keyword, v, argument) for v in value)))
        else:
            rows.append((name, _text(keyword, value, argument)))
    return rows


# An option in a message: '-S, --buffer-size', '-t' or '--format=raw', not that of another program.
_OPTION_PATTERN = re.compile(
    r"(?<![\w'/.-])(?<!gsort )(?<!ulimit )(?<!chattr )"
    r'(?:-(?P<letter>[A-Za-z])(?![\w-])(?:, --[a-z0-9-]+)?|--(?P<name>[a-z0-9-]+)(?:=(?P<value>\w+))?)')


def _in_python_words(message, lines):
    """Replace options of the command line in a message by keyword arguments."""
    known, letters = (_line_options, _line_letters) if lines else (_record_options, _record_letters)

    def to_keyword(match):
        name = match['name'] or letters.get(match['letter'])
        if not _is_option(name, known):
            return match[0]
        keyword = _KEYWORDS.get(name, name.replace('-', '_'))
        return f'{keyword}={match["value"]!r}' if match['value'] else keyword

    return _OPTION_PATTERN.sub(to_keyword, message.replace('gsort --lines', 'lines=True'))


def _exception(code, message, paths=()):
    """Return the exception for a negative errno of the library. paths: those of the sort."""
    number = -code
    if number == errno.ENOMEM:
        return MemoryError(message)
    if number in (errno.EINVAL, errno.ENOTSUP):
        return ValueError(message)
    if number in (errno.ENOENT, errno.EACCES, errno.EPERM):
        # FileNotFoundError or PermissionError
        for path in paths:
            if message.startswith(f'{path}: '):
                return OSError(number, message[len(path) + 2:], path)
        return OSError(number, message)
    return Error(number, message)


class _ProgressLine:
    """Progress as a line on standard error."""

    def __init__(self):
        self.width = 0

    def update(self, progress):
        line = ctypes.create_string_buffer(160)
        _lib.gsort_format_progress(byref(progress), ctypes.sizeof(progress), line, len(line))
        text = line.value.decode()
        print('\r' + text.ljust(self.width), end='', file=sys.stderr, flush=True)
        self.width = len(text)

    def close(self):
        if self.width:
            print('\r' + ' ' * self.width + '\r', end='', file=sys.stderr, flush=True)


class _ProgressTqdm:
    """Progress as a bar of tqdm."""

    def __init__(self, tqdm):
        self.bar = tqdm(unit='B', unit_scale=True)

    def update(self, progress):
        self.bar.total = progress.overall_total_nbytes or None
        self.bar.set_description((progress.phase or b'').decode(), refresh=False)
        self.bar.update(progress.overall_done_nbytes - self.bar.n)

    def close(self):
        self.bar.close()


class _ProgressFunction:
    """Progress as calls of a function with (phase, done, total), in bytes of the phase."""

    def __init__(self, function):
        self.function = function

    def update(self, progress):
        self.function((progress.phase or b'').decode(), progress.done_nbytes, progress.total_nbytes)

    def close(self):
        pass


def _open_progress(progress):
    if callable(progress):
        return _ProgressFunction(progress)
    if progress is not True:
        raise TypeError(f'progress: True, False or a function is expected, not {progress!r}')
    try:
        from tqdm import tqdm
    except ImportError:
        return _ProgressLine()
    return _ProgressTqdm(tqdm)


def _caller_level():
    """Return the stack level of the first caller outside of the package, for warnings."""
    frame, level = sys._getframe(1), 0
    while frame.f_back and frame.f_globals.get('__package__') == __package__:
        frame, level = frame.f_back, level + 1
    return level + 1


# A call takes 0.1 ms, because it runs in a thread of its own, so that Ctrl-C interrupts it.
_MIN_PUT_NBYTES = 256 << 10


class Sort:
    """A handle of the library.

    Calls of the main thread run in a helper thread, so that Ctrl-C can interrupt them. Ctrl-C
    cancels the sort; KeyboardInterrupt is raised after the library has cleaned up. A second
    interrupt may raise it earlier, while the call still runs. So arguments that point to memory
    keep it alive, and close() waits for the call.
    """

    def __init__(self, rows, progress=None):
        self._handle = c_void_p()
        self._lock = threading.RLock()  # held by calls that use the handle
        self._pid = os.getpid()
        self._warnings = []
        self._paths = []
        self._sorts_lines = ('lines', None) in rows
        self._short_pieces = bytearray()  # of put_bytes()
        self._callback_error = None
        self._progress = None
        code = _lib.gsort_open(byref(self._handle))
        if code < 0:
            raise _exception(code, os.strerror(-code))
        try:
            # ctypes requires that the callbacks live as long as the handle.
            self._message_callback = _MessageCallback(self._on_message)
            self._check(_lib.gsort_set_message_callback(self._handle, self._message_callback, None))
            for name, value in rows:
                self._check(_lib.gsort_set(self._handle, name.encode(), value))
            if progress:
                self._progress = _open_progress(progress)
                self._progress_callback = _ProgressCallback(self._on_progress)
                self._check(_lib.gsort_set_progress_callback(
                    self._handle, self._progress_callback, None, _PROGRESS_INTERVAL_MS))
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        self.close()

    def close(self):
        """Free the handle. Cancels a running sort."""
        # A child of fork() does not have the threads of the sort.
        if self._handle and self._pid == os.getpid():
            self.cancel()
            with self._lock:
                handle, self._handle = self._handle, None
                _lib.gsort_close(handle)
        self._handle = None
        progress, self._progress = self._progress, None
        if progress:
            progress.close()

    def cancel(self):
        """Cancel the sort, from any thread."""
        if self._handle:
            _lib.gsort_cancel(self._handle)

    def add_input(self, path):
        """Add an input file. "-" is a file of that name, not standard input."""
        self._paths.append(os.fsdecode(path))
        self._check(_lib.gsort_add_input_path(self._handle, b'./-' if path == b'-' else path))

    def set_output(self, path):
        """Set the output file. "-" is a file of that name, not standard output."""
        self._paths.append(os.fsdecode(path))
        self._check(_lib.gsort_set_output_path(self._handle, path))

    def put_bytes(self, data):
        """Pass input. Short pieces are collected, because every call of the library is slow."""
        if len(self._short_pieces) + len(data) < _MIN_PUT_NBYTES and self._handle is not None:
            self._short_pieces += data
        else:
            self.call('put', data, len(data))

    def call(self, name, *arguments):
        """Call gsort_NAME(handle, arguments...); raise an exception if it fails."""
        if self._short_pieces and name in ('put', 'finish'):
            data, self._short_pieces = bytes(self._short_pieces), bytearray()
            self.call('put', data, len(data))
        if self._handle is None:
            raise ValueError('the sort is closed')
        function = getattr(_lib, 'gsort_' + name)
        if threading.current_thread() is threading.main_thread():
            code = self._call_interruptibly(function, arguments)
        else:
            code = self._call(function, arguments)
        messages, self._warnings = self._warnings, []
        if self._callback_error:
            error, self._callback_error = self._callback_error, None
            raise error
        self._check(code)
        for text in messages:
            warnings.warn(text, SortWarning, stacklevel=_caller_level())

    def _call_interruptibly(self, function, arguments):
        result = []
        end = _thread.allocate_lock()  # released at the end of the call
        end.acquire()

        def run():
            code = None
            try:
                code = self._call(function, arguments)
            finally:
                result.append(code)
                end.release()

        # Not the module threading: an interrupt can leave its locks held.
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError as error:
            raise Error(errno.EAGAIN, str(error)) from None
        try:
            # A signal that another thread receives does not end a wait, so wait briefly.
            while not result:
                end.acquire(timeout=0.05)
        except BaseException:
            self.cancel()
            while not result:
                try:
                    end.acquire(timeout=0.05)
                except KeyboardInterrupt:
                    pass
            raise
        return result[0]

    def _call(self, function, arguments):
        with self._lock:
            return function(self._handle, *arguments) if self._handle else -errno.ECANCELED

    def statistics(self):
        """Return the statistics of a successful sort as a dict."""
        text = _lib.gsort_stats_json(self._handle)
        if text is None:
            raise Error(errno.EINVAL, self._message())
        return json.loads(text)

    def _message(self):
        return self._translate(_lib.gsort_message(self._handle))

    def _translate(self, text):
        """Decode a message, and name keyword arguments in it. Paths of the sort stay."""
        message = text.decode(errors='replace')
        path = next((path for path in self._paths if message.startswith(path)), '')
        return path + _in_python_words(message[len(path):], self._sorts_lines)

    def _check(self, code):
        if code < 0:
            raise _exception(code, self._message() or os.strerror(-code), self._paths)

    # Exceptions cannot pass through C. An exception of a callback cancels the sort; call() raises
    # it.
    def _on_message(self, _context, severity, text):
        if severity == _SEVERITY_WARNING:
            self._warnings.append(self._translate(text))

    def _on_progress(self, _context, progress):
        try:
            if self._progress and not self._callback_error:
                self._progress.update(progress.contents)
        except BaseException as error:
            self._callback_error = error
            self.cancel()


def version():
    return _lib.gsort_version().decode()


def put(sort, pointer, nbytes):
    """Pass nbytes of input. The pointer refers to the object that owns the memory."""
    sort.call('put', pointer, nbytes)


def get(sort, pointer, nbytes):
    """Read up to nbytes of the output to the pointer. Returns the number of bytes read."""
    got = c_size_t()
    sort.call('get', pointer, nbytes, byref(got))
    return got.value


def get_end(sort):
    """Read past the last record, which runs the final checks. Returns whether the output ended."""
    return get(sort, byref(c_char()), 1) == 0


def check(sort):
    number = c_uint64()
    sort.call('check', byref(number))
    sort.call('write_reports')
    return number.value


def explain(sort, assumed_nbytes):
    text = c_char_p()
    sort.call('explain', assumed_nbytes, byref(text))
    return json.loads(text.value)
