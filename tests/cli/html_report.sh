#!/bin/sh
# html_report - --report writes a self-contained HTML page (see html_report.py)
. "$(dirname "$0")/testlib.sh"

here=$(dirname "$0")

# paged CLAIM ARGUMENT...: run gsort and compare its report with its statistics
paged() {
	claim "$1"
	shift
	rm -f output stats page.html
	run --report=page.html --stats-json=stats --parallel=2 "$@"
	[ "$status" -eq 0 ] || broken "gsort $*: status $status"
	[ ! -s stderr ] || broken 'not silent'
	python3 "$here/html_report.py" page.html stats > findings 2>&1 || broken "$(cat findings)"
	nothing_left "gsort $*"
}

generate -n 300000 -o input
"$GSORT" input -o sorted
: > empty
odd=$(printf 'a <b>&amp; "c" \047d\047\n\377\033[31m')
ln input "$odd"
ln -s input ./--report

paged 'the report of a sort in memory' -S 64M input -o output
paged 'the report of a sort in several passes' -S 1M --verify input -o output
says 'merge passes' page.html
says 'of-verify' page.html
paged 'a report beside a trace, with partitions' -S 64M --partitions=3 --trace=trace input -o output
python3 "$here/timeline.py" trace stats output > findings 2>&1 || broken "$(cat findings)"
paged 'the report of a sort of records' -R 24 -k 3:b10 -k 16:u64:r -S 1M input -o output
paged 'the report of a merge' -m sorted sorted -o output
says 'records merged in' page.html
paged 'the report of a check' -c sorted
says 'records checked in' page.html
says '>In order' page.html
claim 'the report of a check that finds disorder'
run -C --report=page.html --stats-json=stats input
[ "$status" -eq 1 ] || broken "status $status"
python3 "$here/html_report.py" page.html stats > findings 2>&1 || broken "$(cat findings)"
says '>Not in order' page.html
paged 'the report of an empty input' empty -o output
paged 'the report of files with odd names' -S 64M "$odd" ./--report -o "out$odd"
paged 'the report of a sort to part files' -S 64M --split=3 input -o divided
says 'divided, 3 part files' page.html
claim 'the report of a sort from a pipe'
cat input | "$GSORT" -S 1M --report=page.html --stats-json=stats > output || broken "status $?"
python3 "$here/html_report.py" page.html stats > findings 2>&1 || broken "$(cat findings)"
says 'standard input' page.html

claim 'the file is written like other reports'
refuses 'input.*--report|--report.*input' --report=input input
refuses '-o.*--report|--report.*-o' --report=output input
refuses '--report.*--trace|--trace.*--report' --report=x --trace=x input
refuses '--explain.*--report' --explain --report=x input
refuses '--explain and --stats cannot' --explain --stats input
refuses '--explain.*--stats-json' --explain --stats-json=x input
refuses '--explain.*--trace' --explain --trace=x input
refuses 'nowhere/page' --report=nowhere/page input
echo before > page.html
refuses 'none.bin' --report=page.html none.bin
[ "$(cat page.html)" = before ] || broken 'a sort that failed has left a report'
"$GSORT" input -o output --report=/dev/full 2> stderr
[ $? -eq 2 ] || broken 'an unwritten page is not an error'
same sorted output 'and the output is there'

claim 'a browser reports no errors'
"$GSORT" -S 1M input -o output --report=page.html || broken "status $?"
browser=$(command -v chromium || command -v chromium-browser)
if [ -n "$browser" ]; then
	for theme in 0 1; do
		HOME=$work "$browser" --headless=new --no-sandbox --disable-gpu \
			--user-data-dir="$work/profile" --enable-logging=stderr \
			--blink-settings=preferredColorScheme=$theme --window-size=1100,3000 \
			--screenshot="$work/shot.png" "file://$work/page.html" 2> log
		[ -s shot.png ] || broken 'no picture'
		! grep -q CONSOLE log || broken "$(grep CONSOLE log)"
		rm -rf shot.png profile
	done
fi

finish
