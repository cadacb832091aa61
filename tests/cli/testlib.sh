# testlib - functions for tests of the programs; source it at the beginning of a script
#
# GSORT, GSORT_GEN, GSORT_CHECK, GSORT_BENCH, KEY_LINES, PEAK_MEMORY, PEAK_SPACE, MEASURE_COMMAND
# and RUN_IN_PTY in the environment are the paths of the programs. A script runs in a temporary
# directory that contains $TMPDIR. It makes claims, and ends with `finish`, which exits with 1 if a
# claim failed. Each failure prints one line.
#
#	claim "old output is untouched"	name the claim of the next lines
#	expect_output FILE ARGUMENT...	gsort writes the bytes of FILE, no messages, no other files
#	expect_error REGEX ARGUMENT...	status 2, one line that matches, no file changed
set -u
export LC_ALL=C
work=$(mktemp -d "${GSORT_TEST_DIR:-${TMPDIR:-/tmp}}/gsort-test.XXXXXX") || exit 99
trap 'cd /; rm -rf "$work" "$work.failed"' EXIT
trap 'exit 99' HUP INT TERM
cd "$work" || exit 99
mkdir tmp
export TMPDIR="$work/tmp"
export PYTHONDONTWRITEBYTECODE=1
claim=

claim() {
	claim=$*
}

# fail WHAT: report that the claim failed. Failures are counted in a file, because a function in a
# pipe runs in a subshell.
fail() {
	echo "FAIL: $claim: $*"
	[ ! -s stderr ] || sed 's/^/	stderr: /' stderr | head -5
	echo "$claim" >> "$work.failed"
}

finish() {
	[ ! -e "$work.failed" ] || echo "$(wc -l < "$work.failed") failed"
	[ ! -e "$work.failed" ]
	exit
}

# run ARGUMENT...: run gsort with the current standard input; sets $status
run() {
	"$GSORT" "$@" > stdout 2> stderr
	status=$?
}

# run_for MILLISECONDS ARGUMENT...: like run, but kill gsort after this time; sets $moment, too.
# $status is 137 if gsort was still running.
run_for() {
	moment=$(printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)))
	shift
	"$GSORT" "$@" > stdout 2> stderr &
	process=$!
	sleep "$moment"
	kill -9 $process 2> /dev/null
	wait $process 2> /dev/null
	status=$?
}

generate() {
	"$GSORT_GEN" "$@" || {
		echo "gsort-gen $* failed"
		exit 99
	}
}

# sort [ARGUMENT]...: GNU sort, which allocates much more memory than it uses. meson makes malloc()
# fill memory.
sort() {
	MALLOC_PERTURB_=0 command sort "$@"
}

# sorted_lines SPEC [SORT-OPTION]... < RECORDS: sort the lines that `key_lines SPEC` prints
sorted_lines() {
	sorted_spec=$1
	shift
	"$KEY_LINES" $sorted_spec | sort -s -k1,1 "$@"
}

# print_column N < LINES: print a column as bytes
print_column() {
	"$KEY_LINES" --bytes="$1"
}

# reference_sort SPEC [SORT-OPTION]... < RECORDS: print the records as GNU sort sorts them
reference_sort() {
	sorted_lines "$@" | print_column 2
}

# last_of_equal < SORTED-LINES: print the last line of each key
last_of_equal() {
	awk '$1 "" != key "" && NR > 1 { print line }
	{ key = $1; line = $0 }
	END { if (NR > 0) print line }'
}

# count_equal le|be COLUMN [last] < SORTED-LINES: for each key, print the number of lines in this
# byte order and the column of the first or last line
count_equal() {
	awk -v order="$1" -v column="$2" -v last="${3:-}" '
	function write_count(    hex, digits, i) {
		hex = sprintf("%016x", n)
		digits = hex
		if (order == "le") {
			digits = ""
			for (i = 15; i >= 1; i -= 2)
				digits = digits substr(hex, i, 2)
		}
		print digits text
	}
	$1 "" == key "" && NR > 1 { # compare as text: as numbers 0e1 and 0e2 are equal
		n++
		if (last) text = $column
		next
	}
	{ if (NR > 1) write_count(); key = $1; n = 1; text = $column }
	END { if (NR > 0) write_count() }' | xxd -r -p
}

