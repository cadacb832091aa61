/*
 * sort_scenarios_cuda.c - the ways to run gsort on CUDA (see sort_scenarios.h)
 *
 * Without a GPU, kernels run a thousand times slower, so inputs are small. Inputs that must exceed
 * the minimum of device memory have long records, or merge only two runs at a time.
 */
#include "tests/fault/sort_scenarios.h"

const size_t input_n_keys = 84000, few_input_n_keys = 4200;

#define CUDA "--backend=cuda -S 1M --device-memory=1M "
#define PARTS "part0 part1 part2 part3 part4 part5"

const struct sort_scenario sort_scenarios[] = {
	{ .name = "cuda", .expected_output = EXPECTED_FEW, .arguments = CUDA "few -o output" },
	{ .name = "cuda-spill",
	  .expected_output = EXPECTED_LARGE_RECORDS,
	  .arguments = CUDA "-R 400 -k 200:b2 -T tmp/a input -o output",
	  .is_slow = true },
	{ .name = "cuda-partitions",
	  .expected_output = EXPECTED_FEW,
	  .arguments = "--backend=cuda -S 64M --device-memory=16M --partitions=2 few -o output" },
	/* Two devices; and one device that is given twice. */
	{ .name = "cuda-devices",
	  .n_devices = 2,
	  .expected_output = EXPECTED_FEW,
	  .arguments = "--gpus=0,1 -S 64M --device-memory=16M few -o output" },
	{ .name = "cuda-devices-lose-one",
	  .n_devices = 2,
	  .expected_output = EXPECTED_FEW,
	  .arguments = "--gpus=0,1 -S 64M --device-memory=16M few -o output",
	  .loses_one_device = true },
	{ .name = "cuda-device-twice",
	  .expected_output = EXPECTED_LARGE_RECORDS,
	  .arguments =
		  "--gpus=0,0 -S 1M --device-memory=1M -R 400 -k 200:b2 -T tmp/a input -o output",
	  .is_slow = true },
	{ .name = "cuda-merge",
	  .expected_output = EXPECTED_FEW,
	  .arguments = CUDA "-m " PARTS " -o output" },
	/* The runs between the passes are packed. */
	{ .name = "cuda-packed",
	  .expected_output = EXPECTED_FEW_UNIQUE,
	  .arguments = CUDA "-m -u --batch-size=2 --temp-compress=delta -T tmp/a " PARTS
			    " -o output" },
	{ .name = "cuda-records",
	  .expected_output = EXPECTED_FEW_RECORDS,
	  .arguments = CUDA "-R 16 -k 0:b3 few -o output",
	  .is_slow = true },
	{ .name = "cuda-pairs",
	  .expected_output = EXPECTED_FEW_PAIRS,
	  .arguments = CUDA "-R 16 -k 0:u64 few -o output",
	  .is_slow = true },
	/* Ties are broken. */
	{ .name = "cuda-long-keys",
	  .expected_output = EXPECTED_FEW_LONG_KEYS,
	  .arguments = CUDA "-R 40 -k 3:b30 few -o output" },
	{ .name = "cuda-checkpoint",
	  .expected_output = EXPECTED_FEW,
	  .arguments = CUDA "--checkpoint=state few -o output",
	  .has_checkpoint = true,
	  .is_slow = true },
	{ .name = "cuda-reports",
	  .expected_output = EXPECTED_FEW,
	  .arguments = CUDA
	  "--stats-json=reports/s --trace=reports/t --report=reports/r few -o output",
	  .calibrates = true,
	  .is_slow = true },
	{ .name = "cuda-lines",
	  .expected_output = EXPECTED_UNIQUE_LINES,
	  .arguments = "--backend=cuda --lines -u -S 64M --device-memory=16M input -o output" },
	/* Lines with keys; two chunks become runs. */
	{ .name = "cuda-lines-spill",
	  .expected_output = EXPECTED_UNIQUE_LINES,
	  .arguments = CUDA "--lines -u -k1 -T tmp/a input -o output" },
	/* For an input of unknown size the GPU is chosen. */
	{ .name = "auto",
	  .expected_output = EXPECTED_LARGE_RECORDS,
	  .arguments = "-R 400 -k 200:b2 -S 1M --device-memory=1M -T tmp/a",
	  .from_pipe = true,
	  .to_pipe = true,
	  .has_device_fallback = true },
};
const size_t n_sort_scenarios = sizeof sort_scenarios / sizeof *sort_scenarios;
