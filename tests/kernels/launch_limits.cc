/*
 * launch_limits.cc - check that each kernel can be launched on each architecture
 *
 * usage: launches [ARCHITECTURE]
 *
 * Compiles the kernels' own source with its own geometry, and lists launches instead of making
 * them. It needs neither a GPU nor a CUDA compiler. With an architecture (75) it prints the list:
 * kernel, threads of a block, and bytes of shared memory. tools/scripts/check_kernel_resources.py
 * adds the registers, which a compiler reports.
 */
#include "tests/kernels/cuda_on_cpu.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdio.h>

#include <map>
#include <string>

extern "C" {
#include <cmocka.h>
}

/* The shared memory that a block has without requesting more. */
static const size_t granted_nbytes = 48 << 10;

struct launch_needs {
	unsigned n_threads;
	size_t shared_nbytes;
	size_t asked_nbytes;   /* requested for the next launch */
	size_t unasked_nbytes; /* of a launch that needed more than it requested; 0: none */
};

static struct {
	int architecture;
	std::map<std::string, launch_needs> needs;
} launches_seen;

/*
 * Return the name of a kernel as the compiler spells it, or, if it is local to its file, as in the
 * source.
 */
static std::string name_of(const void *kernel, const char *written)
{
	const std::string name = written;
	Dl_info info;

	if (dladdr(kernel, &info) && info.dli_saddr == kernel)
		return info.dli_sname;
	return name.substr(0, name.find('<'));
}

template <class Kernel, class... Args>
static void note(Kernel *kernel, const char *written, unsigned n_blocks, unsigned n_threads,
		 size_t shared_nbytes, const Args &...)
{
	struct launch_needs *need = &launches_seen.needs[name_of((const void *)kernel, written)];

	assert_true(n_blocks > 0 && n_blocks < 1u << 31);
	need->n_threads = max(need->n_threads, n_threads);
	need->shared_nbytes = max(need->shared_nbytes, shared_nbytes);
	if (shared_nbytes > max(granted_nbytes, need->asked_nbytes))
		need->unasked_nbytes = shared_nbytes;
}

template <class Kernel>
static cudaError_t note_attribute(Kernel *kernel, const char *written, int attribute, int value)
{
	if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
		launches_seen.needs[name_of((const void *)kernel, written)].asked_nbytes =
			(size_t)value;
	return cudaSuccess;
}

