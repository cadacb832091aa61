#!/bin/sh
# resume - killed ranks with --checkpoint resume from their stored runs
#
# Here real processes are killed. tests/unit/sort/test_distributed_sort.c kills a rank at each
# message.
. "$(dirname "$0")/testlib.sh"

generate -n 2000000 -t u64 -o input
run input -o expected

# find_rank RANK: print the process that has the checkpoint of the rank open
find_rank() {
	find /proc/[0-9]*/fd -lname "$PWD/ck/rank-000$1/gsort-manifest" 2> /dev/null |
		cut -d/ -f3 | head -1
}

# count_stored_runs RANK: print the number of runs that the rank has stored
count_stored_runs() {
	grep -aoP 'rmsg\x02' "ck/rank-000$1/gsort-manifest" 2> /dev/null | wc -l
}

# kill_after N RANK...: kill these ranks as soon as the first of them has stored N runs
kill_after() {
	n=$1
	shift
	timeout 120 "$MPIRUN" -np 3 "$GSORT_MPI" -S 2M --checkpoint=ck input -o out/x \
		> stdout 2> stderr < /dev/null &
	launcher=$!
	while [ "$(count_stored_runs "$1")" -lt "$n" ] && kill -0 $launcher 2> /dev/null; do
		:
	done
	for rank in "$@"; do
		process=$(find_rank "$rank")
		[ -z "$process" ] || kill -9 "$process" 2> /dev/null
	done
	wait $launcher
}

# expect_resume WHAT ARGUMENT...: the sort completes, from stored runs unless the output was
# committed
expect_resume() {
	what=$1
	shift
	was_there=$(ls out)
	run_ranks 3 -S 2M --checkpoint=ck "$@" input -o out/x
	expect_rank_output "$what"
	[ -n "$was_there" ] || expect_line '^gsort: resuming: [1-9].* runs of all ranks hold' stderr
	[ ! -e ck ] || fail "$what: the checkpoint is left: $(ls ck)"
}

claim 'a rank is killed during run generation'
kill_after 2 1
mv ck/rank-0000 first
expect_exit 2 -S 2M --checkpoint=ck input -o out/x
expect_line 'rank-000[12]: belongs to a sort by several ranks' stderr
mv first ck/rank-0000
expect_resume 'one is killed' --verify

claim 'all ranks are killed'
kill_after 1 0 1 2
expect_resume 'all are killed'

claim 'the next merge pass removes the results of a pass over checkpointed runs'
run_ranks 3 -S 2M --batch-size=2 --checkpoint=ck --stats-json=json input -o out/x
expect_rank_output '--batch-size=2'
peak=$(grep -o '"peak_temporary_bytes": *[0-9]*' json | head -1 | grep -o '[0-9]*$')
[ "${peak:-0}" -gt 16000000 ] && [ "$peak" -lt $((4 * 16000000)) ] ||
	fail "16 MB took ${peak:-no} bytes"
finish
