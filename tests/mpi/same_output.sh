#!/bin/sh
# same_output - gsort-mpi writes the same bytes as gsort with any number of ranks
#
# Starting mpirun takes half a second, so there are few sorts. GSORT_SEED repeats a run.
# GSORT_ROUNDS makes it longer.
. "$(dirname "$0")/testlib.sh"

GSORT_ROUNDS=${GSORT_ROUNDS:-2}
echo "GSORT_SEED=$seed"

# refuses_all REGEX ARGUMENT...: several ranks refuse with one line and write no output
refuses_all() {
	regex=$1
	shift
	ranks 3 "$@" -o out/x
	[ "$status" -eq 2 ] || broken "$*: status $status"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "$*: not one line"
	grep -qE "^gsort: .*$regex" stderr || broken "$*: does not say $regex"
	all_gone "$*"
}

# agrees_in_parts N ARGUMENT...: like agrees, with a directory of part files
agrees_in_parts() {
	n=$1
	shift
	mkdir expected.d
	run "$@" -o expected.d/x
	[ "$status" -eq 0 ] || broken "gsort $*: status $status"
	ranks "$n" "$@" -o out/x
	[ "$status" -eq 0 ] || broken "$n ranks, $*: status $status"
	diff -r expected.d out > difference || broken "$n ranks, $*: $(head -1 difference)"
	rm -rf expected.d out/x
	all_gone "$n ranks, $*"
}

# agrees_as_asked WORDS: like agrees, or agrees_in_parts if WORDS contain a number of parts. With -u
# the boundaries of part files may differ.
agrees_as_asked() {
	# Word splitting is intended.
	# shellcheck disable=SC2086
	case $1 in
	*-u*--split*) agrees ${1%--split*} ;;
	*--split*) agrees_in_parts $1 ;;
	*) agrees $1 ;;
	esac
}

# agrees_together ARGUMENT...: like agrees, with concatenated part files that end at keys
agrees_together() {
	run "$@" -o expected
	ranks 3 --split=4 --split-by=keys "$@" -o out/x
	[ "$status" -eq 0 ] || broken "in parts, $*: status $status"
	cat out/x/part-* | cmp -s - expected ||
		broken "in parts, $*: the output differs"
	run -c out/x
	[ "$status" -eq 0 ] || broken "in parts, $*: the manifest differs"
	rm -rf out/x
	all_gone "in parts, $*"
}

generate -n 200000 -t u64 -o random
generate -n 100000 -t u64 -d hundred-keys -o few
generate -n 20000 -R 24 -k 3:b10 -d hundred-keys -o records
head -c 24 random > tiny

claim "one rank works like a single process, and two share spilled runs"
agrees 1 random
agrees 2 -S 1M --temp-limit=1G random few random

claim "the sort is stable across ranks"
agrees 4 -R 24 -k 3:b10 records --argsort

claim "-u keeps the first or the last of equal records of all ranks"
generate -n 400000 -R 24 -k 3:b2 -o equal
agrees 3 -S 1M -R 24 -k 3:b2 -u --keep=last equal
agrees 3 -R 24 -k 3:b2 -u --keep=last --count equal records
rm equal

claim "with --limit each rank writes and preallocates only its part"
generate -n 600000 -t u64 -o large
agrees 3 --limit=450001 large
rm large

claim "part files and manifest are those of one process"
agrees_in_parts 3 --split=5 -S1M --verify random few
agrees_in_parts 4 --split=2 -R 24 -k 3:b10 --limit=15000 --skip-bytes=24 records

if [ "${1:-}" = briefly ]; then
	claim "one rank that fails ends all"
	ranks 3 -T nowhere random -o out/x
	[ "$status" -ne 0 ] || broken "-T: status $status"
	grep -q 'nowhere: temporary directory: No such' stderr || broken "-T: $(cat stderr)"
	all_gone "-T nowhere"
	finish
fi

claim "there may be more ranks than records"
agrees 8 tiny

claim "random options"
for _ in $(seq "$GSORT_ROUNDS"); do
	asked=
	pick --shared-memory=auto --shared-memory=off
	exchange=$picked
	for choice in '2 3 4' '-S1M -S2M -S64M' \
		'--temp-compress=auto --temp-compress=none --temp-compress=zstd' \
		'-tu8 -ti16 -tu32le -tu64 -tf64' '--stable -r' \
		'--verify -u,--verify -u,--count --limit=1000,--verify -u,--limit=300 --argsort' \
		'--stable --skip-bytes=16' '--stable --stable --zstd=1' \
		'random few' 'random few tiny' '--stable --split=1 --split=3 --split=8'; do
		# Word splitting is intended.
		# shellcheck disable=SC2086
		pick $choice
		asked="$asked $(echo "$picked" | tr , ' ')"
	done
	agrees_as_asked "$asked"
