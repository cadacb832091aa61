#!/bin/sh
# same_output - gsort-mpi writes the same bytes as gsort with any number of ranks
#
# Starting mpirun takes half a second, so there are few sorts. GSORT_SEED repeats a run.
# GSORT_ROUNDS makes it longer.
. "$(dirname "$0")/testlib.sh"

GSORT_ROUNDS=${GSORT_ROUNDS:-2}
echo "GSORT_SEED=$seed"

# expect_rank_error REGEX ARGUMENT...: several ranks refuse with one line and write no output
expect_rank_error() {
	regex=$1
	shift
	run_ranks 3 "$@" -o out/x
	expect_status 2 "$*"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "$*: not one line"
	grep -qE "^gsort: .*$regex" stderr || fail "$*: does not say $regex"
	expect_clean_directory "$*"
}

# compare_parts N ARGUMENT...: like compare_with_gsort, with a directory of part files
compare_parts() {
	n=$1
	shift
	mkdir expected.d
	expect_exit 0 "$@" -o expected.d/x
	run_ranks "$n" "$@" -o out/x
	expect_status 0 "$n ranks, $*"
	diff -r expected.d out > difference || fail "$n ranks, $*: $(head -1 difference)"
	rm -rf expected.d out/x
	expect_clean_directory "$n ranks, $*"
}

# compare_options WORDS: like compare_with_gsort, or compare_parts if WORDS contain a number of
# parts. With -u the boundaries of part files may differ.
compare_options() {
	# Word splitting is intended.
	# shellcheck disable=SC2086
	case $1 in
	*-u*--split*) compare_with_gsort ${1%--split*} ;;
	*--split*) compare_parts $1 ;;
	*) compare_with_gsort $1 ;;
	esac
}

# compare_joined_parts ARGUMENT...: like compare_with_gsort, with concatenated part files that end
# at keys
compare_joined_parts() {
	run "$@" -o expected
	run_ranks 3 --split=4 --split-by=keys "$@" -o out/x
	expect_status 0 "in parts, $*"
	cat out/x/part-* | cmp -s - expected || fail "in parts, $*: the output differs"
	run -c out/x
	[ "$status" -eq 0 ] || fail "in parts, $*: the manifest differs"
	rm -rf out/x
	expect_clean_directory "in parts, $*"
}

generate -n 200000 -t u64 -o random
generate -n 100000 -t u64 -d hundred-keys -o few
generate -n 20000 -R 24 -k 3:b10 -d hundred-keys -o records
head -c 24 random > tiny

claim "one rank works like a single process, and two share spilled runs"
compare_with_gsort 1 random
compare_with_gsort 2 -S 1M --temp-limit=1G random few random

claim "the sort is stable across ranks"
compare_with_gsort 4 -R 24 -k 3:b10 records --argsort

claim "-u keeps the first or the last of equal records of all ranks"
generate -n 400000 -R 24 -k 3:b2 -o equal
compare_with_gsort 3 -S 1M -R 24 -k 3:b2 -u --keep=last equal
compare_with_gsort 3 -R 24 -k 3:b2 -u --keep=last --count equal records
rm equal

claim "with --limit each rank writes and preallocates only its part"
generate -n 600000 -t u64 -o large
compare_with_gsort 3 --limit=450001 large
rm large

claim "part files and manifest are those of one process"
compare_parts 3 --split=5 -S1M --verify random few
compare_parts 4 --split=2 -R 24 -k 3:b10 --limit=15000 --skip-bytes=24 records

if [ "${1:-}" = briefly ]; then
	claim "one rank that fails ends all"
	run_ranks 3 -T nowhere random -o out/x
	[ "$status" -ne 0 ] || fail "-T: status $status"
	grep -q 'nowhere: temporary directory: No such' stderr || fail "-T: $(cat stderr)"
	expect_clean_directory "-T nowhere"
	finish
fi

claim "there may be more ranks than records"
compare_with_gsort 8 tiny

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
	compare_options "$asked"
done

exchange=

