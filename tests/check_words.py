#!/usr/bin/env python3
"""check_words - check the vocabulary of names and the length of sentences in documents

usage: check_words.py SOURCE_ROOT

Prints one line for each violation and exits with 1 if there is any:
 - a file, struct, enum, function (also of a script), enumerator, macro or option whose name contains
   a banned word (tests/words.txt lists these words with their replacements);
 - a struct tag with two definitions, or a source file name that is used twice;
 - a header that is called *inside.h;
 - a word of a file name that is neither in tests/file_name_words.txt (standard terms) nor in the
   glossary of docs/architecture.md;
 - a document (*.md) with long sentences, lines or table cells (DOCUMENT_LIMITS).
"""
import collections
import pathlib
import re
import statistics
import sys

TOPS = ('src', 'io', 'kernels', 'include', 'tools', 'tests')
SOURCES = {'.c', '.h', '.cc', '.cu', '.cuh', '.inc'}
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
DECLARED = re.compile(r'\b(?:struct|enum|union) ([A-Za-z_]\w*)|\b([A-Za-z_]\w*)\(|^#[ \t]*define ([A-Za-z_]\w*)', re.M)
ENUM = re.compile(r'\benum(?: \w+)? \{([^}]*)\}', re.S)
STRUCT = re.compile(r'^(?:struct|union) (\w+)(?: final)? \{', re.M)
# Functions of scripts; names of Python tests are sentences.
SCRIPT_FUNCTION = re.compile(r'^(\w+)\(\) \{|^ *def (?!test_)(\w+)\(', re.M)
OPTION = re.compile(r'\.name = "([a-z0-9-]+)"')
# Names of test functions are sentences.
TEST_FUNCTION = re.compile(r'\b\w+\(void \*\*state\)|\bcmocka_unit_test\w*\([^;]*?\)|\b(?:[A-Z]+_)?TEST(?:_[A-Z]+)?\((?:\w+, )?\w+\b')
GLOSSARY = re.compile(r'^\| term \| meaning \|\n((?:\|.*\n)*)', re.M)

DOCUMENT_LIMITS = {'mean words': 18, 'long sentence': 40, 'long sentences in percent': 2, 'columns': 100, 'words in a cell': 40}
CODE_BLOCK = re.compile(r'^ *```.*?^ *```$', re.S | re.M)
BLOCK_START = re.compile(r'\n\s*\n|\n(?= *[-*] )|\n(?= *\d+\. )|\n(?=[|#])')
SENTENCE_END = re.compile(r'(?<=[.!?]) (?=[A-Z`"(*-])')
CELL_END = re.compile(r'(?<!\\)\|')


def words_of(name):
    return [word for word in re.split(r'[^a-z0-9]+', name.lower()) if word]


def read_words(path):
    """Return (banned word -> replacement, [(allowed phrase, folder)]). take_up is one word."""
    banned, allowed = {}, []
    for line in path.read_text().splitlines():
        row = line.split('\t')
        if line.startswith('+'):
            allowed.append((row[0][1:], row[1] if len(row) > 1 else ''))
        elif line and line[0] != '#':
            banned[row[0]] = row[1]
    return banned, allowed


def banned_in(name, file, banned, allowed):
    joined = '_' + '__'.join(words_of(name)) + '_'
    for phrase, folder in allowed:
        if file.startswith(folder):
            joined = joined.replace('_' + '__'.join(phrase.split('_')) + '_', '_')
    return next((word for word in banned if '_' + '__'.join(word.split('_')) + '_' in joined), None)


def declared_names(text):
    for match in DECLARED.finditer(text):
        yield next(filter(None, match.groups()))
    for body in ENUM.findall(text):
        for member in body.split(','):
            match = re.match(r'\s*([A-Za-z_]\w*)', member)
            if match:
                yield match[1]


def source_files(root):
    for top in TOPS:
        for path in sorted((root / top).rglob('*')):
            if path.is_file() and path.name not in ('meson.build', 'README.md') and '__pycache__' not in path.parts:
                yield path, path.relative_to(root).as_posix()


