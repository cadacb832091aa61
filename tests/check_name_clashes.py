#!/usr/bin/env python3
"""check_name_clashes - check that no symbol has the name of a symbol of a linked library

usage: check_name_clashes.py NM PROGRAM ARCHIVE...

ldd PROGRAM lists the libraries. If a library and the product define the same name, the library
calls the function of the product, and a static program cannot be linked. Libraries of the compiler
and the system are skipped, because C allows programs to redefine their names. Prints one line for
each clash and exits with 1 if there is any.
"""
import re
import subprocess
import sys

SYSTEM = re.compile(r'/(?:libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux[^/]*|ld-musl[^/]*|'
                    r'lib(?:asan|ubsan|tsan|lsan))[.-][^/]*$')


def names_of(nm, *arguments):
    output = subprocess.run([nm, '--defined-only', '--extern-only', *arguments], check=True,
                          capture_output=True, text=True).stdout
    found = (re.match(r'[0-9a-f]+ [TBDRVWGS] ([^@\s]+)', line) for line in output.splitlines())
    return {match[1] for match in found if match}


def main():
    nm, program, *archives = sys.argv[1:]
    output = subprocess.run(['ldd', program], check=True, capture_output=True, text=True).stdout
    libraries = [path for path in re.findall(r'=> (/\S+)', output) if not SYSTEM.search(path)]
    ours = names_of(nm, *archives)
    violations = [f'{name}: is defined in {library}, too'
                for library in libraries for name in sorted(ours & names_of(nm, '-D', library))
                if not name.startswith('_Z')]
    print('\n'.join(violations))
    return bool(violations) or not ours


if __name__ == '__main__':
    sys.exit(main())