done

exchange=

claim "part files that end at keys, and those of -u, have the same contents together"
agrees_together few random
agrees_together -u few random

claim "sorted inputs are merged, each rank reading its partition of them"
for _ in $(seq "$GSORT_ROUNDS"); do
	pick -tu8 -ti16 -tu64 -tf64
	order=$picked
	pick --stable -r
	order="$order $picked"
	for name in random few tiny; do
		# Word splitting is intended.
		# shellcheck disable=SC2086
		run $order "$name" -o "$name.sorted"
	done
	pick 2 3 5
	asked="$picked -m $order"
	for choice in '-S1M -S64M' '--batch-size=2 --batch-size=16' '--stable --skip-bytes=8' \
		'--verify -u,--verify -u,--count --limit=1000,--verify -u,--limit=300 --argsort' \
		'random few,random tiny,few,few' '--stable --split=1 --split=4'; do
		# Word splitting is intended.
		# shellcheck disable=SC2086
		pick $choice
		case $picked in
		[a-z]*) picked=$(echo "$picked" | sed 's/,/.sorted,/g; s/$/.sorted/') ;;
		esac
		asked="$asked $(echo "$picked" | tr , ' ')"
	done
	agrees_as_asked "$asked"
done
run random -o random.sorted
ranks 3 -m random.sorted few random.sorted -o out/x
[ "$status" -eq 2 ] || broken "-m of unsorted input: status $status"
grep -qE '^gsort: .*few: record [0-9]*: disorder; -m merges' stderr ||
	broken "-m of unsorted input: $(cat stderr)"
[ ! -e out/x ] || broken "-m of unsorted input: there is an output"
rm -f out/.gsort-temp-*

# finds N ARGUMENT...: N ranks and one process report the same disorder or none; mpirun may print
# more
finds() {
	n=$1
	shift
	run "$@"
	grep '^gsort: ' stderr > expected
	found=$status
	ranks "$n" "$@"
	[ "$status" -eq "$found" ] || broken "$n ranks, $*: status $status, not $found"
	grep '^gsort: ' stderr | cmp -s expected - || broken "$n ranks, $*: $(cat stderr)"
	[ ! -s stdout ] || broken "$n ranks, $*: wrote to standard output"
}

mkfifo pipe
claim "-c finds the first disorder of all ranks, and none in sorted input"
finds 2 -c random.sorted
finds 3 -c -u random.sorted
cp random.sorted input
cat tiny >> input
finds 4 -c input
finds 3 -C input
ranks 3 -c --stats-json=told --trace=times input
[ "$status" -eq 1 ] || broken "-c --trace: status $status: $(cat stderr)"
grep -q 'rank 2, on' times || broken "-c --trace: without the third rank"
grep -q '"ranks"' told || broken "-c --stats-json: $(cat told)"
ranks 2 -c pipe
[ "$status" -eq 2 ] || broken "-c of a pipe: status $status"
grep -q '^gsort: pipe: several ranks require regular files' stderr ||
	broken "-c of a pipe: $(cat stderr)"

claim "an output directory with other contents is refused once"
mkdir out/x
: > out/x/mine
ranks 3 --split=2 random -o out/x
[ "$status" -eq 2 ] || broken "out/x/mine: status $status"
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "out/x/mine: not one line"
grep -q '^gsort: out/x: contains mine' stderr || broken "out/x/mine"
rm -r out/x
all_gone "out/x/mine"

claim "real ranks plan like assumed ranks, and one of them prints the plan"
run --explain --ranks=3 --parallel=1 -S 4M random
mv stdout assumed
ranks 3 --explain --parallel=1 -S 4M random -o out/x
[ "$status" -eq 0 ] || broken "--explain: status $status"
grep -q 'each of 3 ranks' assumed || broken "--ranks=3: $(head -3 assumed)"
# This needs real ranks, which detect that $TMPDIR is in memory.
sed -i '/^temporary files .* is in memory (tmpfs)/d' stdout
cmp -s assumed stdout || broken "--explain: $(diff assumed stdout | head -4)"
all_gone "--explain"

claim "unsupported options are refused once, before anything is written"
refuses_all 'incomplete record' --zstd --partial=keep random
refuses_all 'cannot be used together' --verify --argsort random
refuses_all 'shard is not supported with several ranks; ranks share a merge' -m --shard=1/2 random
refuses_all 'ranks is not supported with several ranks; leave it out' --explain --ranks=5 random
refuses_all 'requires -u' --count random
run --explain --ranks=3 -m random.sorted
[ "$status" -eq 2 ] || broken "--explain -m: status $status"
grep -q '^gsort: --explain of a merge' stderr || broken "--explain -m: $(cat stderr)"
refuses_all 'pipe: several ranks require regular files' pipe
refuses_all 'nothing: cannot open' nothing
refuses_all 'pipe is not a regular file' --files0-from=pipe

