/*
 * bench_kernels - time the kernels against CUB and Thrust on data that is in device memory
 */
#pragma once

/*
 * argv[0]: the name of a benchmark; then options (see
 * --help). Returns an exit status. Everything is checked for correctness before it is timed.
 */
int bench_kernels(int argc, char **argv);
