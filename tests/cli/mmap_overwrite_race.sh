#!/bin/sh
# mmap_overwrite_race - sort mapped records while another process overwrites one
#
# Runs GSORT_SORTS sorts (default: 300). Each must be refused or give sorted output. The race may
# not happen, so this is a benchmark and not a test: meson test --benchmark mmap_overwrite_race.
# tests/unit/cpu/test_cpu_indirect.c tests the same cases without a race.
. "$(dirname "$0")/testlib.sh"

sorts=${GSORT_SORTS:-300}
n_refused=0 n_right=0
size=65536 key=65526

claim 'a sort of records that are overwritten is refused or gives sorted output'
generate -R $size -k $key:b10 -n 64 -o changed
mkfifo until
"$FLIP_BYTE" changed $((20 * size + key)) < until &
writer=$!
exec 3> until
for round in $(seq "$sorts"); do
	run -R $size -k $key:b10 changed -o output
	case $status in
	0)
		n_right=$((n_right + 1))
		"$GSORT_CHECK" -R $size -k $key:b10 output > stdout 2> stderr ||
			fail "sort $round: status 0, but $(cat stdout)"
		;;
	2)
		n_refused=$((n_refused + 1))
		expect_message 'changed: changed' "sort $round"
		;;
	*) fail "sort $round: status $status" ;;
	esac
	expect_no_temp_files "sort $round"
done
exec 3>&-
wait $writer
echo "$sorts sorts: $n_refused refused, $n_right with status 0"
finish
