#!/bin/sh
# failures - a failure of one rank is reported once, all ranks end, and no files are left
#
# Here MPI starts the ranks. tests/unit/comm and tests/unit/sort/test_distributed_sort.c fail a rank
# at each message. GSORT_MPI_FAULTS is the path of gsort_mpi_faults.c.
. "$(dirname "$0")/testlib.sh"

generate -n 200000 -t u64 -o random
run random -o expected

# run_second_rank SETUP ARGUMENT...: run two ranks; a shell runs SETUP before the second one, in a
# separate mount namespace if possible
apart=
run_second_rank() {
	setup=$1
	shift
	# Word splitting is intended.
	# shellcheck disable=SC2086
	launch -np 1 "$GSORT_MPI" "$@" : \
		-np 1 $apart sh -c "$setup"' && exec "$@"' sh "$GSORT_MPI" "$@"
}

claim "one rank has no directory for temporary files"
launch -np 1 "$GSORT_MPI" -S 1M random -o out/x : \
	-np 1 "$GSORT_MPI" -S 1M -T nowhere random -o out/x
expect_failed "-T" 'rank 1, on [^:]*: nowhere: temporary directory: No such'

claim "one rank has no memory"
truncate -s 400M zeros
run_second_rank 'ulimit -v 200000' -S 400M zeros -o out/x
expect_failed "ulimit -v" 'rank 1, on [^:]*: .*(no memory|Cannot allocate memory)'
rm zeros

claim "a process that should be one of several ranks, but is not"
for variable in PMI_SIZE SLURM_STEP_NUM_TASKS; do
	env $variable=4 "$GSORT_MPI" random -o out/x > stdout 2> stderr
	status=$?
	expect_failed $variable "(mpiexec|srun) started 4 ranks \($variable\), but MPI sees 1; "
done
env SLURM_STEP_NUM_TASKS=1 SLURM_NTASKS=4 "$GSORT_MPI" random -o out/x > stdout 2> stderr
status=$?
expect_rank_output "SLURM_NTASKS"

claim "an error without a launcher is one line, with no output of MPI"
for wrong in --wrong --shard=1/2 nosuch; do
	"$GSORT_MPI" "$wrong" random -o out/x > stdout 2> stderr
	status=$?
	expect_failed "$wrong" ".*${wrong%=*}"
	expect_message '^gsort: ' "$wrong"
done

claim "ranks have different versions"
launch -np 2 "$GSORT_MPI_FAULTS" random -o out/x : \
	-np 1 env GSORT_TEST_VERSION=0.1 "$GSORT_MPI_FAULTS" random -o out/x
expect_failed "0.1" 'ranks have different versions: .* on .*rank [0-9].* on .*rank [0-9]'

claim "ranks wait for a rank that starts late"
timeout 120 "$MPIRUN" -np 1 "$GSORT_MPI" random -o out/x : \
	-np 1 sh -c ': > late.$$ && kill -STOP $$ && exec "$@"' sh "$GSORT_MPI" random -o out/x \
	> stdout 2> stderr < /dev/null &
launcher=$!
signal_stopped CONT 1 late
expect_rank_output "started later"

claim "the start is bounded by the timeout, if a rank is stopped before the ranks have met"
begun=$(date +%s)
timeout 120 "$MPIRUN" -np 1 "$GSORT_MPI" --timeout=3 random -o out/x : \
	-np 1 sh -c ': > late.$$ && kill -STOP $$ && exec "$@"' sh "$GSORT_MPI" --timeout 3 random \
	-o out/x > stdout 2> stderr < /dev/null &
launcher=$!
wait_for_launcher late
expect_failed "stopped at the start" \
	'(ranks have not met within 3 s|rank 1 .* not answered for 3)' 2 9 137
[ $(($(date +%s) - begun)) -lt 40 ] || fail "stopped at the start: $(($(date +%s) - begun)) s"

claim "a rank that is stopped and continued does not fail the sort"
for point in begun written checked; do
	start_ranks "" $point -S 1M random -o out/x
	signal_stopped CONT 1 $point
	expect_rank_output "$point"
done

claim "a rank that is stopped for longer than the ping interval answers afterwards"
start_ranks "" sorted --timeout=8 random -o out/x
wait_until are_stopped 1 sorted || fail "the rank has not reached the point"
sleep 2.2
signal_stopped CONT 1 sorted
expect_rank_output "stopped"

