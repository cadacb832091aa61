#!/usr/bin/env python3
"""plot_benchmarks - draw the pictures of docs/benchmarks.md and README.md from docs/data

usage: plot_benchmarks.py [--check] [ROOT]

Reads ROOT/docs/data/*.json and writes ROOT/docs/pictures/*.svg (default ROOT: here). --check writes
nothing. It prints the pictures that are out of date and exits with 1 if there are any.

bench_series.py and bench_gpus.py write the JSON files. Each is an object with "series" (files,
lines, threads, kernels or devices), "date", "machine" and "cases". Each case has "name",
"input_bytes" and "median_s". Cases of threads also have "threads", those of kernels "element_bytes",
and those of devices "shape". Several files may have the same series.

Pictures are SVG with text and follow the light or dark mode of the reader. The same data gives the
same bytes.
"""
import html
import json
import math
import pathlib
import sys

GIB, MIB = 1 << 30, 1 << 20
WIDTH, LEFT, RIGHT, LINE = 760, 168, 150, 26

# Name -> colours for light and dark mode. Based on the palette of Okabe and Ito, which colour-blind
# readers can distinguish.
COLOURS = {
    'gsort, GPU': ('#00795a', '#2fc79c'), 'gsort, CPU': ('#0072b2', '#56b4e9'),
    'cp': ('#6e6e6e', '#a8a8a8'), 'numpy': ('#b26a00', '#e69f00'), 'cupy': ('#c04a00', '#f08040'),
    'gsort': ('#00795a', '#2fc79c'), 'cub::DeviceRadixSort': ('#b26a00', '#e69f00'),
    'cub::DeviceMergeSort': ('#6e6e6e', '#a8a8a8'),
    'GNU sort': ('#b26a00', '#e69f00'),
    'one GPU': ('#6e6e6e', '#a8a8a8'), 'one GPU, 4 times': ('#b26a00', '#e69f00'),
    'two GPUs': ('#00795a', '#2fc79c'), 'four GPUs': ('#0072b2', '#56b4e9'), 'eight GPUs': ('#c04a00', '#f08040'),
}

STYLE = '''
.ground { fill: #ffffff; stroke: #d0d7de }
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.note { font-size: 11px; fill: #59636e }
.grid { stroke: #d8dee4 }
polyline { fill: none; stroke-width: 2.5 }
'''
DARK = '.ground { fill: #0d1117; stroke: #3d444d } text { fill: #e6edf3 } .note { fill: #9198a1 } ' \
       '.grid { stroke: #2d333b }'


def colour_class(name):
    return 'c' + str(list(COLOURS).index(name))


def style():
    def rules(shade):
        return ' '.join(f'.{colour_class(name)} {{ fill: {shades[shade]} }} '
                        f'polyline.{colour_class(name)} {{ fill: none; stroke: {shades[shade]} }}'
                        for name, shades in COLOURS.items())
    return f'<style>{STYLE}{rules(0)}\n@media (prefers-color-scheme: dark) {{ {DARK} {rules(1)} }}</style>'


def text(x, y, what, css='', anchor='start'):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{css}" text-anchor="{anchor}">{html.escape(what)}</text>'


def seconds(s):
    return f'{s * 1000:.0f} ms' if s < 0.1 else f'{s:.2f} s' if s < 10 else f'{s:.1f} s'


def size(nbytes):
    return f'{nbytes / GIB:.3g} GiB' if nbytes >= GIB else f'{nbytes / MIB:.3g} MiB'


def picture(title, about, notes, height, body):
    """Return an SVG picture. Notes are lines of small text at the bottom."""
    full = 64 + height + 16 * len(notes)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {full:.0f}" role="img" '
             'aria-labelledby="title about">',
             f'<title id="title">{html.escape(title)}</title>', f'<desc id="about">{html.escape(about)}</desc>',
             style(), f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{full - 1:.0f}" rx="6"/>',
             text(20, 30, title, 'title'), *body]
    parts += [text(20, 56 + height + 16 * i, note, 'note') for i, note in enumerate(notes)]
    return '\n'.join(parts) + '\n</svg>\n'


def bar(y, label, width, name, value):
    return [text(LEFT - 10, y + 15, label, anchor='end'),
            f'<rect class="{colour_class(name)}" x="{LEFT}" y="{y + 3:.1f}" width="{width:.1f}" height="16" rx="2"/>',
            text(LEFT + width + 8, y + 15, value)]


