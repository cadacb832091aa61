/*
 * bench - the benchmarks of gsort-bench; each is a command of its own, with its own options
 *
 * argv[0] is the command's name. They return an exit status, and print their own messages.
 */
#pragma once

int bench_file(int argc, char **argv);
