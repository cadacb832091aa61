#!/bin/sh
# disk_space - input, temporary files and output take at most 2.05 times the input
#
# With plenty of space and several partitions, they take at most 2.32 times the input.
. "$(dirname "$0")/testlib.sh"

# expect_peak_space PERCENT ARGUMENT...: sorting `input` takes at most PERCENT of its size, and at
# least 190
expect_peak_space() {
	limit_kib=$(($(wc -c < input) / 1024 * $1 / 100))
	shift
	least_kib=$(($(wc -c < input) / 1024 * 19 / 10))
	"$PEAK_SPACE" $limit_kib "$GSORT" "$@" input -o output > peak 2> stderr ||
		fail "gsort $*: status $?: $(cat peak)"
	[ "$(sed 's/peak \([0-9]*\) .*/\1/' peak)" -ge $least_kib ] ||
		fail "gsort $*: this cannot be all: $(cat peak)"
	"$GSORT_CHECK" --same-records output input > stdout || fail "$(cat stdout)"
	rm output
}

generate -b 256M -o input

# With a --temp-limit below three times the spilled bytes there is not plenty of space.
claim 'one merge'
expect_peak_space 205 -S 64M --temp-compress=none --temp-limit=400M

claim 'several passes'
expect_peak_space 205 -S 16M --temp-compress=none --batch-size=8 --temp-limit=400M

claim 'codecs'
expect_peak_space 205 -S 64M --temp-compress=zstd --temp-limit=400M

claim 'nothing to spill'
expect_peak_space 205 -S 2G

# Eight partitions preallocate space in the output, here about a seventh of 256 MiB.
claim 'with plenty of space'
expect_peak_space 232 -S 64M --temp-compress=none --partitions=8 --parallel=8

finish