claim "a rank that stays stopped is named"
start_ranks "" sorted --timeout=3 random -o out/x
wait_until are_stopped 1 sorted || fail "the rank has not reached the point"
wait_for_launcher sorted
expect_failed "stopped" 'rank 1 on .* has not answered for 3' 2 9 137

claim "a changed input that one rank detects at the end fails the sort with one message"
cp random changing
timeout 60 "$MPIRUN" -np 3 "$GSORT_MPI_FAULTS" changing -o out/x : \
	-np 1 env GSORT_TEST_STOP_AT=checked "$GSORT_MPI_FAULTS" changing -o out/x : \
	-np 1 "$GSORT_MPI_FAULTS" changing -o out/x > stdout 2> stderr < /dev/null &
launcher=$!
wait_until are_stopped 1 checked || fail "the rank has not reached the point"
touch changing
signal_stopped CONT 1 checked
expect_failed "changed" 'rank 3, on [^:]*: changing: changed after it was read'
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "changed: $(cat stderr)"
rm changing

claim "a killed rank ends all"
start_ranks "" written random -o out/x
kill_stopped 1 written
expect_clean_directory "killed"

claim "temp files of killed ranks are reported once by the next sort"
start_ranks written written random -o out/x
kill_stopped 2 written
ls -A out > left
grep -q '^\.gsort-temp-' left && [ "$(wc -l < left)" -eq 1 ] || fail "there is: $(cat left)"
run_ranks 2 random -o out/x
[ "$(grep -c 'gsort-temp.* was left by a gsort that was killed .*; remove it' stderr)" -eq 1 ] ||
	fail "the next start does not report it"
rm -f out/.gsort-temp-*
expect_rank_output "started again"

claim "temp files of killed ranks with a checkpoint are removed silently by the resumed sort"
start_ranks written written -S 1M --checkpoint=ck random -o out/x
kill_stopped 2 written
ls -A out > left
grep -q '^\.gsort-temp-' left && [ "$(wc -l < left)" -eq 1 ] || fail "there is: $(cat left)"
run_ranks 2 -S 1M --checkpoint=ck random -o out/x
expect_line '^gsort: resuming: ' stderr
! grep 'was left' stderr > told || fail "$(cat told)"
expect_rank_output "taken up"

if ! unshare -m true 2> /dev/null; then
	echo "failures.sh: mounts of one rank are left out: no right to make any"
	finish
fi
apart='unshare -m'

claim "an input is a different file on one rank"
cp -p random other
head -c 80000 random > short
for file in other short; do
	run_second_rank "mount --bind $file random" random -o out/x
	expect_failed "$file" 'rank 1, on [^:]*: random: file differs: .* on rank 0 '
done

claim "ranks do not share the directory of the output"
run_second_rank 'mount -t tmpfs none out' random -o out/x
expect_failed "a directory of one" 'rank 1, on [^:]*: out/x: directory differs: '
# Both directories have the same inode number.
for parts in '' --split=3; do
	# shellcheck disable=SC2086
	launch -np 2 unshare -m sh -c 'mount -t tmpfs none out && exec "$@"' sh \
		"$GSORT_MPI" $parts random -o out/x
	expect_failed "directories of each" \
		"rank 1, on [^:]*: out/x: .*of another rank in its directory"
done

claim "the disk for temporary files of one rank is full"
mkdir small
# The error occurs when the first run is stored, because compression might have made enough room.
run_second_rank 'mount -t tmpfs -o size=300k none small' -S 1M -T small --temp-compress=zstd \
	random -o out/x
expect_failed "-T" 'rank 1, on [^:]*: small: No space left on device'

claim "the disk of the output becomes full"
# The inner shell expands these words.
# shellcheck disable=SC2016
timeout 120 unshare -m sh -c '
	mount -t tmpfs -o size=1M none out && "$@" > stdout 2> stderr < /dev/null
	status=$?
	ls -A out > left
	exit $status' sh "$MPIRUN" -np 2 "$GSORT_MPI" -u random -o out/x
status=$?
expect_failed "output" '(rank 1, on [^:]*: )?out/x: .*No space left on device'
[ ! -s left ] || fail "output: there is $(cat left)"
finish
