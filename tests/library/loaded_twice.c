/*
 * loaded_twice - a process can load the library twice, as two plugins may do
 *
 * usage: loaded_twice LIBRARY DIRECTORY
 *
 * Loads LIBRARY and a copy in DIRECTORY, because dlopen() does not load a file twice. Both sort at
 * the same time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/gsort.h"

enum { N = 200000 };

/* A loaded copy and its functions. */
struct library_copy {
	void *library;
	int (*open)(struct gsort **ret_sort);
	int (*set)(struct gsort *sort, const char *name, const char *value);
	int (*put)(struct gsort *sort, const void *records, size_t nbytes);
	int (*finish)(struct gsort *sort);
	int (*get)(struct gsort *sort, void *buffer, size_t nbytes, size_t *ret_nbytes);
	const char *(*message)(const struct gsort *sort);
	void (*close)(struct gsort *sort);
	int failed;
};

/* ISO C has no conversion from void * to a function pointer. */
static void find(void *library, const char *name, void *ret_function)
{
	*(void **)ret_function = dlsym(library, name);
	if (!*(void **)ret_function) {
		puts(dlerror());
		exit(1);
	}
}

static void load(const char *path, struct library_copy *copy)
{
	copy->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!copy->library) {
		puts(dlerror());
		exit(1);
	}
	find(copy->library, "gsort_open", &copy->open);
	find(copy->library, "gsort_set", &copy->set);
	find(copy->library, "gsort_put", &copy->put);
	find(copy->library, "gsort_finish", &copy->finish);
	find(copy->library, "gsort_get", &copy->get);
	find(copy->library, "gsort_message", &copy->message);
	find(copy->library, "gsort_close", &copy->close);
}

static int sort_with(const struct library_copy *copy, uint64_t *numbers)
{
	struct gsort *sort;
	size_t n_received;
	int r = copy->open(&sort);

	if (r == 0)
		r = copy->set(sort, "buffer-size", "1M");
	for (uint64_t i = 0; i < N; i++)
		numbers[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	if (r == 0)
		r = copy->put(sort, numbers, N * sizeof *numbers);
	if (r == 0)
		r = copy->finish(sort);
	if (r == 0)
		r = copy->get(sort, numbers, (N + 1) * sizeof *numbers, &n_received);
	if (r < 0)
		puts(copy->message(sort));
	copy->close(sort);
	return r < 0 || n_received != N * sizeof *numbers;
}

static void *use(void *argument)
{
	struct library_copy *copy = argument;
	uint64_t *numbers = malloc((N + 1) * sizeof *numbers);

	copy->failed = !numbers || sort_with(copy, numbers);
	for (size_t i = 1; i < N && !copy->failed; i++)
		copy->failed = numbers[i] < numbers[i - 1];
	free(numbers);
	return NULL;
}

int main(int argc, char **argv)
{
	struct library_copy copies[2] = { 0 };
	pthread_t threads[2];
	char path[4096], command[9000];

	if (argc != 3) {
		fprintf(stderr, "usage: loaded_twice LIBRARY DIRECTORY\n");
		return 2;
	}
	snprintf(path, sizeof path, "%s/loaded_twice.so", argv[2]);
	snprintf(command, sizeof command, "cp '%s' '%s'", argv[1], path);
	if (system(command) != 0)
		return 1;
	load(argv[1], &copies[0]);
	load(path, &copies[1]);
	remove(path);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, use, &copies[i]) != 0)
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	if (copies[0].open == copies[1].open)
		return 1;
	dlclose(copies[1].library);
	use(&copies[0]);
	return copies[0].failed || copies[1].failed;
}