def sources(files):
    dates = sorted({file['date'] for file in files})
    return [f"{', '.join(sorted({file['machine'] for file in files}))}; {' to '.join(dict.fromkeys([dates[0], dates[-1]]))}; "
            f"figures: docs/data, {', '.join(file['file'] for file in files)}"]


def file_bars(files, what='random u64'):
    """Draw the largest size of the file with the most programs; of several, the newest."""
    best = max(files, key=lambda f: (len({c['name'] for c in f['cases']}), f['date']))
    nbytes = max(case['input_bytes'] for case in best['cases'])
    cases = sorted((c for c in best['cases'] if c['input_bytes'] == nbytes), key=lambda c: c['median_s'])
    scale = (WIDTH - LEFT - RIGHT) / cases[-1]['median_s']
    copied = next(c['median_s'] for c in cases if c['name'] == 'cp')
    body, values = [], []
    for i, case in enumerate(cases):
        value = seconds(case['median_s'])
        if case['name'] != 'cp':
            value += f"  ({case['median_s'] / copied:.2f} x cp)"
        body += bar(44 + LINE * i, case['name'], case['median_s'] * scale, case['name'], value)
        values.append(f"{case['name']} {value}")
    return picture(f"{size(nbytes)} of {what}, sorted from file to file (shorter is faster)", '; '.join(values),
                   sources([best]), LINE * len(cases), body)


def line_bars(files):
    return file_bars(files, files[-1]['data'])


class Scale:
    """Map values to [at, at + length] on a logarithmic scale."""
    def __init__(self, values, at, length):
        self.least, self.most = min(values), max(values)
        self.at, self.length = at, length

    def __call__(self, value):
        return self.at + self.length * math.log(value / self.least) / math.log(self.most / self.least)


def ticks_of_seconds(values):
    """Return the powers of ten, and three times these, that enclose all values."""
    ticks = [t for e in range(-4, 6) for t in (10.0 ** e, 3 * 10.0 ** e)]
    return [t for t, following in zip(ticks, ticks[1:]) if following > min(values) and t < max(values)] + \
        [next(t for t in ticks if t >= max(values))]