claim "part files that end at keys, and those of -u, have the same contents together"
compare_joined_parts few random
compare_joined_parts -u few random

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
	compare_options "$asked"
done
run random -o random.sorted
run_ranks 3 -m random.sorted few random.sorted -o out/x
expect_status 2 '-m of unsorted input'
grep -qE '^gsort: .*few: record [0-9]*: disorder; -m merges' stderr ||
	fail "-m of unsorted input: $(cat stderr)"
[ ! -e out/x ] || fail "-m of unsorted input: there is an output"
rm -f out/.gsort-temp-*

# compare_check N ARGUMENT...: N ranks and one process report the same disorder or none; mpirun
# may print more
compare_check() {
	n=$1
	shift
	run "$@"
	grep '^gsort: ' stderr > expected
	found=$status
	run_ranks "$n" "$@"
	expect_status "$found" "$n ranks, $*"
	grep '^gsort: ' stderr | cmp -s expected - || fail "$n ranks, $*: $(cat stderr)"
	[ ! -s stdout ] || fail "$n ranks, $*: wrote to standard output"
}

mkfifo pipe
claim "-c finds the first disorder of all ranks, and none in sorted input"
compare_check 2 -c random.sorted
compare_check 3 -c -u random.sorted
cp random.sorted input
cat tiny >> input
compare_check 4 -c input
compare_check 3 -C input
run_ranks 3 -c --stats-json=told --trace=times input
[ "$status" -eq 1 ] || fail "-c --trace: status $status: $(cat stderr)"
grep -q 'rank 2, on' times || fail "-c --trace: without the third rank"
grep -q '"ranks"' told || fail "-c --stats-json: $(cat told)"
run_ranks 2 -c pipe
expect_status 2 '-c of a pipe'
grep -q '^gsort: pipe: several ranks require regular files' stderr ||
	fail "-c of a pipe: $(cat stderr)"

claim "an output directory with other contents is refused once"
mkdir out/x
: > out/x/mine
run_ranks 3 --split=2 random -o out/x
expect_status 2 'out/x/mine'
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "out/x/mine: not one line"
grep -q '^gsort: out/x: contains mine' stderr || fail "out/x/mine"
rm -r out/x
expect_clean_directory "out/x/mine"

claim "real ranks plan like assumed ranks, and one of them prints the plan"
run --explain --ranks=3 --parallel=1 -S 4M random
mv stdout assumed
run_ranks 3 --explain --parallel=1 -S 4M random -o out/x
expect_status 0 '--explain'
grep -q 'each of 3 ranks' assumed || fail "--ranks=3: $(head -3 assumed)"
# This needs real ranks, which detect that $TMPDIR is in memory.
sed -i '/^temporary files .* is in memory (tmpfs)/d' stdout
cmp -s assumed stdout || fail "--explain: $(diff assumed stdout | head -4)"
expect_clean_directory "--explain"

claim "unsupported options are refused once, before anything is written"
expect_rank_error 'incomplete record' --zstd --partial=keep random
expect_rank_error 'cannot be used together' --verify --argsort random
expect_rank_error 'shard is not supported with several ranks; ranks share a merge' -m --shard=1/2 \
	random
expect_rank_error 'ranks is not supported with several ranks; leave it out' --explain --ranks=5 \
	random
expect_rank_error 'requires -u' --count random
expect_exit 2 --explain --ranks=3 -m random.sorted
grep -q '^gsort: --explain of a merge' stderr || fail "--explain -m: $(cat stderr)"
expect_rank_error 'pipe: several ranks require regular files' pipe
expect_rank_error 'nothing: cannot open' nothing
expect_rank_error 'pipe is not a regular file' --files0-from=pipe

claim "a pipe without a reader is refused as output, without waiting"
run_ranks 2 random -o pipe
expect_status 2 '-o pipe'
grep -q '^gsort: pipe: is not a regular file; several' stderr || fail "-o pipe: $(cat stderr)"
[ -p pipe ] || fail "-o pipe: it is gone"