claim "a pipe without a reader is refused as output, without waiting"
ranks 2 random -o pipe
[ "$status" -eq 2 ] || broken "-o pipe: status $status"
grep -q '^gsort: pipe: is not a regular file; several' stderr || broken "-o pipe: $(cat stderr)"
[ -p pipe ] || broken "-o pipe: it is gone"

claim "several ranks read a list of names from a regular file, and one rank from any file"
printf 'random\0few\0' > list
run --files0-from=list -o expected
ranks 2 --files0-from=list -o out/x
as_expected "a list"
printf 'random\0few\0' |
	timeout 120 "$MPIRUN" -np 1 "$GSORT_MPI" --files0-from=- -o out/x > stdout 2> stderr
status=$?
as_expected "a list from a pipe"

claim "several ranks do not wait for a list on standard input"
timeout 120 "$MPIRUN" -np 2 "$GSORT_MPI" --files0-from=- -o out/x <> pipe > stdout 2> stderr
status=$?
[ "$status" -eq 2 ] || broken "a list from standard input: status $status"
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "a list from standard input: not one line"
grep -q '^gsort: .* standard input is not a regular file' stderr ||
	broken "a list from standard input: $(cat stderr)"
all_gone "a list from standard input"

claim "the help has the options of gsort-mpi and is printed once"
ranks 2 --help
[ "$status" -eq 0 ] || broken "--help: status $status"
[ "$(grep -c '^ *--timeout=SECONDS' stdout)" -eq 1 ] || broken "--help: not one --timeout"
head -1 stdout | grep -q '^Usage: mpirun .*gsort-mpi .*-o FILE' ||
	broken "--help: $(head -1 stdout)"
run --help
! grep -q timeout stdout || broken "gsort --help: $(grep timeout stdout)"
refuses_all "'1000001' is not a number from 0 to 1000000" --timeout=1000001 random

claim "if one rank is asked for help and others for a sort, nothing is sorted"
launch -np 1 "$GSORT_MPI" --help : -np 2 "$GSORT_MPI" random -o out/x
[ "$status" -eq 2 ] || broken "status $status"
[ ! -s stdout ] || broken "answered"
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "not one line"
grep -q '^gsort: rank 1, .*: --help is not given here, but on the first rank' stderr ||
	broken "$(cat stderr)"
all_gone "--help"

claim "compressed outputs are those of one process, and compressed inputs are read"
agrees 3 --zstd --verify -S8M random few random
run random -o random.zst
agrees 4 --zstd=1 random.zst few --skip-bytes=8
ranks 2 random -o out/x.zst
[ "$status" -eq 0 ] || broken "-o x.zst: status $status"
cmp -s random.zst out/x.zst || broken "-o x.zst: the output differs"
rm -f out/x.zst
all_gone "-o x.zst"

claim "compressed part files are those of one process; with -u, their contents are together"
agrees_in_parts 3 --zstd=1 --verify -S2M random few --split=4
agrees_in_parts 4 --zstd=1 --skip-bytes=8 few --split=7
run -u few random -o expected
ranks 3 -u --zstd=1 few random --split=3 -o out/x
run -m out/x -o out/y
cmp -s out/y expected || broken "-u, in parts: the output differs"
rm -rf out/*
all_gone "-u, in parts"

claim "an error of all ranks is not attributed to a directory that ranks do not share"
ranks 3 -T nowhere random -o out/x
[ "$status" -eq 2 ] || broken "-T: status $status"
grep -qE '^gsort: (rank [12], on .*: )?nowhere: temporary directory: No such' stderr ||
	broken "-T: $(cat stderr)"
! grep -q 'of another rank in its directory' stderr || broken "-T: $(cat stderr)"
all_gone "-T nowhere"

claim "ranks with different options or files report the difference"
for other in 'few -o out/x' 'random -r -o out/x'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	launch -np 2 "$GSORT_MPI" random -o out/x : -np 2 "$GSORT_MPI" $other
	[ "$status" -eq 2 ] || broken "$other: status $status"
	grep -q '^gsort: rank 2, .*: differs: .* on rank 0 (' stderr ||
		broken "$other"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "$other: $(cat stderr)"
	all_gone "$other"
done
for job in check merge; do
	options="--$job"
	[ $job = check ] || options="--$job -o out/x"
	# Word splitting is intended.
	# shellcheck disable=SC2086
	launch -np 1 "$GSORT_MPI" few $options : -np 1 "$GSORT_MPI" few -o out/x
	[ "$status" -eq 2 ] || broken "$job: status $status"
	grep -q "job: differs: 'sort' here, '$job' on rank 0" stderr || broken "$job: $(cat stderr)"
	all_gone "$job"
done
finish
