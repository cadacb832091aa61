#!/bin/sh
# timeline - --trace writes a valid trace of the sort (see timeline.py)
. "$(dirname "$0")/testlib.sh"

# check_trace CLAIM ARGUMENT...: sort, and compare the trace with statistics and output
check_trace() {
	claim "$1"
	shift
	rm -f output trace stats
	expect_exit 0 --trace=trace --stats-json=stats --parallel=2 "$@" -o output
	python3 "$(dirname "$0")/timeline.py" trace stats output > findings 2>&1 ||
		fail "$(cat findings)"
}

generate -n 500000 -o input
check_trace 'the trace of a sort in memory' -S 64M input
expect_line '"name":"CPU queue 1"' trace
check_trace 'the trace of a sort in several passes' -S 1M --temp-compress=none input
expect_line '"name":"merge passes"' trace
check_trace 'partitions are in the trace' -S 64M --partitions=3 input
n=$(grep -c '"name":"partition"' trace)
[ "$n" -eq 3 ] || fail "$n partitions"
check_trace 'the trace of a verified sort' -S 4M --verify input
expect_line '"name":"verifier 1"' trace
"$GSORT" input -o sorted
check_trace 'the trace of a merge' -m -S 1M sorted sorted

claim 'short-lived threads of a role share a track'
run --trace=trace --parallel=2 -S 1M input -o output
n=$(grep -c '"name":"writer [0-9]*"' trace)
[ "$n" -ge 1 ] && [ "$n" -le 4 ] || fail "$n tracks of writers"

finish
