/*
 * system_limits.c - memory and CPUs that this process may use (see system_limits.h)
 *
 * A control group is bounded by its own limits and by those of all its ancestors, so the path from
 * /proc/self/cgroup is followed up to the root of the mounted hierarchy. In a container that root
 * is often the container's own group, while the path is that of the host and is not mounted. Then
 * the files on the way do not exist and limit nothing, and the root decides.
 *
 * Resource limits are read from /proc/self/limits instead of getrlimit(), so that tests can replace
 * the whole tree.
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

#include "src/base/int_math.h"

#define NO_LIMIT UINT64_MAX
#define UNKNOWN_NBYTES (UINT64_C(64) << 20)

/* The longest file, memory.stat, has about 4 KiB. */
struct file_text {
	char bytes[8192];
};

/* Return the limit of the group whose files are in `dir`; NO_LIMIT if there is none. */
typedef uint64_t measure_fn(const char *root, const char *dir);

/* A place where the files of a controller's groups may be mounted. */
struct hierarchy {
	const char *controller; /* "" for v2 */
	const char *mount;
	measure_fn *measure;
};

/* Return a - b, or 0 if that is negative. */
static uint64_t subtract_clamped(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Read the start of root/dir/name as a string of less than `size` bytes; "" if it is unreadable. */
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

/*
 * Return the number at the start of `text`, after blanks; default_value if there is none ("max").
 */
static uint64_t parse_number(const char *text, uint64_t default_value)
{
	text += strspn(text, " \t");
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : default_value;
}

/* Return the text after `label` at the start of a line; "" if there is no such line. */
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

/* Return the memory that a group uses, without page cache that the kernel would drop first. */
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
	const uint64_t limit = u64_min(read_number(root, dir, "memory.max", NO_LIMIT),
				       read_number(root, dir, "memory.high", NO_LIMIT));

	if (limit == NO_LIMIT)
		return NO_LIMIT;
	return subtract_clamped(limit,
				group_used_nbytes(root, dir, "memory.current", "inactive_file "));
}

static uint64_t measure_memory_v1(const char *root, const char *dir)
{
	const uint64_t limit = read_number(root, dir, "memory.limit_in_bytes", NO_LIMIT);

	/* A group without a limit has the greatest int64_t, rounded down to a page. */
	if (limit > INT64_MAX / 2)
		return NO_LIMIT;
	return subtract_clamped(limit, group_used_nbytes(root, dir, "memory.usage_in_bytes",
							 "total_inactive_file "));
}

/* A quota of a fraction of a CPU rounds up to one. */
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

/*
 * Return whether `name` is in a list of n bytes such as "cpu,cpuacct". The empty list contains the
 * empty name.
 */
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
 * Get the path of this process's group from the line "ID:CONTROLLERS:PATH" with the controller.
 * Returns false if there is no such line or the path is too long.
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

/* Return the lowest limit of all groups that this process belongs to, over all hierarchies. */
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
		if (strcmp(path, "/") == 0) /* the files of the root group are in `mount` */
			path[0] = '\0';
		do {
			snprintf(dir, sizeof dir, "%s%s", hierarchy->mount, path);
			limit = u64_min(limit, hierarchy->measure(root, dir));
			end = strrchr(path, '/');
			if (end)
				*end = '\0';
		} while (end);
	}
	return limit;
}

/*
 * Return a resource limit less what is used of it. Lines of `limits` are "LABEL SOFT HARD bytes".
 */
static uint64_t measure_rlimit(const char *root, const struct file_text *limits,
			       const char *limit_label, const char *used_label)
{
	const uint64_t limit = parse_number(find_label_value(limits, limit_label), NO_LIMIT);
	struct file_text status;
	uint64_t used_kib;

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

uint64_t memory_allowed_nbytes(const char *root)
{
	uint64_t nbytes = measure_groups(root, memory_hierarchies);
	struct file_text limits;

	read_file_text(root, "/proc/self", "limits", &limits);
	nbytes = u64_min(nbytes, measure_rlimit(root, &limits, "Max address space", "VmSize:"));
	return u64_min(nbytes, measure_rlimit(root, &limits, "Max data size", "VmData:"));
}

uint64_t memory_available_nbytes(const char *root)
{
	const uint64_t nbytes =
		u64_min(measure_system(root, "MemAvailable:"), memory_allowed_nbytes(root));

	return nbytes == NO_LIMIT ? UNKNOWN_NBYTES : nbytes;
}

uint64_t memory_free_nbytes(const char *root)
{
	const uint64_t nbytes = measure_system(root, "MemFree:");

	return nbytes == NO_LIMIT ? 0 : u64_min(nbytes, memory_available_nbytes(root));
}

/* Count the bits of the mask "ff,ffffffff" of CPUs that the scheduler may choose. */
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

/* ru_maxrss of getrusage() survives exec(), so it can be the peak of the calling program. */
uint64_t memory_peak_resident_nbytes(void)
{
	struct file_text status;

	read_file_text("", "/proc/self", "status", &status);
	return parse_number(find_label_value(&status, "VmHWM:"), 0) << 10;
}

uint64_t memory_physical_nbytes(void)
{
	return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

unsigned cpus_available(const char *root)
{
	const uint64_t n = u64_min(measure_affinity(root), measure_groups(root, cpu_hierarchies));

	if (n == NO_LIMIT)
		return 1;
	return n > UINT_MAX ? UINT_MAX : n ? (unsigned)n : 1;
}
