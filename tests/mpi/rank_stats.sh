#!/bin/sh
# rank_stats - gsort-mpi reports the statistics of all ranks once (see rank_stats.py)
. "$(dirname "$0")/testlib.sh"

generate -n 300000 -t u64 -o random

claim "statistics are those of all ranks and of each rank"
run_ranks 2 -S 1M --stats --stats-json=out/json --report=out/page.html --trace=out/trace random \
	-o out/x
expect_status 0
python3 "$cli/rank_stats.py" out/json out/trace > findings 2>&1 || fail "$(cat findings)"
[ "$(grep -c '^300000 records of u64le' stderr)" -eq 1 ] || fail "not printed once"
[ "$(grep -cE '^  [01]  .* s  ' stderr)" -eq 2 ] || fail "not a line for each rank"
! grep 'could not be written' stderr > missed || fail "$(cat missed)"
awk 'length > 100' stderr > wide
[ ! -s wide ] || fail "wider than 100 columns: $(cat wide)"
grep -q '^2 ranks, each on CPU, ' stderr || fail "not all ranks are named"
grep -q 'id="ranks"' out/page.html || fail "no ranks in the page"
for part in roles throughput space; do
	grep -A 2 "id=\"$part\"" out/page.html | grep -q 'Rank 0 only, on ' ||
		fail "the pictures of $part do not name the rank"
done
if fallocate -l 4K room 2> room.says && grep '^written: .* 0 B mmap$' stderr; then
	fail "ranks of one machine wait for each other"
fi
ls out > names
printf 'json\npage.html\ntrace\nx\n' | cmp -s - names || fail "there are: $(cat names)"

claim "statistics of lines are those of all ranks, too"
seq 300000 > numbers
run_ranks 3 --lines -S 1M --stats --stats-json=out/json --report=out/page.html --trace=out/trace \
	numbers -o out/x
expect_status 0
python3 "$cli/rank_stats.py" out/json out/trace > findings 2>&1 || fail "$(cat findings)"
nbytes=$(wc -c < numbers)
grep -q "\"input_bytes\": $nbytes," out/json || fail "input_bytes is not $nbytes"
[ "$(grep -c '^300000 lines .* 300000 written' stderr)" -eq 1 ] || fail "not printed once"
grep -q 'id="ranks"' out/page.html || fail "no ranks in the page"
run_ranks 3 --lines -c --stats out/x
grep -q "^300000 lines .* read" stderr || fail "-c: $(cat stderr)"
grep -q 'disk: 2 MiB read' stderr || fail "-c: $(cat stderr)"
rm out/json out/page.html out/trace

claim "a single rank is singular"
run_ranks 1 --lines --stats numbers -o out/x
grep -q '^1 rank, on CPU, ' stderr && grep -q '^1 rank; disk: ' stderr || fail "$(cat stderr)"

claim "progress is that of all ranks, even if one is stopped"
truncate -s 64M disordered
printf '\1' | dd of=disordered conv=notrunc 2> /dev/null
run_ranks 2 -c --progress=always disordered
done=$(sed -n 's/^verify: \([0-9]*\) %.*/\1/p' stderr | tail -n 1)
[ "${done:-0}" -ge 40 ] && [ "$done" -lt 100 ] || fail "at the end: $(cat stderr)"
run_ranks 3 -S 1M --progress=always random -o out/x
grep '^final merge' stderr | tail -n 1 > line
grep -q ': 100 %.*; total 100 %$' line || fail "at the end: $(cat stderr)"
rm -f disordered

claim "one rank warns of too large a -S"
for n in 1 2; do
	launch -np $n sh -c 'ulimit -v 8000000 && exec "$@"' sh "$GSORT_MPI" -S 16G \
		--assume-size=64G --explain -
	expect_status 0 "$n ranks"
	expect_message '^gsort: warning: -S: the sort may need .*; use a smaller -S$' "$n ranks"
done

claim "a failed rank removes the part files, and only its error is reported"
generate -n 400 -R 24 -o records
run -R 24 -k 7:b8 records -o records
run_ranks 5 -m -r --limit=10 --split=1 -R 24 -k 7:b8 records -o out/y
expect_status 2
grep -q 'records: record .*: disorder' stderr || fail "not reported: $(cat stderr)"
! grep 'of another rank in its directory' stderr > missed || fail "$(cat missed)"

claim "a report that cannot be written is refused before the sort"
for mode in '' --lines; do
	# shellcheck disable=SC2086
	run_ranks 2 $mode --stats-json=nowhere/x random -o out/y
	expect_status 2 "$mode"
	[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || fail "$mode: not one line"
	[ ! -e out/y ] || fail "$mode: there is an output"
done

case $("$MPIRUN" --version) in
*'Open MPI'*)
	claim "on one machine Open MPI looks for no network, unless it is told to"
	for chosen in '' '^ucx'; do
		export OMPI_MCA_pml_base_verbose=10 ${chosen:+"OMPI_MCA_pml=$chosen"}
		run_ranks 2 random -o out/x
		expect_status 0
		grep -q 'component ob1 selected' stdout stderr || fail "$(cat stderr)"
		looked=$(cat stdout stderr | grep -c 'component cm ')
		expected=${chosen:+1}
		[ $((looked > 0)) -eq "${expected:-0}" ] ||
			fail "with '$chosen' it looks $looked times"
	done
	unset OMPI_MCA_pml OMPI_MCA_pml_base_verbose
	;;
esac
finish
