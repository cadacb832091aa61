#!/usr/bin/env python3
"""check_global_state - check that the library has no mutable global state

usage: check_global_state.py OBJDUMP ARCHIVE...

All sorts of a process would share static variables. Each symbol of the archives in a writable
section must be in ALLOWED, with a reason. Data that is constant after relocation (.data.rel.ro) is
not writable. Prints one line for each violation and exits with 1 if there is any.
"""
import re
import subprocess
import sys

ALLOWED = {
    # The diagnostics of the calling thread's job: one variable per thread.
    ('diagnostics.c', '.tbss', 'current_diagnostics'),
    # Features of the processor: detected once, then constant.
    ('vqsort.cc', '.bss', '_ZZ19vqsort_is_supportedE12is_supported'),
    ('vqsort.cc', '.bss', '_ZGVZ19vqsort_is_supportedE12is_supported'),
}
WRITABLE = re.compile(r'^(\.data|\.bss|\.tdata|\.tbss)(?!\.rel\.ro)|^\*COM\*$')
OF_EXCEPTIONS = 'DW.ref.' # generated for C++ exceptions
SYMBOL = re.compile(r'^[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+ +(?:\.hidden )?(\S+)$')


def symbols(objdump, archive):
    """Yield (source, section, name) of each symbol that the objects of an archive define."""
    text = subprocess.run([objdump, '-t', archive], check=True, capture_output=True, text=True).stdout
    source = '?'
    for line in text.splitlines():
        member = re.match(r'^(\S+)\.o: +file format', line)
        if member:
            source = member.group(1).rsplit('/', 1)[-1]
        symbol = SYMBOL.match(line)
        if symbol and 'd' not in symbol.group(1):
            yield source, symbol.group(2), symbol.group(3)


def is_allowed(source, section, name):
    # Meson names the object of src/base/diagnostics.c src_base_diagnostics.c.o.
    return any(('_' + source).endswith('_' + file) and (section, name) == (of_section, symbol)
               for file, of_section, symbol in ALLOWED)


def main():
    objdump, archives = sys.argv[1], sys.argv[2:]
    n, violations = 0, []
    for archive in archives:
        for source, section, name in symbols(objdump, archive):
            n += 1
            if WRITABLE.match(section) and not name.startswith(OF_EXCEPTIONS) \
                    and not is_allowed(source, section, name):
                violations.append(f'{source}: {name} in {section} is mutable')
    if n == 0:
        violations.append('no symbols found')
    print('\n'.join(violations))
    return 1 if violations else 0


if __name__ == '__main__':
    sys.exit(main())