claim "several ranks read a list of names from a regular file, and one rank from any file"
printf 'random\0few\0' > list
run --files0-from=list -o expected
run_ranks 2 --files0-from=list -o out/x
expect_rank_output "a list"
printf 'random\0few\0' |
	timeout 120 "$MPIRUN" -np 1 "$GSORT_MPI" --files0-from=- -o out/x > stdout 2> stderr
status=$?
expect_rank_output "a list from a pipe"

claim "several ranks do not wait for a list on standard input"
timeout 120 "$MPIRUN" -np 2 "$GSORT_MPI" --files0-from=- -o out/x <> pipe > stdout 2> stderr
status=$?
expect_status 2 'a list from standard input'
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "a list from standard input: not one line"
grep -q '^gsort: .* standard input is not a regular file' stderr ||
	fail "a list from standard input: $(cat stderr)"
expect_clean_directory "a list from standard input"

claim "the help has the options of gsort-mpi and is printed once"
run_ranks 2 --help
expect_status 0 '--help'
[ "$(grep -c '^ *--timeout=SECONDS' stdout)" -eq 1 ] || fail "--help: not one --timeout"
head -1 stdout | grep -q '^Usage: mpirun .*gsort-mpi .*-o FILE' || fail "--help: $(head -1 stdout)"
run --help
! grep -q timeout stdout || fail "gsort --help: $(grep timeout stdout)"
expect_rank_error "'1000001' is not a number from 0 to 1000000" --timeout=1000001 random

claim "if one rank is asked for help and others for a sort, nothing is sorted"
launch -np 1 "$GSORT_MPI" --help : -np 2 "$GSORT_MPI" random -o out/x
expect_status 2
[ ! -s stdout ] || fail "answered"
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "not one line"
grep -q '^gsort: rank 1, .*: --help is not given here, but on the first rank' stderr ||
	fail "$(cat stderr)"
expect_clean_directory "--help"

claim "compressed outputs are those of one process, and compressed inputs are read"
compare_with_gsort 3 --zstd --verify -S8M random few random
run random -o random.zst
compare_with_gsort 4 --zstd=1 random.zst few --skip-bytes=8
run_ranks 2 random -o out/x.zst
expect_status 0 '-o x.zst'
cmp -s random.zst out/x.zst || fail "-o x.zst: the output differs"
rm -f out/x.zst
expect_clean_directory "-o x.zst"

claim "compressed part files are those of one process; with -u, their contents are together"
compare_parts 3 --zstd=1 --verify -S2M random few --split=4
compare_parts 4 --zstd=1 --skip-bytes=8 few --split=7
run -u few random -o expected
run_ranks 3 -u --zstd=1 few random --split=3 -o out/x
run -m out/x -o out/y
cmp -s out/y expected || fail "-u, in parts: the output differs"
rm -rf out/*
expect_clean_directory "-u, in parts"

claim "an error of all ranks is not attributed to a directory that ranks do not share"
run_ranks 3 -T nowhere random -o out/x
expect_status 2 '-T'
grep -qE '^gsort: (rank [12], on .*: )?nowhere: temporary directory: No such' stderr ||
	fail "-T: $(cat stderr)"
! grep -q 'of another rank in its directory' stderr || fail "-T: $(cat stderr)"
expect_clean_directory "-T nowhere"

claim "ranks with different options or files report the difference"
for other in 'few -o out/x' 'random -r -o out/x'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	launch -np 2 "$GSORT_MPI" random -o out/x : -np 2 "$GSORT_MPI" $other
	expect_status 2 "$other"
	grep -q '^gsort: rank 2, .*: differs: .* on rank 0 (' stderr || fail "$other"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "$other: $(cat stderr)"
	expect_clean_directory "$other"
done
for job in check merge; do
	options="--$job"
	[ $job = check ] || options="--$job -o out/x"
	# Word splitting is intended.
	# shellcheck disable=SC2086
	launch -np 1 "$GSORT_MPI" few $options : -np 1 "$GSORT_MPI" few -o out/x
	expect_status 2 "$job"
	grep -q "job: differs: 'sort' here, '$job' on rank 0" stderr || fail "$job: $(cat stderr)"
	expect_clean_directory "$job"
done
finish
