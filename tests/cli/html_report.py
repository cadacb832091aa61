#!/usr/bin/env python3
"""html_report - check that a report is a self-contained HTML page that agrees with the statistics

usage: html_report.py PAGE STATS
"""
import html.parser
import json
import re
import sys

import assertions
from assertions import claim

VOID = {'meta', 'br', 'hr', 'col', 'link', 'img', 'input'}


class Page(html.parser.HTMLParser):
    """The contents of the page. Reports elements that are not closed in order."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.headings, self.text = [], [], [], ''
        self.ids, self.references = [], []
        self.sections, self.links = [], []
        self.pictures, self.tables = [], []
        self.declarations = []

    def handle_decl(self, declaration):
        self.declarations.append(declaration)

    def handle_starttag(self, name, attributes):
        attributes = dict(attributes)
        self.elements.append((name, attributes))
        if 'id' in attributes:
            self.ids.append(attributes['id'])
        for key in ('aria-labelledby', 'aria-describedby'):
            self.references += attributes.get(key, '').split()
        if attributes.get('href', '').startswith('#'):
            self.references.append(attributes['href'][1:])
            self.links.append(attributes['href'][1:])
        if name == 'section':
            self.sections.append(attributes.get('aria-labelledby'))
        if name == 'svg':
            self.pictures.append(set())
        if name == 'table':
            self.tables.append(set())
        if self.pictures and 'svg' in self.open:
            self.pictures[-1].add(name)
        if self.tables and 'table' in self.open:
            self.tables[-1].add(name)
        if re.fullmatch('h[1-6]', name):
            self.headings.append(int(name[1]))
        if name not in VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        if not self.open or self.open.pop() != name:
            claim(False, f'</{name}> at {self.getpos()} closes no open element')

    def handle_data(self, text):
        if 'style' not in self.open:
            self.text += text
        if self.open and self.open[-1] == 'dt':
            claim(not re.search('[0-9]', text), f'{text} is the name of a figure')


def check_structure(page):
    claim(not page.open, f'not closed: {page.open}')
    claim(page.declarations == ['DOCTYPE html'], 'a doctype')
    names = [name for name, _ in page.elements]
    claim(names[0] == 'html' and page.elements[0][1].get('lang') == 'en', 'a language')
    claim(names.count('title') > 1 and names.count('main') == 1, 'a title, and one main part')
    claim(len(set(page.ids)) == len(page.ids), 'duplicate id')
    claim(set(page.references) <= set(page.ids),
          f'dangling references: {set(page.references) - set(page.ids)}')


def check_styles(page, source):
    styled = set(re.findall(r'\.([a-z][\w-]*)', source[source.index('<style'):source.index('</style>')]))
    used = {name for _, attributes in page.elements for name in attributes.get('class', '').split()}
    claim(used <= styled, f'classes without a style: {used - styled}')
    claim(page.links == page.sections, f'links to {page.links}, sections {page.sections}')
    claim(page.headings[0] == 1 and page.headings.count(1) == 1, 'one first heading')
    claim(all(b <= a + 1 for a, b in zip(page.headings, page.headings[1:])),
          f'skipped heading levels: {page.headings}')


def check_pictures(page):
    for name, attributes in page.elements:
        if name == 'svg':
            claim(attributes.get('role') == 'img' and 'aria-labelledby' in attributes,
                  f'a picture without a role or label: {attributes}')
        if name == 'figure':
            claim('tabindex' in attributes and 'aria-label' in attributes,
                  'a figure that cannot be scrolled with the keyboard')
        if name == 'th':
            claim('scope' in attributes, 'a table heading without a scope')
        claim(not any(key.startswith('on') for key in attributes), f'a script: {attributes}')
    for inside in page.pictures:
        claim({'title', 'desc'} <= inside, 'a picture without a title and a description')
    for inside in page.tables:
        claim({'caption', 'thead', 'tbody', 'th'} <= inside, 'a table without a caption or heads')
    claim(len(page.tables) >= len(page.pictures), 'a picture without a table')


def check_self_contained(page, text):
    names = {name for name, _ in page.elements}
    claim(not names & {'script', 'link', 'img', 'iframe', 'object', 'image', 'use'},
          f'elements that load files: {names}')
    claim(not re.search(r'https?:|url\(|@import|src=', text), 'a reference to another file')
    claim('prefers-color-scheme:dark' in text and '@media print' in text, 'themes, and paper')
    claim(len(text.encode()) < 300000, f'{len(text.encode())} bytes')
    claim(not re.search(r'[\x00-\x09\x0b-\x1f\x7f]', text), 'a control character')
    claim(not re.search(r'="[^"]*\b(nan|inf)\b', text), 'an invalid number')


def time_text(s):
    whole = int(s + 0.5)
    if whole >= 60:
        return f'{whole // 60}:{whole % 60:02} min'
    return f'{s:.{3 if s < 1 else 2 if s < 10 else 1}f} s'


def has_time(page, s):
    """Return whether the page has the time. The statistics are rounded to microseconds."""
    return any(time_text(s + more) in page.text for more in (0, -1e-6, 1e-6))


def check_figures(page, stats):
    claim(f'{stats["records_in"]:,} records' in page.text, 'the number of records')
    claim(has_time(page, stats['elapsed_s']), 'the elapsed time')
    claim(stats['version'] in page.text, 'the version')
    for phase in stats['phases']:
        claim(has_time(page, phase['elapsed_s']), f'the time of {phase["name"]}')
        if phase['bottleneck']:
            claim(f'{phase["bottleneck"]} was the bottleneck' in page.text, phase['bottleneck'])


def main():
    with open(sys.argv[1], 'rb') as file:
        text = file.read().decode('utf-8')
    with open(sys.argv[2]) as file:
        stats = json.load(file)
    page = Page()
    page.feed(text)
    page.close()
    page.text = re.sub(r'\s+', ' ', page.text)
    check_structure(page)
    check_styles(page, text)
    check_pictures(page)
    check_self_contained(page, text)
    check_figures(page, stats)
    return assertions.status()


if __name__ == '__main__':
    sys.exit(main())
