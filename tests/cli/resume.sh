#!/bin/sh
# resume - a sort with --checkpoint that is killed at any moment goes on, and gives the same bytes
#
# GSORT_SEED repeats a run, GSORT_KILLS says how often each kind of sort is begun, and then killed
# until it is done.
. "$(dirname "$0")/testlib.sh"
. "$(dirname "$0")/random_config.sh"
kills=${GSORT_KILLS:-1}
echo "GSORT_SEED=$seed GSORT_KILLS=$kills"
n_killed=0
n_from_runs=0

# What the last gsort went on from.
note_resumed() {
	! grep -q '^gsort: resuming: [1-9]' stderr || n_from_runs=$((n_from_runs + 1))
}

# run_and_kill MILLISECONDS ARGUMENT...: at a moment before that.
run_and_kill() {
	below "$1"
	shift
	run_for "$picked" "$@"
	note_resumed
	case $status in
	137) n_killed=$((n_killed + 1)) ;;
	0) ;;
	*) broken "gsort $*: status $status" ;;
	esac
}

# nothing_kept WHAT: except a file that was killed in the moment of its rename, which the next
# has told.
nothing_kept() {
	[ ! -e ck ] || broken "$1: the checkpoint is left: $(ls ck)"
	for name in .gsort-temp-*; do
		! grep -q "$name in the same directory was left by a gsort" stderr || rm "$name"
	done
	ls -A | grep '^\.gsort-' && broken "$1: a hidden file is left"
	nothing_left "$1"
}

# resumes ARGUMENT...: to the end, saying so if there was something: more than the files' marks,
# after which the disk is waited for. The last kill may have come while the checkpoint was removed.
resumes() {
	was_there=$(find ck/gsort-manifest -size +64c 2> /dev/null)
	run "$@"
	[ $status -eq 0 ] || broken "gsort $*: status $status"
	note_resumed
	[ -z "$was_there" ] ||
		says '^gsort: (resuming: |ck: the runs of the checkpoint are missing)' stderr
}

# same_outputs WHAT: what there is of the output is all that it should be.
same_outputs() {
	for path in $(cd expected && find . -type f); do
		same "expected/$path" "$path" "$1"
	done
}

# survives ARGUMENT...: killed again and again, the sort ends with the bytes that it gives without a
# checkpoint. first, later: what its starts are told besides, those after the first otherwise. to:
# the output's name.
first=
later=
to=output
survives() {
	rm -rf output* expected
	mkdir expected
	"$GSORT" -o expected/$to "$@" 2> stderr || broken "gsort $*: status $?"
	begin=$(date +%s%N)
	# They are lists of words.
	# shellcheck disable=SC2086
	succeeds -o $to --checkpoint=ck $first "$@"
	limit=$((($(date +%s%N) - begin) / 1000000 + 1))
	same_outputs "gsort $*: not killed"
	nothing_kept "gsort $*: not killed"
	for i in $(seq "$kills"); do
		rm -rf output*
		how=$first
		for j in 1 2 3 4 5 6; do
			# shellcheck disable=SC2086
			run_and_kill "$limit" -o $to --checkpoint=ck $how "$@"
			[ $status -ne 0 ] || break
			[ ! -e output ] || same_outputs "gsort $*: killed, but complete"
			how=$later
		done
		# shellcheck disable=SC2086
		[ $status -eq 0 ] || resumes -o $to --checkpoint=ck $how "$@"
		same_outputs "gsort $*: resumed"
		nothing_kept "gsort $*: resumed"
	done
}

generate -n 1500000 -o input
generate -n 600000 -d hundred-keys -o few
generate -n 100000 --gensort=ascii -o hundred
generate -R 12 -k 8:u32 -n 500000 -d hundred-keys -o edges

claim 'killed at any moment'
survives -S 3M input
claim 'killed in any of several passes'
survives -S 1M --batch-size=3 input
claim 'killed, of records that are nothing but keys'
survives -S 2M -R 12 -k 8:u32 -k 0:f64:r edges
claim 'killed, with -u'
survives -S 2M -u few
survives -S 2M -u -t u32 input
claim 'killed, with records'
survives -S 3M -R 100 -k 0:b10 hundred
survives -S 3M -R 16 -k 4:u32:r -k 0:i8 input
claim 'killed, with other shapes of input and output'
survives -S 3M -R 16 -k 12:u16 --argsort input
survives -S 3M -R 8 -k 7:u8 -u --count input
survives -S 3M --limit=1000000 input
survives -S 3M --skip-bytes=16 --partial=keep -R 24 -k 3:u32 input
claim 'killed, with compressed runs'
survives -S 2M --temp-compress=zstd few
claim 'killed, in partitions, and resumed in fewer'
first='--partitions=3 --parallel=2 -S 10M --verify'
later=$first
survives input
survives -R 100 -k 0:b10 hundred
later='--partitions=2 --parallel=1 -S 4M --batch-size=2 --verify'
survives --limit=1400000 input
survives few
first=
later=
claim 'killed, with part files, or compressed'
survives -S 3M --split=3 input
survives -S 1M --batch-size=3 --split=2 -R 16 -k 4:u32:r input
to=output.zst
survives -S 3M input
survives -S 3M --zstd --split=2 few
to=output
claim 'killed, with everything in memory'
survives -S 64M input

claim 'killed while it replaces its input, which is as it was or sorted'
rm -r expected
"$GSORT" input -o expected
for i in $(seq "$kills"); do
	cp input both
	for j in 1 2 3 4 5 6; do
		run_and_kill 600 -S 3M --checkpoint=ck both -t u64 -o both
		cmp -s input both || cmp -s expected both || broken "neither after $moment s"
		[ $status -ne 0 ] || break
	done
	[ $status -eq 0 ] || resumes -S 3M --checkpoint=ck both -t u64 -o both
	same expected both 'in place'
	nothing_kept 'in place'
done

# How long it takes, by which the moments are chosen, may have been seen when the machine was busy.
claim 'enough of them are killed in time'
for i in $(seq 50); do
	[ $n_killed -lt $((8 * kills)) ] || [ $n_from_runs -lt $((2 * kills)) ] || break
	survives -S 1M --batch-size=3 input
done
[ $n_killed -ge $((8 * kills)) ] || broken "only $n_killed"
[ $n_from_runs -ge $((2 * kills)) ] || broken "only $n_from_runs had runs to go on from"
echo "$n_killed killed; resumed from runs $n_from_runs times"
finish
