/*
 * warm_memory - touch free memory before a program is timed (see warm_memory.h)
 */
#include "tools/bench/warm_memory.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/system_limits.h"

static void touch(uint64_t nbytes)
{
	volatile char *memory = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise((void *)memory, nbytes, MADV_HUGEPAGE);
	for (uint64_t offset = 0; offset < nbytes; offset += 4096)
		memory[offset] = 1;
}

void warm_memory(uint64_t nbytes)
{
	const uint64_t max_nbytes = memory_available_nbytes("") / 2;
	const pid_t pid = fork();

	if (pid == 0) {
		touch(nbytes < max_nbytes ? nbytes : max_nbytes);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}