def spread(places, distance):
    """Move labels down until none covers another. Return their places."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    for before, i in zip(order, order[1:]):
        places[i] = max(places[i], places[before] + distance)
    return places


def lines(title, files, where, label_of):
    """Draw seconds against where(case), with one line for each name."""
    cases = [case for file in files for case in file['cases']]
    names = [name for name in COLOURS if any(case['name'] == name for case in cases)]
    height = 300
    x = Scale([where(case) for case in cases], 70, WIDTH - 70 - RIGHT)
    ticks = ticks_of_seconds([case['median_s'] for case in cases])
    y = Scale(ticks, 46 + height - 34, 34 + 10 - height)
    body = []
    for tick in ticks:
        body += [f'<line class="grid" x1="70" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>',
                 text(62, y(tick) + 4, f'{tick:g} s', 'note', 'end')]
    for at in sorted({where(case) for case in cases}):
        body.append(text(x(at), 46 + height - 12, label_of(at), 'note', 'middle'))
    ends, about = [], []
    for name in names:
        points = sorted((where(c), c['median_s']) for c in cases if c['name'] == name)
        places = ' '.join(f'{x(a):.1f},{y(b):.1f}' for a, b in points)
        body.append(f'<polyline class="{colour_class(name)}" points="{places}"/>')
        body += [f'<circle class="{colour_class(name)}" cx="{x(a):.1f}" cy="{y(b):.1f}" r="4"/>' for a, b in points]
        ends.append(y(points[-1][1]) + 4)
        about.append(f'{name}: ' + ', '.join(f'{label_of(a)} {seconds(b)}' for a, b in points))
    for name, at in zip(names, spread(ends, 16)):
        body.append(f'<text x="{WIDTH - RIGHT + 10}" y="{at:.1f}" class="{colour_class(name)}">{html.escape(name)}</text>')
    return picture(title, '; '.join(about), sources(files), height, body)


def by_size(files):
    return lines('Random u64 from file to file: time against size', files, lambda c: c['input_bytes'], size)


def by_threads(files):
    nbytes = files[-1]['cases'][0]['input_bytes']
    return lines(f'{size(nbytes)} of random u64 on the CPU: time against threads', files, lambda c: c['threads'], str)


def kernels(files):
    cases = [case for file in files for case in file['cases']]
    rate = {id(case): case['input_bytes'] / case['median_s'] / 1e9 for case in cases}
    scale = (WIDTH - LEFT - RIGHT) / max(rate.values())
    body, about, y, shape = [], [], 40, None
    for case in cases:
        if shape != (case['element_bytes'], case['input_bytes']):
            shape = (case['element_bytes'], case['input_bytes'])
            y += 22 if about else 6
            n_log2 = round(math.log2(shape[1] / shape[0]))
            body.append(text(20, y + 10, f'2^{n_log2} elements of {shape[0]} bytes'))
            y += 14
        value = f"{rate[id(case)]:.1f} GB/s  {case['median_s'] * 1000:.1f} ms"
        body += bar(y, case['name'], rate[id(case)] * scale, case['name'], value)
        about.append(f"{shape[0]} bytes, {size(shape[1])}, {case['name']}: {value}")
        y += LINE - 4
    return picture('Sorting in device memory, against CUB (longer is faster)', '; '.join(about), sources(files),
                   y - 40, body)


# Labels of the values of --gpus, and of the cases of bench_gpus.py. Other values are not drawn.
SETS = {'0': 'one GPU', '0,0,0,0': 'one GPU, 4 times', '0,1': 'two GPUs', '0,1,2,3': 'four GPUs',
        '0,1,2,3,4,5,6,7': 'eight GPUs'}
SHAPES = {'null': 'to nowhere', 'file': 'into one file', 'spill': 'more than one GPU holds, to nowhere'}


def devices(files):
    """Draw the seconds of each set of GPUs, for each size and shape."""
    cases = [case for file in files for case in file['cases'] if case['name'] in SETS]
    shapes = list(dict.fromkeys((case['input_bytes'], case['shape']) for case in cases))
    most = {nbytes: max(c['median_s'] for c in cases if c['input_bytes'] == nbytes) for nbytes, _ in shapes}
    body, about, y = [], [], 46
    for nbytes, shape in shapes:
        called = SHAPES.get(shape, f'into {shape}')
        ours = [c for c in cases if (c['input_bytes'], c['shape']) == (nbytes, shape)]
        one = next((c['median_s'] for c in ours if c['name'] == '0'), None)
        body.append(text(20, y + 10, f'{size(nbytes)}, {called}'))
        y += 14
        for case in sorted(ours, key=lambda c: list(SETS).index(c['name'])):
            name, s = SETS[case['name']], case['median_s']
            value = seconds(s) + (f'  ({s / one:.2f})' if one and case['name'] != '0' else '')
            body += bar(y, name, s * (WIDTH - LEFT - RIGHT) / most[nbytes], name, value)
            about.append(f'{size(nbytes)} {called}, {name}: {value}')
            y += LINE - 6
        y += 16
    return picture('Random u64 on several GPUs (shorter is faster; in brackets: of one GPU)', '; '.join(about),
                   sources(files), y - 46, body)


PICTURES = {'file-to-file': ('files', file_bars), 'lines': ('lines', line_bars), 'time-by-size': ('files', by_size),
            'threads': ('threads', by_threads), 'kernels': ('kernels', kernels),
            'devices': ('devices', devices)}


def read_series(root):
    series = {}
    for path in sorted((root / 'docs/data').glob('*.json')):
        content = json.loads(path.read_text())
        content['file'] = path.name
        series.setdefault(content['series'], []).append(content)
    return series


def main():
    arguments = [a for a in sys.argv[1:] if a != '--check']
    root = pathlib.Path(arguments[0] if arguments else '.')
    series, wrong = read_series(root), []
    for name, (kind, draw) in PICTURES.items():
        path = root / f'docs/pictures/{name}.svg'
        drawn = draw(series[kind]) if kind in series else None
        if '--check' not in sys.argv:
            if drawn:
                path.write_text(drawn)
        elif (path.read_text() if path.exists() else None) != drawn:
            wrong.append(f'{path}: out of date; run tools/scripts/plot_benchmarks.py')
    print('\n'.join(wrong))
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
