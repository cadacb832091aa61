#!/usr/bin/env python3
"""check_layers - check the layers of includes, circular includes, and headers with one includer

usage: check_layers.py SOURCE_ROOT

meson.build lists the folders in the order of their layers. A file may include headers of its own
folder and of folders above it in the list. A folder that is not in the list belongs to the listed
folder that contains it. Further rules:
 - src/README.md lists the same folders in the same order;
 - tools/ and tests/ may include anything, and nothing may include them;
 - only back ends include headers of back ends;
 - the command line includes only its own headers and that of the library;
 - modules do not include each other in a circle;
 - headers of the product have at least two includers (see MOST_LONELY_HEADERS).
Prints one line for each violation and exits with 1 if there is any.
"""
import collections
import pathlib
import re
import sys

# Maximum number of headers with fewer than two includers in the product, not counting the .c file
# of the same name. Lower it when such a header is merged into its includer; never raise it.
MOST_LONELY_HEADERS = 18

# Circles that are allowed, one per line: the modules of a line may include each other. Delete a
# line when its circle is gone. Add none.
ALLOWED_CIRCLES = [
    'tests/fault/expected_outputs tests/fault/part_files_check tests/fault/sort_scenarios',
]

SOURCES = {'.c', '.h', '.cc', '.cu', '.cuh', '.inc'}
HEADERS = {'.h', '.cuh'}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
GENERATED = {'config.h'}
FRONT_ENDS = ('tools', 'tests')
# The program uses only the public header of the library.
CLIENT = 'src/cli'
CLIENT_KNOWS = ('src/cli', 'include')
# Other code uses these through src/device/backend.h. Code that verifies does not use them at all.
BACK_ENDS = ('src/device/cpu', 'src/device/cuda', 'kernels')
# Back ends need records of a fixed size, so sorts of lines call functions of the CPU back end
# directly.
BACK_END_CLIENTS = ('src/lines',)


def ordered_folders(root):
    text = (root / 'meson.build').read_text()
    listed = re.search(r'foreach folder : \[(.*?)\]', text, re.S)
    return re.findall(r"'([^']+)'", listed.group(1))


def documented_folders(root):
    text = (root / 'src/README.md').read_text()
    return re.findall(r'^\| `((?:include|src|io|kernels)[a-z0-9_/]*)/` \|', text, re.M)


def folder_of(path, folders):
    """Return the listed folder that contains the file, or None."""
    for parent in pathlib.PurePosixPath(path).parents:
        if str(parent) in folders:
            return str(parent)
    return None


def includes(root):
    """Return file -> the files of the project that it includes."""
    graph = {}
    for top in ('include', 'src', 'io', 'kernels', 'tools', 'tests'):
        for file in sorted((root / top).rglob('*')):
            if file.suffix in SOURCES:
                name = file.relative_to(root).as_posix()
                graph[name] = [i for i in INCLUDE.findall(file.read_text())
                             if i not in GENERATED]
    return graph


def offending_arrows(graph, folders):
    rank = {folder: i for i, folder in enumerate(folders)}
    for name, included in graph.items():
        here = folder_of(name, folders)
        if not here and not name.startswith(FRONT_ENDS):
            yield f'{name}: its folder is not in the list of meson.build'
            continue
        for other in included:
            there = folder_of(other, folders)
            if other not in graph and not other.startswith('config'):
                yield f'{name}: includes {other}; write the path from the root'
            elif here and not there:
                yield f'{name}: includes {other}, a header of a front end'
            elif here and there in BACK_ENDS and here not in BACK_ENDS + BACK_END_CLIENTS:
                yield f'{name}: includes {other}, a header of a back end'
            elif here == CLIENT and there not in CLIENT_KNOWS:
                yield f'{name}: includes {other}; src/cli/ may include only include/gsort.h'
            elif here and rank[there] > rank[here]:
                yield f'{name}: includes {other} of a higher layer'


def stem_of(name):
    return str(pathlib.PurePosixPath(name).with_suffix(''))


def modules(graph):
    """Return module -> included modules. Files of a module differ only in the suffix."""
    result = collections.defaultdict(set)
    for name, included in graph.items():
        result[stem_of(name)].update(stem_of(i) for i in included if i in graph and stem_of(i) != stem_of(name))
    return result


def circles(graph):
    """Return the strongly connected components of several modules, as sets (Tarjan 1972)."""
    index, low, path, found = {}, {}, [], []

    def walk(module):
        index[module] = low[module] = len(index)
        path.append(module)
        for other in sorted(graph.get(module, ())):
            if other not in index:
                walk(other)
                low[module] = min(low[module], low[other])
            elif other in path:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            component = path[path.index(module):]
            del path[path.index(module):]
            if len(component) > 1:
                found.append(set(component))

    for module in sorted(graph):
        if module not in index:
            walk(module)
    return found


def circle_violations(found):
    allowed = [set(line.split()) for line in ALLOWED_CIRCLES]
    for circle in found:
        if not any(circle <= line for line in allowed):
            yield 'circle of includes: ' + ' '.join(sorted(circle))
    for line in allowed:
        if not any(circle <= line for circle in found):
            yield ('tests/check_layers.py: a circle is gone; delete its line from ALLOWED_CIRCLES: ' +
                   ' '.join(sorted(line)))


def lonely_headers(graph):
    """Yield headers that at most one other module of the product includes."""
    includers = collections.defaultdict(set)
    for name, included in graph.items():
        if not name.startswith('tests/'):
            for other in included:
                includers[other].add(name)
    for name in sorted(graph):
        path = pathlib.PurePosixPath(name)
        if path.suffix in HEADERS and not name.startswith(FRONT_ENDS):
            others = [i for i in includers[name] if pathlib.PurePosixPath(i).with_suffix('') != path.with_suffix('')]
            if len(others) < 2:
                yield f'{name} ({", ".join(others) or "none"})'


def main():
    root = pathlib.Path(sys.argv[1])
    folders = ordered_folders(root)
    graph = includes(root)
    violations = list(offending_arrows(graph, folders))
    violations += circle_violations(circles(modules(graph)))
    lonely = list(lonely_headers(graph))
    if len(lonely) > MOST_LONELY_HEADERS:
        violations.append(f'{len(lonely)} headers have fewer than two includers besides their own .c file; '
                        f'the limit is {MOST_LONELY_HEADERS}; merge the new one into its only includer:\n\t' +
                        '\n\t'.join(lonely))
    if documented_folders(root) != folders:
        violations.append('src/README.md: its table must have the folders of meson.build in the same order')
    print('\n'.join(violations))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
