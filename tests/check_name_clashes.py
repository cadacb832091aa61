#!/usr/bin/env python3
"""check_name_clashes - no function of ours has the name of one of a library that is linked

usage: check_name_clashes.py NM PROGRAM ARCHIVE...

PROGRAM tells, by ldd, which libraries there are. Where a library calls a function of its own by a name that
ours has, too, it gets ours; and a static program cannot be linked at all. The libraries of the compiler and of
the system give way to other names, as C has it. An offence is a line.
"""
import re
import subprocess
import sys

SYSTEM = re.compile(r'/(?:libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[^/]*|ld-musl[^/]*|'
                    r'lib(?:asan|ubsan|tsan|lsan))[.-][^/]*$')


def names_of(nm, *arguments):
    told = subprocess.run([nm, '--defined-only', '--extern-only', *arguments], check=True,
                          capture_output=True, text=True).stdout
    found = (re.match(r'[0-9a-f]+ [TBDRVWGS] ([^@\s]+)', line) for line in told.splitlines())
    return {match[1] for match in found if match}


def main():
    nm, program, *archives = sys.argv[1:]
    told = subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout
    libraries = [path for path in re.findall(r'=> (/\S+)', told) if not SYSTEM.search(path)]
    ours = names_of(nm, *archives)
    offences = [f'{name}: is a name of {library}, too'
                for library in libraries for name in sorted(ours & names_of(nm, '-D', library))
                if not name.startswith('_Z')]
    print('\n'.join(offences))
    return bool(offences) or not ours


if __name__ == '__main__':
    sys.exit(main())