#undef LAUNCH
#define LAUNCH(kernel, n_blocks, n_threads, shared_nbytes, stream, ...)                            \
	((void)(stream), note(kernel, #kernel, n_blocks, n_threads, shared_nbytes, __VA_ARGS__))
#define cudaFuncSetAttribute(kernel, attribute, value)                                             \
	note_attribute(kernel, #kernel, attribute, value)

extern "C" cudaError_t cudaGetLastError()
{
	return cudaSuccess;
}

extern "C" cudaError_t cudaMemsetAsync(void *, int, size_t, CUstream_st *)
{
	return cudaSuccess;
}

extern "C" cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *)
{
	attributes->ptxVersion = launches_seen.architecture;
	return cudaSuccess;
}

#include "kernels/architecture.cu"

#include "kernels/sort/tile_sort.cu"

#include "kernels/sort/tile_cuts.cu"

#include "kernels/sort/merge_pass.cu"

#include "kernels/sort/sort.cu"

#include "kernels/sort/merge.cu"

#include "kernels/sort/cut_and_sample.cu"

#include "kernels/keys/encode.cu"

#include "kernels/keys/decode.cu"

#include "kernels/keys/unique.cu"

#include "kernels/keys/delta.cu"

#include "kernels/records/items.cu"

#include "kernels/records/project.cu"

#include "kernels/records/make_elements.cu"

#include "kernels/records/tie_break.cu"

#include "kernels/records/head_flags.cu"

#include "kernels/records/gather.cu"

#include "kernels/lines/line_elements.cu"

#include "kernels/lines/gather_lines.cu"

#include "kernels/records/pairs.cu"

/* Device memory that is never read. */
alignas(256) static unsigned char memory[4096];
static const uint64_t many = 1 << 24;

static void launch_key_kernels(uint32_t nbytes)
{
	const kernel_slice slices[] = { { memory, many }, { memory, many }, { memory, 1 } };
	const kernel_packed_block block = { memory, memory, 1000, 4096 };
	kernel_decode_result result;
	kernel_unique_result left;
	uint32_t numbers[4];
	encode_task encode = {};
	decode_task decode = {};
	unique_task unique = {};
	delta_pack_task pack = {};
	delta_unpack_task unpack = {};

	assert_int_equal(launch_sort(memory, many, nbytes, memory, NULL), 0);
	assert_int_equal(launch_merge(slices, 3, nbytes, memory, memory, NULL), 0);
	assert_int_equal(launch_cut(slices, 3, nbytes, { 1, 0 }, 1, NULL, NULL), 0);
	assert_int_equal(launch_sample(memory, many, 1000, nbytes, NULL, NULL), 0);
	for (uint8_t record_nbytes = nbytes - 1; record_nbytes <= nbytes; record_nbytes++) {
		encode.encoding.record_nbytes = record_nbytes;
		encode.encoding.element_nbytes = (uint8_t)nbytes;
		encode.n = decode.n = unique.n = many;
		encode.records = encode.elements = encode.scratch = memory;
		decode.elements = decode.records = decode.scratch = memory;
		unique.elements = unique.scratch = memory;
		decode.encoding = unique.encoding = encode.encoding;
		decode.result = &result;
		unique.result = &left;
		assert_int_equal(launch_encode(&encode, NULL), 0);
		assert_int_equal(launch_decode(&decode, NULL), 0);
		assert_int_equal(launch_unique(&unique, NULL), 0);
	}
	pack.elements = pack.packed = pack.scratch = memory;
	pack.n = many;
	pack.element_nbytes = unpack.element_nbytes = nbytes;
	pack.block_n = 4096;
	pack.packed_nbytes = numbers;
	unpack.blocks = &block;
	unpack.n_blocks = 1;
	unpack.damaged = numbers;
	unpack.tables = memory;
	assert_int_equal(launch_delta_pack(&pack, NULL), 0);
	assert_int_equal(launch_delta_unpack(&unpack, NULL), 0);
}

static void launch_pairs()
{
	const kernel_slice slices[] = { { memory, many }, { memory, many } };
	unpack_pairs_task unmake = {};
	kernel_gather_result result;
	kernel_items items = {};

	unmake.n = many;
	unmake.result = &result;
	assert_int_equal(launch_sort_pairs(memory, many, memory, NULL), 0);
	assert_int_equal(launch_merge_pairs(slices, 2, memory, memory, NULL), 0);
	assert_int_equal(launch_make_pairs(&items, &unmake.shape, many, memory, NULL, NULL), 0);
	assert_int_equal(launch_unpack_pairs(&unmake, NULL), 0);
}

/* Launch gathers of whole items, and of items that are shortened and counted. */
static void launch_gathers(const kernel_items *items)
{
	kernel_gather_result result;
	gather_task task = {};

	task.items = *items;
	task.elements = task.out = memory;
	task.element_nbytes = 8;
	task.n = task.limit = many;
	task.out_nbytes = items->item_nbytes;
	task.result = &result;
	assert_int_equal(launch_gather(&task, NULL), 0);
	task.has_count = true;
	task.heads.equal = (const uint32_t *)(const void *)memory;
	task.counts = (uint64_t *)(void *)memory;
	assert_int_equal(launch_gather(&task, NULL), 0);
}

static void launch_items(uint32_t item_nbytes)
{
	const kernel_slice slice = { memory, many };
	key_field field = {};
	kernel_items items = {};
	kernel_head_flags heads;

	field.nbytes = 4;
	items.item_nbytes = items.body_nbytes = item_nbytes;
	items.keys = { &field, 1, 4 };
	assert_int_equal(launch_prepare_items(&items, &slice, 1, memory, NULL), 0);
	for (uint32_t nbytes = 8; nbytes <= 16; nbytes += 8) {
		digest digest;

		assert_int_equal(launch_make_elements(&items, many, nbytes, memory, &digest, NULL),
				 0);
		assert_int_equal(launch_make_elements(&items, many, nbytes, memory, NULL, NULL), 0);
		assert_int_equal(launch_flag_heads(&items, memory, nbytes, many, false, memory,
						   &heads, NULL),
				 0);
	}
	launch_gathers(&items);
}

static void launch_ties(kernel_tie_keys keys)
{
	tie_break_task refine = {};

	refine.n = refine.n_ties = many;
	refine.sort_scratch = memory;
	assert_int_equal(launch_count_ties(keys, memory, many, memory, NULL, NULL), 0);
	assert_int_equal(launch_break_ties(keys, &refine, NULL), 0);
	assert_int_equal(launch_find_common_prefix(keys, memory, many, 0, NULL, NULL), 0);
}

static void launch_lines()
{
	const kernel_lines lines = {};
	find_lines_task find = {};
	order_lines_task order = {};
	gather_lines_task gather = {};

	find.nbytes = order.n = gather.n = many;
	find.scratch = order.scratch = memory;
	gather.n_segments = 1000;
	assert_int_equal(launch_find_lines(&find, NULL), 0);
	assert_int_equal(launch_make_line_elements(&lines, many, NULL, NULL, NULL), 0);
	launch_ties({ NULL, &lines });
	for (bool unique : { false, true }) {
		order.unique = unique;
		assert_int_equal(launch_order_lines(&order, NULL), 0);
	}
	assert_int_equal(launch_measure_lines(&lines, NULL, many, NULL, NULL, NULL), 0);
	for (uint64_t nbytes : { many, UINT64_C(0) }) {
		gather.longest_nbytes = nbytes;
		assert_int_equal(launch_gather_lines(&gather, NULL), 0);
	}
}

static void launch_records()
{
	const kernel_projection_copy piece = { 0, 0, 16 };
	kernel_items items = {};
	projection_task intake = {};
	cut_items_task cut = {};

	intake.n = cut.n = many;
	intake.copies = &piece;
	intake.n_copies = items.k = cut.items.k = 1;
	intake.tables = memory;
	intake.record_nbytes = intake.item_nbytes = 16;
	items.keys.key_nbytes = 64;
	cut.key = memory;
	cut.scratch = memory;
	cut.key_nbytes = 8;
	assert_int_equal(launch_project(&intake, NULL), 0);
	launch_ties({ &items, NULL });
	assert_int_equal(launch_cut_items(&cut, NULL), 0);
	assert_int_equal(launch_sample_items(&items, many, 1000, NULL, NULL), 0);
}

/*
 * Launch all kernels. Items of several lengths need different amounts of memory; long ones are not
 * staged.
 */
static void launch_all(int architecture)
{
	launches_seen.architecture = architecture;
	launches_seen.needs.clear();
	for (uint32_t nbytes = 4; nbytes <= 16; nbytes *= 2)
		launch_key_kernels(nbytes);
	launch_pairs();
	for (uint32_t item_nbytes = 1; item_nbytes <= 600; item_nbytes++)
		launch_items(item_nbytes);
	launch_items(2048);
	launch_items(2049);
	launch_records();
	launch_lines();
}

/*
 * Use the lowest limits of the architectures that the code for 7.5, or for 8.0 and later, runs on.
 */
static void blocks_fit_into_every_architecture(void **)
{
	for (int architecture : { 75, 80, 86, 90, 100, 120 }) {
		launch_all(architecture);
		assert_true(launches_seen.needs.size() > 40);
		for (const auto &[name, need] : launches_seen.needs) {
			if (need.n_threads > 1024 ||
			    need.shared_nbytes > shared_limit_nbytes(shared_limit_of(architecture)))
				fail_msg("%d: %s: %u threads, %zu bytes", architecture,
					 name.c_str(), need.n_threads, need.shared_nbytes);
		}
	}
}

static void blocks_with_much_memory_have_asked_for_it(void **)
{
	for (int architecture : { 75, 90 }) {
		launch_all(architecture);
		for (const auto &[name, need] : launches_seen.needs) {
			if (need.unasked_nbytes)
				fail_msg("%d: %s: %zu bytes", architecture, name.c_str(),
					 need.unasked_nbytes);
		}
	}
}

/* Without smaller tiles, some kernels would need twice the memory of 7.5. */
static void tiles_are_smaller_where_there_is_less_memory(void **)
{
	size_t max_nbytes[2] = {};

	for (unsigned i = 0; i < 2; i++) {
		launch_all(i ? 80 : 75);
		for (const auto &[name, need] : launches_seen.needs)
			max_nbytes[i] = max(max_nbytes[i], need.shared_nbytes);
	}
	assert_true(max_nbytes[0] <= 64 << 10);
	assert_true(max_nbytes[1] > 64 << 10);
}

static int print(int architecture)
{
	launch_all(architecture);
	for (const auto &[name, need] : launches_seen.needs)
		printf("%s %u %zu\n", name.c_str(), need.n_threads, need.shared_nbytes);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_fit_into_every_architecture),
		cmocka_unit_test(blocks_with_much_memory_have_asked_for_it),
		cmocka_unit_test(tiles_are_smaller_where_there_is_less_memory),
	};

	if (argc > 2 || (argc == 2 && atoi(argv[1]) == 0)) {
		fprintf(stderr, "usage: launches [ARCHITECTURE]\n");
		return 2;
	}
	if (argc > 1)
		return print(atoi(argv[1]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
