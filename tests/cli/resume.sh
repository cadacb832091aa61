#!/bin/sh
# resume - a sort with --checkpoint that is killed at any time is resumed and gives the same bytes
#
# usage: resume.sh [lines]
#
# With "lines", sorts lines of text. GSORT_SEED repeats a run. GSORT_KILLS is how often each kind of
# sort is started and killed until it ends (default: 1).
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"
kills=${GSORT_KILLS:-1}
echo "GSORT_SEED=$seed GSORT_KILLS=$kills"
n_killed=0
n_from_runs=0

# count_resumed: count the last gsort if it resumed from runs
count_resumed() {
	! grep -q '^gsort: resuming: [1-9]' stderr || n_from_runs=$((n_from_runs + 1))
}

# run_and_kill MILLISECONDS ARGUMENT...: run gsort and kill it at a random time before MILLISECONDS
run_and_kill() {
	pick_below "$1"
	shift
	run_for "$picked" "$@"
	count_resumed
	case $status in
	137) n_killed=$((n_killed + 1)) ;;
	0) ;;
	*) fail "gsort $*: status $status" ;;
	esac
}

# expect_no_checkpoint WHAT: no checkpoint and no temporary file is left, except an orphan of a
# kill during the rename, which the next gsort reports
expect_no_checkpoint() {
	[ ! -e ck ] || fail "$1: the checkpoint is left: $(ls ck)"
	for name in .gsort-temp-*; do
		! grep -q "$name in the same directory was left by a gsort" stderr || rm "$name"
	done
	ls -A | grep '^\.gsort-' && fail "$1: a hidden file is left"
	expect_no_temp_files "$1"
}

# expect_resume ARGUMENT...: run gsort to the end. It reports the resumption if the manifest has
# more than its header. The last kill may have happened during the removal of the checkpoint,
# after the runs.
expect_resume() {
	was_there=$(find ck/gsort-manifest -size +64c 2> /dev/null)
	expect_exit 0 "$@"
	count_resumed
	[ -z "$was_there" ] ||
		expect_line '^gsort: (resuming: |ck: the runs of the checkpoint are missing)' stderr
}

# expect_outputs WHAT: the output is complete
expect_outputs() {
	for path in $(cd expected && find . -type f); do
		expect_same "expected/$path" "$path" "$1"
	done
}

# kill_and_resume ARGUMENT...: a sort that is killed several times and resumed gives the bytes of
# a sort without a checkpoint. $first and $later are further options of the first start and of
# later ones. $to is the name of the output.
first=
later=
to=output
kill_and_resume() {
	rm -rf output* expected
	mkdir expected
	"$GSORT" -o expected/$to "$@" 2> stderr || fail "gsort $*: status $?"
	begin=$(date +%s%N)
	# Word splitting is intended.
	# shellcheck disable=SC2086
	expect_success -o $to --checkpoint=ck $first "$@"
	limit=$((($(date +%s%N) - begin) / 1000000 + 1))
	expect_outputs "gsort $*: not killed"
	expect_no_checkpoint "gsort $*: not killed"
	for i in $(seq "$kills"); do
		rm -rf output*
		how=$first
		for j in 1 2 3 4 5 6; do
			# shellcheck disable=SC2086
			run_and_kill "$limit" -o $to --checkpoint=ck $how "$@"
			[ $status -ne 0 ] || break
			[ ! -e output ] || expect_outputs "gsort $*: killed, but complete"
			how=$later
		done
		# shellcheck disable=SC2086
		[ $status -eq 0 ] || expect_resume -o $to --checkpoint=ck $how "$@"
		expect_outputs "gsort $*: resumed"
		expect_no_checkpoint "gsort $*: resumed"
	done
}

# kill_and_resume_in_place INPUT ARGUMENT...: like kill_and_resume, with an output that replaces
# the input
kill_and_resume_in_place() {
	in_place=$1
	shift
	rm -rf expected
	"$GSORT" "$@" "$in_place" -o expected
	for i in $(seq "$kills"); do
		cp "$in_place" both
		for j in 1 2 3 4 5 6; do
			run_and_kill 600 "$@" --checkpoint=ck both -o both
			cmp -s "$in_place" both || cmp -s expected both ||
				fail "neither after $moment s"
			[ $status -ne 0 ] || break
		done
		[ $status -eq 0 ] || expect_resume "$@" --checkpoint=ck both -o both
		expect_same expected both 'in place'
		expect_no_checkpoint 'in place'
	done
}

# kill_enough ARGUMENT...: repeat until enough sorts were killed before their end. The times
# of kills may be too late, because they were chosen while the machine was busy.
kill_enough() {
	claim 'enough sorts are killed before their end'
	for attempt in $(seq 50); do
		[ $n_killed -lt $((8 * kills)) ] || [ $n_from_runs -lt $((2 * kills)) ] || break
		kill_and_resume "$@"
	done
	[ $n_killed -ge $((8 * kills)) ] || fail "only $n_killed"
	[ $n_from_runs -ge $((2 * kills)) ] || fail "only $n_from_runs had runs to go on from"
	echo "$n_killed killed; resumed from runs $n_from_runs times"
}

