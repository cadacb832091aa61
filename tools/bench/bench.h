/*
 * bench - the benchmarks of gsort-bench; each is a command of its own, with its own options
 *
 * argv[0] is the command's name. They return an exit status, and print their own messages.
 */
#pragma once

/* gsort against cp and text tools, file to file. */
int bench_file(int argc, char **argv);

/* What gsort predicts against what it takes. */
int bench_estimate(int argc, char **argv);

/* The kernels of the CPU back end, for plain keys and for records. */
int bench_cpu(int argc, char **argv);
int bench_records(int argc, char **argv);

/* The disk and the page cache. */
int bench_io(int argc, char **argv);
