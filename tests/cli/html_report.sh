#!/bin/sh
# html_report - --report writes a self-contained HTML page (see html_report.py)
. "$(dirname "$0")/testlib.sh"

here=$(dirname "$0")

# check_report CLAIM ARGUMENT...: run gsort and compare its report with its statistics
check_report() {
	claim "$1"
	shift
	rm -f output stats page.html
	expect_exit 0 --report=page.html --stats-json=stats --parallel=2 "$@"
	[ ! -s stderr ] || fail 'not silent'
	python3 "$here/html_report.py" page.html stats > findings 2>&1 || fail "$(cat findings)"
	expect_no_temp_files "gsort $*"
}

generate -n 300000 -o input
"$GSORT" input -o sorted
: > empty
odd=$(printf 'a <b>&amp; "c" \047d\047\n\377\033[31m')
ln input "$odd"
ln -s input ./--report

check_report 'the report of a sort in memory' -S 64M input -o output
check_report 'the report of a sort in several passes' -S 1M --verify input -o output
expect_line 'merge passes' page.html
expect_line 'of-verify' page.html
check_report 'a report beside a trace, with partitions' -S 64M --partitions=3 --trace=trace input \
	-o output
python3 "$here/timeline.py" trace stats output > findings 2>&1 || fail "$(cat findings)"
check_report 'the report of a sort of records' -R 24 -k 3:b10 -k 16:u64:r -S 1M input -o output
check_report 'the report of a merge' -m sorted sorted -o output
expect_line 'records merged in' page.html
check_report 'the report of a check' -c sorted
expect_line 'records checked in' page.html
expect_line '>In order' page.html
claim 'the report of a check that finds disorder'
expect_exit 1 -C --report=page.html --stats-json=stats input
python3 "$here/html_report.py" page.html stats > findings 2>&1 || fail "$(cat findings)"
expect_line '>Not in order' page.html
check_report 'the report of an empty input' empty -o output
check_report 'the report of files with odd names' -S 64M "$odd" ./--report -o "out$odd"
check_report 'the report of a sort to part files' -S 64M --split=3 input -o divided
expect_line 'divided, 3 part files' page.html
claim 'the report of a sort from a pipe'
cat input | "$GSORT" -S 1M --report=page.html --stats-json=stats > output || fail "status $?"
python3 "$here/html_report.py" page.html stats > findings 2>&1 || fail "$(cat findings)"
expect_line 'standard input' page.html

claim 'the file is written like other reports'
expect_error 'input.*--report|--report.*input' --report=input input
expect_error '-o.*--report|--report.*-o' --report=output input
expect_error '--report.*--trace|--trace.*--report' --report=x --trace=x input
expect_error '--explain.*--report' --explain --report=x input
expect_error '--explain and --stats cannot' --explain --stats input
expect_error '--explain.*--stats-json' --explain --stats-json=x input
expect_error '--explain.*--trace' --explain --trace=x input
expect_error 'nowhere/page' --report=nowhere/page input
echo '<before>' > page.html
expect_error 'none.bin' --report=page.html none.bin
[ "$(cat page.html)" = '<before>' ] || fail 'a sort that failed has left a report'
"$GSORT" input -o output --report=/dev/full 2> stderr
[ $? -eq 2 ] || fail 'an unwritten page is not an error'
expect_same sorted output 'and the output is there'

claim 'a browser reports no errors, and the phases fill their bar'
"$GSORT" -S 1M input -o output --report=page.html || fail "status $?"
sed -n 's/.*flex-grow:\([0-9.]*\).*/\1/p' page.html | awk '{ sum += $1 } END { exit sum < 1 }' ||
	fail 'the phases do not fill their bar'
browser=$(command -v chromium || command -v chromium-browser)
if [ -n "$browser" ]; then
	for theme in 0 1; do
		HOME=$work "$browser" --headless=new --no-sandbox --disable-gpu \
			--user-data-dir="$work/profile" --enable-logging=stderr \
			--blink-settings=preferredColorScheme=$theme --window-size=1100,3000 \
			--screenshot="$work/shot.png" "file://$work/page.html" 2> log
		[ -s shot.png ] || fail 'no picture'
		! grep -q CONSOLE log || fail "$(grep CONSOLE log)"
		rm -rf shot.png profile
	done
fi

finish
