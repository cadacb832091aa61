#!/bin/sh
# told - what gsort-mpi tells of a sort is of all ranks, and told once: see told.py
. "$(dirname "$0")/ranks.sh"
tests=$cli/../mpi

generate -n 300000 -t u64 -o random

claim "statistics are those of all ranks, and of each"
ranks 2 -S 1M --stats --stats-json=out/json --report=out/page.html --trace=out/trace random -o out/x
[ "$status" -eq 0 ] || broken "status $status"
python3 "$tests/told.py" out/json out/trace > findings 2>&1 || broken "$(cat findings)"
[ "$(grep -c '^300000 records of u64le' stderr)" -eq 1 ] || broken "not told once"
[ "$(grep -cE '^  [01]  .* s  ' stderr)" -eq 2 ] || broken "not a line for each rank"
grep -q 'id="ranks"' out/page.html || broken "no ranks in the page"
ls out > names
printf 'json\npage.html\ntrace\nx\n' | cmp -s - names || broken "there are: $(cat names)"

claim "a report that cannot be written is refused before the sort"
ranks 2 --stats-json=nowhere/x random -o out/y
[ "$status" -eq 2 ] || broken "status $status"
[ "$(grep -c '^gsort: ' stderr)" -eq 1 ] || broken "not one line"
[ ! -e out/y ] || broken "there is an output"
finish
