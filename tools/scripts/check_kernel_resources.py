#!/usr/bin/env python3
"""check_kernel_resources - check that every kernel fits each GPU architecture

usage: check_kernel_resources.py NVCC LAUNCHES [ARCHITECTURE]...

NVCC is the compiler of the CUDA toolkit. LAUNCHES is the program tests/kernels/launches, which
prints the threads and the shared memory of each kernel's launch. ARCHITECTURE is a number such as
75 (default: all that the compiler supports). Every kernel is compiled for every architecture, which
takes minutes. So this check is a benchmark: meson test --benchmark architectures.

Prints for each architecture the four kernels with the lowest occupancy, and kernels that spill
registers. Exits with 1 if a kernel does not compile, exceeds the limits of an architecture, or is
unknown to LAUNCHES.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Limits that all architectures share: registers of a multiprocessor and of a thread, threads of a
# block.
REGISTERS, REGISTERS_OF_THREAD, THREADS_OF_BLOCK = 65536, 255, 1024
# Limits by architecture (CUDA C++ Programming Guide, compute capabilities): KiB of shared memory of
# a block and of a multiprocessor, threads of a multiprocessor. LEAST is a lower bound for other
# architectures.
LIMITS = {
    75: (64, 64, 1024), 80: (163, 164, 2048), 87: (163, 164, 1536),
    90: (227, 228, 2048), 100: (227, 228, 2048), 103: (227, 228, 2048), 110: (227, 228, 1536),
}
LEAST = (99, 100, 1536)


def known_architectures(nvcc):
    listed = subprocess.run([nvcc, '--list-gpu-arch'], check=True, capture_output=True, text=True)
    return sorted(int(name.removeprefix('compute_')) for name in listed.stdout.split())


def compile_one(nvcc, source, architecture, directory):
    """Return kernel -> (registers, static shared bytes, spilled bytes) for a source file."""
    made = directory / f'{source.stem}.{architecture}.cubin'
    command = [nvcc, '-std=c++17', '-O3', '-cubin', '--resource-usage', f'-I{ROOT}',
               f'-arch=sm_{architecture}', str(source), '-o', str(made)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f'{source}: sm_{architecture}:\n{done.stderr}')
    made.unlink()
    used = {}
    for text in re.split(r"Compiling entry function '", done.stdout + done.stderr)[1:]:
        name = text[:text.index("'")]
        registers = re.search(r'Used (\d+) registers', text)
        shared = re.search(r'(\d+) bytes smem', text)
        spilled = re.findall(r'(\d+) bytes spill stores', text)
        used[name] = (int(registers[1]), int(shared[1]) if shared else 0, sum(map(int, spilled)))
    return used


def launches(program, architecture):
    """Return kernel -> (threads, shared bytes). Names of static kernels are not mangled."""
    completed = subprocess.run([program, str(architecture)], check=True, capture_output=True, text=True)
    rows = (line.split() for line in completed.stdout.splitlines())
    return {name: (int(threads), int(nbytes)) for name, threads, nbytes in rows}


def launch_of(name, known):
    if name in known:
        return known[name]
    inner = [plain for plain in known if f'{len(plain)}{plain}' in name]
    return known[inner[0]] if inner else None


def round_up(n, to):
    return -(-n // to) * to


def blocks_at_once(limits, registers, threads, nbytes):
    of_block, of_all, most_threads = limits
    taken = 1024 if of_all > 64 else 0  # reserved by the system in each block
    if registers > REGISTERS_OF_THREAD or threads > THREADS_OF_BLOCK or nbytes > of_block << 10:
        return 0
    warps = round_up(threads, 32) // 32
    return min(REGISTERS // (warps * round_up(registers * 32, 256)), most_threads // round_up(threads, 32),
               (of_all << 10) // (nbytes + taken) if nbytes else 32)


def check_architecture(architecture, used, known):
    """Return the violations on an architecture. Print the kernels with the lowest occupancy."""
    limits, violations, rows = LIMITS.get(architecture, LEAST), [], []
    for name, (registers, static, spilled) in used.items():
        launch = launch_of(name, known)
        if not launch:
            if 'any_kernel' not in name:
                violations.append(f'{name}: LAUNCHES does not launch it')
            continue
        threads, nbytes = launch[0], launch[1] + static
        blocks = blocks_at_once(limits, registers, threads, nbytes)
        rows.append((blocks * threads, name, registers, threads, nbytes, blocks))
        if not blocks:
            violations.append(f'{name}: {registers} registers x {threads} threads, {nbytes} bytes')
        if spilled:
            print(f'sm_{architecture}: {demangled(name)}: spills {spilled} bytes of registers')
    for _, name, registers, threads, nbytes, blocks in sorted(rows)[:4]:
        print(f'sm_{architecture:<4} {demangled(name):40} {registers:3} registers x {threads:3} threads, '
              f'{nbytes:6} bytes: {blocks} blocks')
    print(f'sm_{architecture:<4} {len(rows)} kernels', flush=True)
    return [f'sm_{architecture}: {violation}' for violation in violations]


def demangled(name):
    plain = subprocess.run(['c++filt', name], capture_output=True, text=True).stdout.strip() or name
    return re.sub(r'^void |\(.*|.*::', '', plain)


def main():
    nvcc, program, *wanted = sys.argv[1:]
    sources = sorted((ROOT / 'kernels').rglob('*.cu'))
    violations = []
    with tempfile.TemporaryDirectory() as temporary, \
            concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for architecture in map(int, wanted or known_architectures(nvcc)):
            parts = pool.map(lambda source: compile_one(nvcc, source, architecture, pathlib.Path(temporary)),
                             sources)
            used = {name: use for part in parts for name, use in part.items()}
            violations += check_architecture(architecture, used, launches(program, architecture))
    print('\n'.join(violations))
    return bool(violations)


if __name__ == '__main__':
    sys.exit(main())
