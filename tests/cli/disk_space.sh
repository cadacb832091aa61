#!/bin/sh
# disk_space - input, temporary files and output together take at most 2.05 times the input; an
# eighth more where there is plenty of room
. "$(dirname "$0")/testlib.sh"

# within PERCENT ARGUMENT...: gsort of `input` keeps to that, and really spills.
within() {
	limit_kib=$(($(wc -c < input) / 1024 * $1 / 100))
	shift
	least_kib=$(($(wc -c < input) / 1024 * 19 / 10))
	"$PEAK_SPACE" $limit_kib "$GSORT" "$@" input -o output > peak 2> stderr ||
		broken "gsort $*: status $?: $(cat peak)"
	[ "$(sed 's/peak \([0-9]*\) .*/\1/' peak)" -ge $least_kib ] ||
		broken "gsort $*: this cannot be all: $(cat peak)"
	"$GSORT_CHECK" --same-records output input > stdout || broken "$(cat stdout)"
	rm output
}

generate -b 256M -o input

# A limit of less than three times what is spilled leaves no plenty of room.
claim 'one merge'
within 205 -S 64M --temp-compress=none --temp-limit=400M

claim 'several passes'
within 205 -S 16M --temp-compress=none --batch-size=8 --temp-limit=400M

claim 'codecs'
within 205 -S 64M --temp-compress=zstd --temp-limit=400M

claim 'nothing to spill'
within 205 -S 2G

# Of 256 MiB a seventh is what eight ranges have taken of the output in advance.
claim 'with plenty of room'
within 232 -S 64M --temp-compress=none --partitions=8 --parallel=8

finish