# expect_same FILE FILE WHAT: the files have the same content
expect_same() {
	difference=$(cmp "$1" "$2" 2>&1) || fail "$3: $difference"
}

# list_files: set $all_files to the names of all files in the directory. `ls` would take ten times
# as long, and most claims list files several times.
list_files() {
	set -- .* *
	all_files=$*
}

# expect_no_temp_files WHAT: $TMPDIR is empty, except for a file that ThreadSanitizer creates at
# the start of a program and that a kill leaves behind
expect_no_temp_files() {
	for temp_file in tmp/.[!.]* tmp/..?* tmp/*; do
		case $temp_file in
		'tmp/.[!.]*' | 'tmp/..?*' | 'tmp/*') ;;
		tmp/tsan.rodata.*) rm -f "$temp_file" ;;
		*) fail "$1: left behind: ${temp_file#tmp/}" ;;
		esac
	done
}

# expect_status STATUS [WHAT]: gsort, or the command that has set $status, exited with STATUS
expect_status() {
	[ "$status" -eq "$1" ] || fail "${2:+$2: }status $status, not $1"
}

# expect_exit STATUS ARGUMENT...: gsort exits with STATUS
expect_exit() {
	exit_status=$1
	shift
	run "$@"
	expect_status "$exit_status" "gsort $*"
}

# expect_success ARGUMENT...: gsort exits with 0, prints no message and leaves no temporary file
expect_success() {
	expect_exit 0 "$@"
	[ ! -s stderr ] || fail "gsort $*: not silent"
	expect_no_temp_files "gsort $*"
}

expect_output() {
	expected_output=$1
	shift
	[ ! -e output ] || rm -f output
	expect_success -o output "$@"
	expect_same "$expected_output" output "gsort $*"
}

# expect_message REGEX WHAT: `stderr` is one line of gsort that matches
expect_message() {
	first_line=
	if ! { IFS= read -r first_line && ! IFS= read -r next_line; } < stderr ||
		[ -n "$next_line" ] || [ "$first_line" = "${first_line#gsort: }" ]; then
		fail "$2: not one line of gsort's"
	elif ! grep -qE -e "$1" stderr; then
		fail "$2: the message does not match '$1'"
	fi
}

# expect_line_after_sigusr1 INPUT ARGUMENT...: gsort, which reads INPUT from `fifo`, prints one line
# when it gets SIGUSR1, and succeeds
expect_line_after_sigusr1() {
	usr1_input=$1
	shift
	"$GSORT" "$@" 2> stderr &
	exec 3> fifo
	cat "$usr1_input" >&3
	kill -USR1 $!
	# On a busy machine the thread may run late.
	for i in $(seq 300); do
		[ ! -s stderr ] || break
		sleep 0.1
	done
	exec 3>&-
	wait $! || fail "gsort $*: status $?"
	[ "$(wc -l < stderr)" -eq 1 ] || fail "gsort $*: $(wc -l < stderr) lines"
}

# expect_failure REGEX ARGUMENT...: gsort exits with 2, prints one line that matches and no output
expect_failure() {
	failure_regex=$1
	shift
	expect_exit 2 "$@"
	expect_message "$failure_regex" "gsort $*"
	[ ! -s stdout ] || fail "gsort $*: wrote to standard output"
}

expect_error() {
	error_regex=$1
	shift
	echo 'what was there before' > output
	echo 'what was there before' > before
	: > stdout
	: > stderr
	list_files
	files_before=$all_files
	expect_failure "$error_regex" -o output "$@"
	expect_same before output "gsort $*: the older output"
	list_files
	[ "$all_files" = "$files_before" ] || fail "gsort $*: new files"
	rm -f before output
	expect_no_temp_files "gsort $*"
}

# expect_line REGEX FILE: a line of the file matches
expect_line() {
	grep -qE -e "$1" "$2" || fail "$2: no line matches '$1'"
}

# expect_json FILE: the file is one JSON value
expect_json() {
	awk '
	{ text = text $0 "\n" }
	END {
		gsub(/\\./, "", text)
		gsub(/"[^"]*"/, "s", text)
		gsub(/-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|true|false|null/, "s", text)
		gsub(/[ \t\n]/, "", text)
		do {
			n = gsub(/\{(s:s(,s:s)*)?\}|\[(s(,s)*)?\]/, "s", text)
		} while (n)
		exit text != "s"
	}' "$1" || fail "$1 is not JSON"
}

# compressed_inputs EXTENSION COMMAND LEVEL...: make claims about compressed inputs. COMMAND, which
# is split into words, compresses standard input. Leaves the files input, second, expected, both and
# input.EXTENSION.
# shellcheck disable=SC2086
compressed_inputs() {
	extension=$1
	compress=$2
	shift 2
	generate -n 500000 -d nearly-sorted -o input
	generate -n 300000 --seed=2 -o second
	"$GSORT" input -o expected
	"$GSORT" second -o second_sorted
	"$GSORT" input second -o both
	for name in input second expected second_sorted; do
		$compress < $name > $name.$extension
	done

	claim 'a compressed file is read as its content, with any name and level'
	expect_output expected input.$extension
	expect_output expected -S 1M input.$extension
	expect_output expected --parallel=1 input.$extension
	cp input.$extension plain_name
	expect_output expected plain_name
	for level in "$@"; do
		$compress -$level < input > level.$extension
		expect_output expected level.$extension
	done

	claim 'a compressed pipe is read as its content'
	cat input.$extension | expect_output expected
	cat input.$extension | expect_output expected -S 1M -
	mkfifo fifo
	cat input.$extension > fifo &
	expect_output expected fifo
	expect_output expected - < input.$extension
	: > empty
	$compress < empty > nothing.$extension
	expect_output empty nothing.$extension
	cat nothing.$extension | expect_output empty

	claim 'compressed and plain inputs are sorted together'
	expect_output both input.$extension second.$extension
	expect_output both input second.$extension
	expect_output both input.$extension second
	cat input.$extension | expect_output both - second
	cat input | expect_output both - second.$extension

	claim 'compressed inputs can be checked and merged'
	expect_success -c expected.$extension
	cat expected.$extension | expect_success -c
	expect_exit 1 -c input.$extension
	expect_output both -m expected.$extension second_sorted.$extension
	expect_output both -m expected.$extension second_sorted
	cat expected.$extension | expect_output both -m - second_sorted.$extension

	claim 'headers and incomplete records are those of the content'
	{ printf 0123456789 && cat input; } | $compress > header.$extension
	{ printf 0123456789 && cat expected; } > header_expected
	expect_output header_expected --skip-bytes=10 header.$extension
	head -c 3999997 input | $compress > partial.$extension
	expect_error "partial.$extension.*3999997.*left over" partial.$extension
	expect_success --partial=drop -o output partial.$extension
	[ "$(wc -c < output)" -eq 3999992 ] || fail 'the incomplete record was not dropped'
}

# damaged_inputs EXTENSION MESSAGE POSITION...: inputs with overwritten bytes are refused, with a
# position after the damage
damaged_inputs() {
	extension=$1
	message=$2
	shift 2
	for at in "$@"; do
		cp input.$extension damaged.$extension
		printf '\252\125\252' |
			dd of=damaged.$extension bs=1 seek="$at" conv=notrunc 2> /dev/null
		expect_error "damaged.$extension$message" damaged.$extension
		limit=$(sed -n 's/.* is damaged before byte \([0-9]*\): .*/\1/p' stderr)
		[ "${limit:-$((at + 1))}" -gt "$at" ] || fail "$at is not before $limit"
	done
}
