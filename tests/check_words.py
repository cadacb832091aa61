#!/usr/bin/env python3
"""check_words - names use the vocabulary of the field

usage: check_words.py SOURCE_ROOT

Prints one line for each violation and exits with 1 if there is any:
 - a file, struct, enum, function, enumerator, macro or option whose name has a banned word (tests/words.txt
   lists these words with the words to use instead);
 - a struct tag with two definitions, or a source file name that is used twice;
 - a header called *inside.h;
 - a word of a file name that is neither in tests/file_name_words.txt (terms of the field) nor in the glossary
   of docs/design.md.
"""
import collections
import pathlib
import re
import sys

TOPS = ('src', 'io', 'kernels', 'include', 'tools', 'tests')
SOURCES = {'.c', '.h', '.cc', '.cu', '.cuh', '.inc'}
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
DECLARED = re.compile(r'\b(?:struct|enum|union) ([A-Za-z_]\w*)|\b([A-Za-z_]\w*)\(|^#[ \t]*define ([A-Za-z_]\w*)', re.M)
ENUM = re.compile(r'\benum(?: \w+)? \{([^}]*)\}', re.S)
STRUCT = re.compile(r'^(?:struct|union) (\w+)(?: final)? \{', re.M)
OPTION = re.compile(r'\.name = "([a-z0-9-]+)"')
GLOSSARY = re.compile(r'^## (?:Words|Glossary)\n(.*?)^## ', re.M | re.S)


def words_of(name):
    return [word for word in re.split(r'[^a-z0-9]+', name.lower()) if word]


def read_banned(path):
    """word -> the word to use instead; a word may consist of several parts, as in take_up."""
    rows = (line.split('\t') for line in path.read_text().splitlines() if line and line[0] != '#')
    return {row[0]: row[1] for row in rows}


def banned_in(name, banned):
    joined = '_' + '_'.join(words_of(name)) + '_'
    return next((word for word in banned if f'_{word}_' in joined), None)


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
            if path.is_file() and path.name != 'meson.build' and '__pycache__' not in path.parts:
                yield path, path.relative_to(root).as_posix()


def glossary_words(root):
    text = (root / 'docs/design.md').read_text()
    table = GLOSSARY.search(text)
    rows = re.findall(r'^\| ([^|]*) \|', table[1] if table else '', re.M)
    return {word for row in rows for word in words_of(row)}


def main():
    root = pathlib.Path(sys.argv[1])
    banned = read_banned(root / 'tests/words.txt')
    terms = set((root / 'tests/file_name_words.txt').read_text().split()) | glossary_words(root)
    tags = collections.defaultdict(list)
    basenames = collections.defaultdict(list)
    violations = []

    def check(what, name):
        word = banned_in(name, banned)
        if word:
            violations.append(f'{what}: `{word}` is not a name: use {banned[word]}')

    for path, name in source_files(root):
        stem = path.name.split('.')[0]
        check(name, '/'.join(name.split('/')[1:-1] + [stem]))
        if stem.endswith('inside'):
            violations.append(f'{name}: a header of one module is called *_internal.h')
        unknown = [word for word in words_of(stem) if word not in terms and not word.isdigit()]
        if unknown and not name.startswith('tests/words'):
            violations.append(f'{name}: `{unknown[0]}` is neither a term of the field (tests/file_name_words.txt) '
                              'nor in the glossary of docs/design.md')
        if path.suffix not in SOURCES:
            continue
        text = COMMENT.sub(' ', path.read_text(errors='replace'))
        if not name.startswith('tests/'):
            for tag in STRUCT.findall(text):
                tags[tag].append(name)
            if path.suffix in ('.c', '.cu', '.cc'):
                basenames[path.name].append(name)
            for option in OPTION.findall(text):
                check(f'{name}: --{option}', option)
        code = STRING.sub('""', text)
        for declared in sorted(set(declared_names(code))):
            check(f'{name}: {declared}', declared)

    for tag, files in sorted(tags.items()):
        if len(set(files)) > 1:
            violations.append(f'struct {tag} is defined in {" and ".join(sorted(set(files)))}')
    for base, files in sorted(basenames.items()):
        if len(files) > 1:
            violations.append(f'{base} is the name of {" and ".join(sorted(files))}')
    print('\n'.join(violations))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
