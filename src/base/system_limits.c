/*
 * system_limits - what memory and how many processors this process may use (see system_limits.h)
 *
 * A control group is bounded by its own limits and by those of every group above it, so the path
 * from /proc/self/cgroup is walked up to the root of the mounted tree. Inside a container that root
 * is often the container's own group while the path is that of the host, of which nothing is
 * mounted: then the files on the way do not exist, limit nothing, and the root decides.
 *
 * The limits are read from /proc/self/limits, not asked for with getrlimit(), so that a made-up
 * tree is complete.
 */
#include "src/base/system_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NO_LIMIT UINT64_MAX
#define UNKNOWN_NBYTES (UINT64_C(64) << 20)

/* The longest of the files, memory.stat, has some 4 KiB. */
struct file_text {
	char bytes[8192];
};

/* What limits the processes of the group whose files are in `dir`; NO_LIMIT if nothing does. */
typedef uint64_t measure_fn(const char *root, const char *dir);

/* A place where the files of a controller's groups may be mounted. */
struct hierarchy {
	const char *controller; /* "" for v2 */
	const char *mount;
	measure_fn *measure;
};

static uint64_t min_limit(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* a - b, not below 0. */
static uint64_t subtract_clamped(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/*
 * Read what root/dir/name begins with, as a string of less than `size` bytes; of an unreadable file
 * that is "".
 */
static bool read_file_prefix(const char *root, const char *dir, const char *name, char *ret_bytes,
			     size_t size)
{
	char path[PATH_MAX];
	size_t nbytes = 0;
	ssize_t n;
	int fd;

	ret_bytes[0] = '\0';
	if (snprintf(path, sizeof path, "%s%s/%s", root, dir, name) >= (int)sizeof path)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	do {
		n = read(fd, ret_bytes + nbytes, size - 1 - nbytes);
		nbytes += n > 0 ? (size_t)n : 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	close(fd);
	ret_bytes[nbytes] = '\0';
	return n == 0;
}

static bool read_file_text(const char *root, const char *dir, const char *name,
			   struct file_text *ret_text)
{
	return read_file_prefix(root, dir, name, ret_text->bytes, sizeof ret_text->bytes);
}

/* The number that `text` begins with, after blanks; `otherwise` if there is none ("max", "-1"). */
static uint64_t parse_number(const char *text, uint64_t default_value)
{
	text += strspn(text, " \t");
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : default_value;
}

/* The text behind `label`, which begins a line; "" if there is no such line. */
static const char *find_label_value(const struct file_text *text, const char *label)
{
	const size_t n = strlen(label);
	const char *line = text->bytes;

	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, label, n))
			return line + n;
	}
	return "";
}

static uint64_t read_number(const char *root, const char *dir, const char *name,
			    uint64_t default_value)
{
	char text[64];

	read_file_prefix(root, dir, name, text, sizeof text);
	return parse_number(text, default_value);
}

/* Memory of a group in use, less the page cache that the kernel would drop first. */
static uint64_t group_used_nbytes(const char *root, const char *dir, const char *usage_name,
				  const char *cache_label)
{
	const uint64_t used = read_number(root, dir, usage_name, 0);
	struct file_text stat;

	read_file_text(root, dir, "memory.stat", &stat);
	return subtract_clamped(used, parse_number(find_label_value(&stat, cache_label), 0));
}

static uint64_t measure_memory_v2(const char *root, const char *dir)
{
	const uint64_t limit = min_limit(read_number(root, dir, "memory.max", NO_LIMIT),
					 read_number(root, dir, "memory.high", NO_LIMIT));

	if (limit == NO_LIMIT)
		return NO_LIMIT;
	return subtract_clamped(limit,
				group_used_nbytes(root, dir, "memory.current", "inactive_file "));
}

static uint64_t measure_memory_v1(const char *root, const char *dir)
{
	const uint64_t limit = read_number(root, dir, "memory.limit_in_bytes", NO_LIMIT);

	if (limit == NO_LIMIT)
		return NO_LIMIT;
	return subtract_clamped(limit, group_used_nbytes(root, dir, "memory.usage_in_bytes",
							 "total_inactive_file "));
}

/* A quota of part of a processor keeps one busy, some of the time. */
static uint64_t quota_to_cpus(uint64_t quota, uint64_t period)
{
	return quota == NO_LIMIT || period == 0 ? NO_LIMIT : (quota + period - 1) / period;
}

/* cpu.max is "QUOTA PERIOD" or "max PERIOD". */
static uint64_t measure_cpus_v2(const char *root, const char *dir)
{
	struct file_text text;

	read_file_text(root, dir, "cpu.max", &text);
	return quota_to_cpus(parse_number(text.bytes, NO_LIMIT),
			     parse_number(text.bytes + strcspn(text.bytes, " "), 0));
}

static uint64_t measure_cpus_v1(const char *root, const char *dir)
{
	return quota_to_cpus(read_number(root, dir, "cpu.cfs_quota_us", NO_LIMIT),
			     read_number(root, dir, "cpu.cfs_period_us", 0));
}

static const struct hierarchy memory_hierarchies[] = {
	{ "", "/sys/fs/cgroup", measure_memory_v2 },
	{ "", "/sys/fs/cgroup/unified", measure_memory_v2 },
	{ "memory", "/sys/fs/cgroup/memory", measure_memory_v1 },
	{ 0 }
};