# kill_and_resume_lines ARGUMENT...: like kill_and_resume, with the bytes of GNU sort
kill_and_resume_lines() {
	kill_and_resume --lines "$@"
	sort -o sorted "$@"
	expect_same sorted output "sort $*"
}

if [ "${1:-}" = lines ]; then
	awk 'BEGIN { srand('"$seed"'); s = "abcdefghijklmnopqrstuvwxyz"
		for (i = 0; i < 200000; i++)
		print int(rand() * 100000), int(rand() * 3), substr(s, 1 + rand() * 26) }' > text
	head -c 1200001 text > unfinished
	: > empty
	awk '{ print $1 % 3000 }' text > few
	"$GSORT" --lines few -o few.zst

	claim 'lines, killed at any time'
	kill_and_resume_lines -S 3M text
	kill_and_resume_lines -S 2M --batch-size=3 text
	claim 'lines, with keys'
	kill_and_resume_lines -S 3M --batch-size=2 -k2,2n -k1,1nr text
	kill_and_resume_lines -S 3M -s -k3,3 text
	claim 'lines, with -u'
	kill_and_resume_lines -S 2M -u few
	kill_and_resume_lines -S 3M -u -k2,3 text
	claim 'lines of several inputs without a last line end'
	kill_and_resume_lines -S 2M unfinished empty few unfinished text
	tr '\n' '\000' < unfinished > nul
	kill_and_resume_lines -S 2M -z -r nul empty nul
	claim 'lines, with headers and projections'
	kill_and_resume --lines -S 2M -u --count few
	kill_and_resume --lines -S 2M --limit=130000 text
	kill_and_resume --lines -S 2M --header=3 unfinished few text
	kill_and_resume --lines -S 2M few.zst text
	kill_and_resume --lines -S 2M --split=3 text
	kill_and_resume --lines -S 2M --split=3 -u --batch-size=3 text
	to=output.zst
	kill_and_resume --lines -S 2M text
	to=output
	claim 'lines, with compressed runs, resumed with other options'
	first='-S 2M --temp-compress=zstd --parallel=2'
	later='-S 4M --temp-compress=none --parallel=1 --batch-size=2'
	kill_and_resume --lines text
	first=
	later=
	claim 'lines, with everything in memory'
	kill_and_resume --lines -S 400M text
	claim 'lines in place: after a kill the input is unchanged or sorted'
	kill_and_resume_in_place text --lines -S 3M
	kill_enough --lines -S 2M --batch-size=3 text
	finish
fi

generate -n 500000 -o input
generate -n 250000 -d hundred-keys -o few
generate -n 60000 --gensort=ascii -o hundred
generate -R 12 -k 8:u32 -n 250000 -d hundred-keys -o edges

claim 'killed at any time'
kill_and_resume -S 2M input
claim 'killed in any of several passes'
kill_and_resume -S 1M --batch-size=3 input
claim 'killed, records that consist of keys'
kill_and_resume -S 1M -R 12 -k 8:u32 -k 0:f64:r edges
claim 'killed, with -u'
kill_and_resume -S 1M -u few
kill_and_resume -S 1M -u -t u32 input
claim 'killed, with records'
kill_and_resume -S 2M -R 100 -k 0:b10 hundred
kill_and_resume -S 2M -R 16 -k 4:u32:r -k 0:i8 input
claim 'killed, with headers and projections'
kill_and_resume -S 2M -R 16 -k 12:u16 --argsort input
kill_and_resume -S 2M -R 8 -k 7:u8 -u --count input
kill_and_resume -S 2M --limit=300000 input
kill_and_resume -S 2M --skip-bytes=16 --partial=keep -R 24 -k 3:u32 input
claim 'killed, with compressed runs'
kill_and_resume -S 1M --temp-compress=zstd few
claim 'killed, with partitions, and resumed with fewer'
first='--partitions=3 --parallel=2 -S 5M --verify'
later=$first
kill_and_resume input
kill_and_resume -R 100 -k 0:b10 hundred
later='--partitions=2 --parallel=1 -S 3M --batch-size=2 --verify'
kill_and_resume --limit=450000 input
kill_and_resume few
first=
later=
claim 'killed, with part files, or compressed'
kill_and_resume -S 2M --split=3 input
kill_and_resume -S 1M --batch-size=3 --split=2 -R 16 -k 4:u32:r input
to=output.zst
kill_and_resume -S 2M input
kill_and_resume -S 2M --zstd --split=2 few
to=output
claim 'killed, with everything in memory'
kill_and_resume -S 64M input

claim 'in place: after a kill the input is unchanged or sorted'
kill_and_resume_in_place input -S 2M -t u64
kill_enough -S 1M --batch-size=3 input
finish