def sentence_lengths(text):
    """Yield the number of words of each sentence of a document, except very short ones."""
    for block in BLOCK_START.split(CODE_BLOCK.sub('', text)):
        for sentence in SENTENCE_END.split(' '.join(block.split())):
            n_words = len(re.findall(r"[A-Za-z][A-Za-z'_-]*", sentence))
            if n_words >= 4:
                yield n_words


def check_document(name, text):
    limits = DOCUMENT_LIMITS
    lengths = list(sentence_lengths(text))
    mean = statistics.mean(lengths)
    n_long = sum(n > limits['long sentence'] for n in lengths)
    if mean > limits['mean words']:
        yield f'{name}: sentences have {mean:.1f} words on average; at most {limits["mean words"]}'
    if 100 * n_long > limits['long sentences in percent'] * len(lengths):
        yield (f'{name}: {n_long} of {len(lengths)} sentences have more than {limits["long sentence"]} words; at most '
               f'{limits["long sentences in percent"]} %')
    # Lines of code blocks are often output of programs.
    prose = CODE_BLOCK.sub(lambda block: '\n' * block[0].count('\n'), text)
    for number, line in enumerate(prose.splitlines(), 1):
        if not line.startswith('|'):
            if len(line) > limits['columns']:
                yield f'{name}:{number}: {len(line)} columns; at most {limits["columns"]}'
            continue
        for cell in CELL_END.split(line):
            if len(cell.split()) > limits['words in a cell']:
                yield f'{name}:{number}: {len(cell.split())} words in a table cell; at most {limits["words in a cell"]}'


def documents(root):
    return sorted([*root.glob('*.md'), *(root / 'docs').rglob('*.md'), root / 'src/README.md'])


def glossary_words(root):
    text = (root / 'docs/architecture.md').read_text()
    rows = re.findall(r'^\| ([^|]*) \|', ''.join(GLOSSARY.findall(text)), re.M)
    return {word for row in rows for word in words_of(row)}


def main():
    root = pathlib.Path(sys.argv[1])
    banned, allowed = read_words(root / 'tests/words.txt')
    lines = (root / 'tests/file_name_words.txt').read_text().splitlines()
    terms = {word for line in lines if not line.startswith('#') for word in line.split()} | glossary_words(root)
    tags = collections.defaultdict(list)
    basenames = collections.defaultdict(list)
    violations = []

    def check(file, name, what=''):
        word = banned_in(name, file, banned, allowed)
        if word:
            violations.append(f'{file}: {what}`{word}` is not a name: use {banned[word]}')

    for path, name in source_files(root):
        stem = path.name.split('.')[0]
        check(name, '/'.join(name.split('/')[1:-1] + [stem]))
        if stem.endswith('inside'):
            violations.append(f'{name}: a header of one module is called *_internal.h')
        unknown = [word for word in words_of(stem) if word not in terms and not word.isdigit()]
        if unknown and not name.startswith('tests/words'):
            violations.append(f'{name}: `{unknown[0]}` is neither a term of the field (tests/file_name_words.txt) '
                              'nor in the glossary of docs/architecture.md')
        if path.suffix in ('.sh', '.py'):
            for match in SCRIPT_FUNCTION.finditer(path.read_text()):
                check(name, match[1] or match[2], f'{match[1] or match[2]}: ')
        if path.suffix not in SOURCES:
            continue
        text = COMMENT.sub(' ', path.read_text(errors='replace'))
        if not name.startswith('tests/'):
            for tag in STRUCT.findall(text):
                tags[tag].append(name)
            if path.suffix in ('.c', '.cu', '.cc'):
                basenames[path.name].append(name)
            for option in OPTION.findall(text):
                check(name, option, f'--{option}: ')
        code = TEST_FUNCTION.sub('(', STRING.sub('""', text))
        for declared in sorted(set(declared_names(code))):
            check(name, declared, f'{declared}: ')

    for tag, files in sorted(tags.items()):
        if len(set(files)) > 1:
            violations.append(f'struct {tag} is defined in {" and ".join(sorted(set(files)))}')
    for base, files in sorted(basenames.items()):
        if len(files) > 1:
            violations.append(f'{base} is the name of {" and ".join(sorted(files))}')
    for path in documents(root):
        violations += check_document(path.relative_to(root).as_posix(), path.read_text())
    print('\n'.join(violations))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