static const struct hierarchy cpu_hierarchies[] = {
	{ "", "/sys/fs/cgroup", measure_cpus_v2 },
	{ "", "/sys/fs/cgroup/unified", measure_cpus_v2 },
	{ "cpu", "/sys/fs/cgroup/cpu", measure_cpus_v1 },
	{ 0 }
};

/* Is `name` one of a list such as "cpu,cpuacct" of n bytes? The empty name is the empty list. */
static bool list_contains(const char *list, size_t n, const char *name)
{
	const size_t name_nbytes = strlen(name);
	size_t begin = 0;

	do {
		const char *comma = memchr(list + begin, ',', n - begin);
		const size_t end = comma ? (size_t)(comma - list) : n;

		if (end - begin == name_nbytes && !strncmp(list + begin, name, name_nbytes))
			return true;
		begin = end + 1;
	} while (begin <= n);
	return false;
}

/*
 * The path of this process's group: of the line "ID:CONTROLLERS:PATH" that has the controller.
 * False if there is no such line, or the path is too long.
 */
static bool find_cgroup(const struct file_text *groups, const char *controller,
			char path[static PATH_MAX])
{
	const char *line = groups->bytes;

	while (*line) {
		const size_t n = strcspn(line, "\n");
		const char *list = memchr(line, ':', n);
		const char *end = list ? memchr(list + 1, ':', n - (size_t)(list + 1 - line)) :
					 NULL;

		if (end && list_contains(list + 1, (size_t)(end - list - 1), controller))
			return snprintf(path, PATH_MAX, "%.*s", (int)(line + n - end - 1),
					end + 1) < PATH_MAX;
		line += n + (line[n] == '\n');
	}
	return false;
}

/* The least that any group limits this process to, over all hierarchies. */
static uint64_t measure_groups(const char *root, const struct hierarchy *hierarchies)
{
	char path[PATH_MAX], dir[2 * PATH_MAX];
	uint64_t limit = NO_LIMIT;
	struct file_text groups;

	read_file_text(root, "/proc/self", "cgroup", &groups);
	for (const struct hierarchy *hierarchy = hierarchies; hierarchy->mount; hierarchy++) {
		char *end;

		if (!find_cgroup(&groups, hierarchy->controller, path))
			continue;
		do {
			snprintf(dir, sizeof dir, "%s%s", hierarchy->mount, path);
			limit = min_limit(limit, hierarchy->measure(root, dir));
			end = strrchr(path, '/');
			if (end)
				*end = '\0';
		} while (end);
	}
	return limit;
}

/* An rlimit less what counts against it. Limits are "LABEL SOFT HARD bytes". */
static uint64_t measure_rlimit(const char *root, const char *limit_label, const char *used_label)
{
	struct file_text limits, status;
	uint64_t limit, used_kib;

	read_file_text(root, "/proc/self", "limits", &limits);
	limit = parse_number(find_label_value(&limits, limit_label), NO_LIMIT);
	if (limit == NO_LIMIT)
		return NO_LIMIT;
	read_file_text(root, "/proc/self", "status", &status);
	used_kib = parse_number(find_label_value(&status, used_label), 0);
	return subtract_clamped(limit, used_kib << 10);
}

static uint64_t measure_system(const char *root, const char *label)
{
	struct file_text meminfo;
	uint64_t kib;

	read_file_text(root, "/proc", "meminfo", &meminfo);
	kib = parse_number(find_label_value(&meminfo, label), NO_LIMIT);
	return kib == NO_LIMIT ? NO_LIMIT : kib << 10;
}

uint64_t memory_available_nbytes(const char *root)
{
	uint64_t nbytes = measure_system(root, "MemAvailable:");

	nbytes = min_limit(nbytes, measure_groups(root, memory_hierarchies));
	nbytes = min_limit(nbytes, measure_rlimit(root, "Max address space", "VmSize:"));
	nbytes = min_limit(nbytes, measure_rlimit(root, "Max data size", "VmData:"));
	return nbytes == NO_LIMIT ? UNKNOWN_NBYTES : nbytes;
}

uint64_t memory_free_nbytes(const char *root)
{
	const uint64_t nbytes = measure_system(root, "MemFree:");

	return nbytes == NO_LIMIT ? 0 : min_limit(nbytes, memory_available_nbytes(root));
}

/* Set bits of the mask "ff,ffffffff" of processors that the scheduler may choose. */
static uint64_t measure_affinity(const char *root)
{
	struct file_text status;
	const char *mask;
	uint64_t n = 0;

	read_file_text(root, "/proc/self", "status", &status);
	mask = find_label_value(&status, "Cpus_allowed:");
	mask += strspn(mask, " \t");
	for (; *mask && *mask != '\n'; mask++) {
		const char digit[2] = { *mask, '\0' };

		n += (uint64_t)__builtin_popcountl(strtoul(digit, NULL, 16));
	}
	return n ? n : NO_LIMIT;
}

uint64_t memory_resident_nbytes(void)
{
	char text[128];
	uint64_t n_pages = 0;

	if (!read_file_prefix("", "/proc/self", "statm", text, sizeof text) ||
	    sscanf(text, "%*s %" SCNu64, &n_pages) != 1)
		return 0;
	return n_pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t memory_physical_nbytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

unsigned cpus_available(const char *root)
{
	const uint64_t n = min_limit(measure_affinity(root), measure_groups(root, cpu_hierarchies));

	if (n == NO_LIMIT)
		return 1;
	return n > UINT_MAX ? UINT_MAX : n ? (unsigned)n : 1;
}
