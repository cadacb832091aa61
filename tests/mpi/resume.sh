#!/bin/sh
# resume - killed ranks with --checkpoint resume from their stored runs
#
# Here real processes are killed. tests/unit/sort/test_distributed_sort.c and
# tests/unit/lines/test_line_ranks.c kill a rank at each message.
. "$(dirname "$0")/testlib.sh"

generate -n 2000000 -t u64 -o input
run input -o expected
options='-S 2M --checkpoint=ck'

# find_rank RANK: print the process that has the checkpoint of the rank open
find_rank() {
	find /proc/[0-9]*/fd -lname "$PWD/ck/rank-000$1/gsort-manifest" 2> /dev/null |
		cut -d/ -f3 | head -1
}

# count_stored_runs RANK: print the number of runs that the rank has stored
count_stored_runs() {
	grep -aoP 'rmsg\x02' "ck/rank-000$1/gsort-manifest" 2> /dev/null | wc -l
}

# kill_after N RANK...: start a sort and kill these ranks as soon as the first of them has stored N
# runs. Repeat this until the ranks were killed before the output was complete.
kill_after() {
	for attempt in $(seq 50); do
		rm -rf ck out
		mkdir out
		! kill_once_after "$@" || return 0
	done
	fail "kill_after $*, $options: complete before the kill, $attempt times"
}

kill_once_after() {
	n=$1
	shift
	# They are words.
	# shellcheck disable=SC2086
	timeout 120 "$MPIRUN" -np 3 "$GSORT_MPI" $options input -o out/x \
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
	status=$?
	wait_until is_process_gone || fail "a rank has not ended"
	[ $status -ne 0 ] && [ ! -e out/x ] && [ "$(count_stored_runs "$1")" -ge "$n" ]
}

# expect_resume WHAT ARGUMENT...: the sort completes from stored runs
expect_resume() {
	what=$1
	shift
	# They are words.
	# shellcheck disable=SC2086
	run_ranks 3 $options "$@" input -o out/x
	expect_line '^gsort: resuming: [1-9].* runs? of all ranks holds?' stderr
	expect_rank_output "$what"
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

# number_of NAME: print the first number of this name in the statistics
number_of() {
	grep -o "\"$1\": *[0-9]*" json | head -1 | grep -o '[0-9]*$'
}

# expect_pass_space: the results of merge passes are removed
expect_pass_space() {
	nbytes=$(wc -c < input)
	# They are words.
	# shellcheck disable=SC2086
	run_ranks 3 $options --batch-size=2 --stats-json=json input -o out/x
	expect_rank_output '--batch-size=2'
	peak=$(number_of peak_temporary_bytes)
	[ "${peak:-0}" -gt "$nbytes" ] && [ "$peak" -lt $((4 * nbytes)) ] ||
		fail "$nbytes bytes took ${peak:-no} bytes"
}

claim 'the next merge pass removes the results of a pass over checkpointed runs'
expect_pass_space

claim 'ranks that sort lines'
awk 'BEGIN { for (; i < 600000; i++) { s = (s * 48271 + 11) % 2147483647; print s, i } }' > input
sort input > expected
options='--lines -S 4M --checkpoint=ck --temp-compress=none'
kill_after 2 1
expect_resume 'lines, one is killed'
kill_after 1 0 1 2
expect_resume 'lines, all are killed'
expect_pass_space

claim 'stored runs have samples: partitions of sorted lines are equal'
start_ranks '' written --lines -S 4M --checkpoint=ck expected -o out/x
wait_until are_stopped 1 written || fail 'not stopped'
has_stored() {
	[ "$(count_stored_runs 0)" -ge 3 ]
}
wait_until has_stored || fail 'rank 0 has stored no runs'
kill_stopped 1 written
run_ranks 2 --lines -S 4M --checkpoint=ck --stats-json=json expected -o out/x
expect_line '^gsort: resuming: [1-9].* runs? of all ranks holds?' stderr
expect_rank_output 'sorted lines'
[ "$(number_of imbalance_percent)" -lt 20 ] || fail "partitions of $(number_of imbalance_percent) %"

# expect_resumed_lines ARGUMENT...: write what one process writes after one of two ranks was killed
expect_resumed_lines() {
	rm -rf parts
	expect_exit 0 --lines "$@" -o parts
	start_ranks '' written --lines --checkpoint=ck "$@" -o out/x
	kill_stopped 1 written
	expect_clean_directory "killed, $*"
	run_ranks 2 --lines --checkpoint=ck "$@" -o out/x
	expect_status 0 "$*"
	diff -r parts out/x > differences || fail "$*: $(head -n 5 differences)"
	rm -r out/x
	[ ! -e ck ] || fail "$*: the checkpoint is left: $(ls ck)"
}

claim 'lines that options drop, count and divide'
head -n 300000 input > fewer
mv fewer input
expect_resumed_lines -S 4M -u -k1.1,1.3 input
expect_resumed_lines -S 4M --header --limit=30000 --zstd input
expect_resumed_lines -S 4M --split=3 -s -k1.1,1.2 input
expect_resumed_lines -u --count -k1.1,1.2 input

claim 'the lines of ranks without any'
printf 'b\na' > two
expect_resumed_lines two

claim 'an input that has changed is refused, and another number of ranks'
start_ranks '' sorted --lines --checkpoint=ck input -o out/x
kill_stopped 1 sorted
run_ranks 3 --lines --checkpoint=ck input -o out/x
expect_failed '3 ranks' '.*number of ranks was .2. and is .3. now'
touch input
run_ranks 2 --lines --checkpoint=ck input -o out/x
expect_failed 'touched' ".*input 'input' has changed since the checkpoint was written"
finish
