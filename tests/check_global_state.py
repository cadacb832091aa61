#!/usr/bin/env python3
"""check_global_state - what is to become a library has no state that can change

usage: check_global_state.py OBJDUMP ARCHIVE...

Two sorts in one process share what is static. So of each object in the archives every symbol in a section
that can be written to is compared with the list below, which says why it may be there; what is constant
but for relocations (.data.rel.ro) cannot be written to. An offence is a line.
"""
import re
import subprocess
import sys

ALLOWED = {
    # Whose messages the calling thread's are: each thread has its own.
    ('diagnostics.c', '.tbss', 'current_diagnostics'),
    # What the processor can do, found out once and the same for ever.
    ('vqsort.cc', '.bss', '_ZZ19vqsort_is_supportedE12is_supported'),
    ('vqsort.cc', '.bss', '_ZGVZ19vqsort_is_supportedE12is_supported'),
}
WRITABLE = re.compile(r'^(\.data|\.bss|\.tdata|\.tbss)(?!\.rel\.ro)|^\*COM\*$')
OF_EXCEPTIONS = 'DW.ref.' # what the compiler has for those of C++
SYMBOL = re.compile(r'^[0-9a-f]+ (.{7}) (\S+)\t[0-9a-f]+ +(?:\.hidden )?(\S+)$')


def symbols(objdump, archive):
    """(source, section, name) of what an archive's objects define"""
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
    n, offences = 0, []
    for archive in archives:
        for source, section, name in symbols(objdump, archive):
            n += 1
            if WRITABLE.match(section) and not name.startswith(OF_EXCEPTIONS) \
                    and not is_allowed(source, section, name):
                offences.append(f'{source}: {name} in {section} can change')
    if n == 0:
        offences.append('no symbols were seen')
    print('\n'.join(offences))
    return 1 if offences else 0


if __name__ == '__main__':
    sys.exit(main())
