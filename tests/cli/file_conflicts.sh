#!/bin/sh
# file_conflicts - gsort refuses one file in two roles, and reports appear when they are complete
. "$(dirname "$0")/testlib.sh"

# create_files: create inputs, a list of names, an older output, an older report, and links to them
create_files() {
	cd "$work" || exit 99
	rm -rf files
	mkdir files files/d
	cd files || exit 99
	cp ../v v
	printf 'v\0' > l
	echo 'an older output' > o
	echo '{ "older": "report" }' > r
	ln v hard
	ln -s v soft
	ln -s new to-new
	ln -s .gsort-0123456789abcdef to-hidden
	ln l hard-list
	is_new=no
}

# list_files: print the names and contents of all files
list_files() {
	cksum * d/* .[!.]* 2>&1
}

generate -n 5000 -o v
"$GSORT" v -o expected

# list_files: print the names and contents of all files
list_files() {
	find . -type f -exec cksum {} + | sort
	find . | sort
}

# expect_conflict REGEX COMMAND: the command ($g is gsort) is refused with one line, and no file
# changes
expect_conflict() {
	regex=$1
	shift
	if [ $is_new = yes ]; then
		cd files || exit 99
	else
		create_files
		list_files > ../before
	fi
	(eval "$*") > ../stdout 2> ../stderr < /dev/null
	status=$?
	list_files > ../after
	cd "$work" || exit 99
	expect_status 2 "$*"
	expect_message "$regex" "$*"
	is_new=yes
	cmp -s before after || {
		fail "$*: $(diff before after | tr '\n' ' ')"
		is_new=no
	}
}
is_new=no
g=$GSORT

claim 'a report over an input'
expect_conflict "--trace 'v' and input 'v' are the same file" '$g v --trace=v -o o'
expect_conflict "--stats-json 'v' and input 'v' are the same file" '$g v --stats-json=v -o o'
expect_conflict "--trace 'v' and input 'v' are the same file" '$g -c --trace=v v'
expect_conflict "--stats-json 'v' and input './v' are the same file" '$g -m ./v --stats-json=v'
expect_conflict "--stats-json 'hard' and input 'v' are the same file" '$g v --stats-json=hard -o o'
expect_conflict "--trace 'soft' and input 'v' are the same file" '$g v v --trace=soft -o o'
expect_conflict "--trace 'd/../v' and input 'soft' are" '$g soft --trace=d/../v -o o'
expect_conflict "--trace 'v' and standard input are the same file" '$g --trace=v -o o < v'
expect_conflict "--stats-json 'v' and standard input are" '$g --stats-json=v - >> o < v'
expect_conflict "--trace 'v' and input '/dev/fd/7' are" '$g --trace=v -o o /dev/fd/7 7< v'
expect_conflict "--trace 'v' and input '/dev/stdin' are" '$g --trace=v -o o /dev/stdin < v'
expect_conflict "--trace '/dev/fd/7' and input 'v' are" '$g --trace=/dev/fd/7 -o o v 7<> v'
expect_conflict "--stats-json '/dev/fd/7' and input 'v'" '$g --stats-json=/dev/fd/7 -o o v 7>> v'

claim 'a report over the list of names'
expect_conflict "--files0-from 'l' and --trace 'l' are the same file" \
	'$g --files0-from=l --trace=l -o o'
expect_conflict "--files0-from 'l' and --stats-json 'hard-list' are" \
	'$g --files0-from=l --stats-json=hard-list'
expect_conflict '--files0-from, standard input and --trace' '$g --files0-from=- --trace=l < l'

claim 'the output over the list of names'
expect_conflict "--files0-from 'l' and -o 'l' are the same file" '$g --files0-from=l -o l'

claim 'a report over the output, there or not'
expect_conflict "-o 'o' and --stats-json './o' are the same file" '$g v -o o --stats-json=./o'
expect_conflict "-o 'new' and --stats-json './new' are the same file" \
	'$g v -o new --stats-json=./new'
expect_conflict "-o 'd/new' and --trace 'd/../d//new' are" '$g v -o d/new --trace=d/../d//new'
expect_conflict "-o 'new' and --trace 'to-new' are the same file" '$g v -o new --trace=to-new'
expect_conflict "standard output and --trace 'o' are the same file" '$g v --trace=o >> o'
expect_conflict "standard output and --trace '/dev/stdout' are the same file" \
	'$g v --trace=/dev/stdout >> o'
create_files
{ "$g" v --trace=/dev/fd/1 2> ../stderr || echo $? > ../code; } | cat > /dev/null
cd ..
[ "$(cat code)" = 2 ] || fail 'a report among the records'
expect_message "standard output and --trace '/dev/fd/1' are the same pipe" \
	'a report among the records'

claim 'an output by the name of a descriptor is the file of the descriptor'
expect_conflict "-o '/dev/fd/7' and --trace 'o' are the same file" \
	'$g v -o /dev/fd/7 --trace=o 7>> o'
expect_conflict "-o '/dev/fd/7' and --trace '/dev/fd/7' are" \
	'$g v -o /dev/fd/7 --trace=/dev/fd/7 7>> o'
expect_conflict "standard output and --trace 'o' are the same" '$g v -o /dev/fd/1 --trace=o >> o'
expect_conflict "-o '/dev/stderr' and standard error are the same" \
	'$g v -o /dev/stderr 2>> ../stderr'
expect_conflict '/dev/fd/7: .* input' '$g v -o /dev/fd/7 7>> v'
expect_conflict 'standard output: .* input' '$g v -o /dev/fd/1 >> v'

claim 'two reports in one file'
expect_conflict "--stats-json 'new' and --trace './new' are" \
	'$g v -o o --stats-json=new --trace=./new'
expect_conflict "--stats-json 'r' and --trace 'r' are" '$g v -o o --stats-json=r --trace=r'

claim 'a report of lines over an input, the output or another report'
for option in stats-json trace report; do
	expect_conflict "--$option 'v' and input 'v' are the same file" \
		"\$g --lines v --$option=v -o o"
	expect_conflict "-o 'o' and --$option './o' are the same file" \
		"\$g --lines v -o o --$option=./o"
	expect_conflict "standard output and --$option 'o' are the same file" \
		"\$g --lines v --$option=o >> o"
done
expect_conflict "--stats-json 'r' and --report 'r' are" \
	'$g --lines v -o o --stats-json=r --report=r'
expect_conflict "--trace 'r' and --report 'r' are" '$g --lines v -o o --trace=r --report=r'

# run_with_one TARGET EXPECTED_STATUS ARGUMENT...: run gsort with both output streams in one target;
# its data is in `arrived` and `stderr`
run_with_one() {
	target=$1 expected_status=$2
	shift 2
	create_files
	: > ../arrived
	case $target in
	pipe) { "$g" "$@" 2>&1; echo $? > ../code; } | cat > ../arrived ;;
	file) "$g" "$@" > ../arrived 2>&1; echo $? > ../code ;;
	append) "$g" "$@" >> ../arrived 2>&1; echo $? > ../code ;;
	esac
	cd ..
	cp arrived stderr
	[ "$(cat code)" = "$expected_status" ] || fail "$target: $*: status $(cat code)"
}

claim 'a pipe or file for both output streams gets the error or the records'
printf '\223NUMPY\1\0' > numpy-like
for target in pipe file append; do
	run_with_one $target 2 missing
	expect_message '^gsort: missing: cannot open: No such file' "$target: missing"
	run_with_one $target 2 -R 7 v
	expect_message '^gsort: v: .*7' "$target: a part of a record"
	run_with_one $target 2 -k1 nn
	expect_message '^gsort: nn: ' "$target: a key of lines"
	run_with_one $target 2 "$0"
	expect_message '^gsort: .* gsort --lines ' "$target: text"
	run_with_one $target 0 v
	"$g" files/v -o expected
	expect_same expected arrived "$target: records"
	run_with_one $target 0 -t b8 --format=raw ../numpy-like
	expect_same numpy-like arrived "$target: no warning"
	for options in --stats --debug --progress=always '--lines --stats' \
		'--lines --progress=always'; do
		# shellcheck disable=SC2086
		run_with_one $target 2 $options v
		expect_message 'standard output and standard error are the same (pipe|file)' \
			"$target: $options"
	done
	run_with_one $target 2 --stats missing
	expect_message '^gsort: missing: cannot open' "$target: --stats missing"
done
"$g" -t b8 --format=raw numpy-like > /dev/null 2> stderr
expect_message '^gsort: warning: standard output: looks like' 'a warning'

claim 'messages over an input'
create_files
"$g" v -o o 2>> v
status=$?
cd ..
[ $status -eq 2 ] || fail '2>> v: status not 2'
expect_same v files/v '2>> v'

# expect_silent_conflict COMMAND: the command is refused, and no file changes, standard error
# included
expect_silent_conflict() {
	create_files
	list_files > ../before
	(eval "$*") > ../stdout < /dev/null
	status=$?
	list_files > ../after
	cd "$work" || exit 99
	: > stderr
	expect_status 2 "$*"
	expect_same before after "$*"
	[ ! -s stdout ] || fail "$*: wrote to standard output"
	is_new=no
}

claim 'an error message does not overwrite the file that it names'
expect_silent_conflict '$g v -o new 2<> v'
expect_silent_conflict '$g - -o new < v 2<> v'
expect_silent_conflict '$g v -o o 2<> o'
expect_silent_conflict '$g --files0-from=l -o new 2<> l'
expect_silent_conflict '$g v -o new --stats-json=r 2<> r'
expect_silent_conflict '$g v -o o --trace=o 2<> v'
expect_silent_conflict '$g soft missing -o o 2<> v'
expect_silent_conflict '"$GSORT_CHECK" v 2<> v'
expect_silent_conflict '"$GSORT_GEN" -o o 2<> o'
expect_conflict "standard output and input 'v' are the same file" '$g --explain v >> v'

claim 'a pipe as its own input and output'
create_files
mkfifo p
exec 5<> p
"$g" < p > p 2> ../stderr
status=$?
exec 5>&-
cd ..
expect_status 2
expect_message 'standard output and standard input are the same pipe' '< p > p'

claim "the files of a checkpoint"
expect_conflict "-o 'd/gsort-runs' and --checkpoint's 'd/gsort-runs' are" \
	'$g --checkpoint=d v -o d/gsort-runs'
expect_conflict "-o 'e/gsort-manifest' and --checkpoint's 'e/gsort-manifest'" \
	'$g --checkpoint=e v -o e/gsort-manifest'
expect_conflict "--trace './gsort-runs' and --checkpoint's './gsort-runs' are" \
	'$g --checkpoint=. v -o o --trace=./gsort-runs'

expect_conflict "-o 'new' and --checkpoint './new' are the same; use another name" \
	'$g --checkpoint=./new v -o new'

claim 'no report or output has the name of an unfinished output of a checkpoint'
hidden=.gsort-0123456789abcdef
for report in --trace --stats-json --report; do
	expect_conflict "$report './$hidden' has the name of a temp file" \
		"\$g --checkpoint=d v -o o $report=./$hidden"
	expect_conflict "$report 'to-hidden' has the name of a temp file" \
		"\$g v -o d/o $report=to-hidden"
done
expect_conflict "--trace 'd/.gsort-temp-0123456789abcdef' has the name of a temp file" \
	'$g v --trace=d/.gsort-temp-0123456789abcdef >> o'
expect_conflict "-o '$hidden' has the name of a temp file" "\$g v -o $hidden"

claim 'files that may be the same'
create_files
for arguments in '-t u64 v -o v' '-t u64 v -o hard' 'v v -o o' '-t u64 soft -o soft' \
	'v -o o --trace=/dev/null --stats-json=/dev/null'; do
	"$g" $arguments 2> ../stderr || fail "$arguments: status $?"
done
"$g" -c --trace=r --stats-json=new v || fail '-c with reports'
expect_json r
expect_json new
cd ..

claim 'a report that cannot be written is refused before the sort'
for report in --trace --stats-json; do
	expect_conflict 'nowhere/r: ' "\$g v -o o $report=nowhere/r"
	expect_conflict 'd: Is a directory' "\$g v -o o $report=d"
	expect_conflict '/dev/fd/77: is not open for writing' "\$g v -o o $report=/dev/fd/77"
	expect_conflict '/dev/stdin: is not open for writing' "\$g v -o o $report=/dev/stdin"
	[ "$(id -u)" -ne 0 ] || continue
	expect_conflict 'r: Permission denied' \
		"chmod 0444 r; \$g v -o o $report=r; s=\$?; chmod 0644 r; exit \$s"
	expect_conflict 'd/r: ' \
		"chmod 0555 d; \$g v -o o $report=d/r; s=\$?; chmod 0755 d; exit \$s"
done

claim 'a report whose FILE is missing does not replace the input that follows it'
for mode in '' --lines; do
	for report in --stats-json --trace --report; do
		expect_conflict "$report 'o' exists, but is not a report; remove it, or use" \
			"\$g $mode $report o -o new"
		for old in '' '{ "older": "report" }' '<!DOCTYPE html>' '[]'; do
			printf '%s' "$old" > files/r
			# Word splitting is intended.
			# shellcheck disable=SC2086
			"$g" $mode files/v -o output "$report" files/r ||
				fail "$mode $report: over '$old': status $?"
			[ -s files/r ] || fail "$mode $report: an empty file is not replaced"
		done
		is_new=no
	done
done

claim 'a pipe is read once'
expect_conflict "'-': standard input can be read only once, not 2 times" '$g - v - -o o < v'
expect_conflict "standard input and input '/dev/stdin' are the same pipe; it can be read" \
	'cat v | $g - v /dev/stdin -o o'
expect_conflict "input '/dev/fd/7' and input '/dev/stdin' are the same pipe; it can" \
	'cat v | $g -m /dev/fd/7 /dev/stdin 7<&0 -o o'
expect_conflict "files0-from, standard input and input '/dev/stdin' are the same pipe; it can" \
	'printf "/dev/stdin\0" | $g --files0-from=- -o o'
expect_conflict "input 'p' and input './p' are the same pipe; it can be read only once" \
	'mkfifo p; timeout 20 $g p v ./p -o o; s=$?; rm p; exit $s'
create_files
mkfifo p
timeout 20 "$GSORT_CHECK" --same-records v p p > ../stdout 2> ../stderr
[ $? -eq 2 ] || fail 'gsort-check: not status 2'
expect_line "^gsort-check: input 'p' and input 'p' are the same pipe; it can be" ../stderr
cat v > p &
"$g" p v v -o o || fail "a pipe, and a file twice: status $?"
[ "$(wc -c < o)" -eq 120000 ] || fail 'a pipe, and a file twice: something is missing'
cat v | "$g" /dev/null - /dev/null -o o || fail "a device twice: status $?"
wait
cd ..

claim 'nothing is written to the file of the program that is running'
create_files
cp "$g" p.0001
ln p.0001 other
ln -s other link
list_files > ../before
for options in '-o p.0001' '-o link' '-o /proc/self/exe' '-o p.0001 --split=2' \
	'-o o --trace=./other'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	./p.0001 v $options > ../stdout 2> ../stderr
	[ $? -eq 2 ] || fail "$options: not status 2"
	list_files | diff ../before - > ../after || fail "$options: $(cat ../after)"
	cd ..
	expect_message "^gsort: -.* '.*' is the running program" "$options"
	cd files || exit 99
done
rm -f other
cp "$g" other
./other v -o p.0001 || fail 'a copy of the program is refused'
cd ..

claim 'an older report survives a sort that fails, and appears complete'
for report in --trace --stats-json; do
	expect_conflict 'missing' "\$g missing -o o $report=r"
	expect_conflict 'nowhere/o' "\$g v -o nowhere/o $report=r"
	expect_conflict 'v: .*40000.*7' "\$g -t b7 v -o o $report=r"
	expect_conflict 'File too large' "ulimit -f 8; \$g v -o o $report=r"
	create_files
	"$g" v -o o $report=r || fail "$report: status $?"
	expect_json r
	expect_same ../expected o "$report"
	cd ..
done

claim 'if a report cannot be written at the end, the message says that the output is complete'
for report in --trace --stats-json --report; do
	create_files
	head -c 80 v > ten
	"$g" ten -o ../expected-ten
	(ulimit -f 1; "$g" ten -o o $report=r 2> ../stderr)
	[ $? -eq 2 ] || fail "$report: not status 2"
	expect_same ../expected-ten o "$report"
	[ "$(cat r)" = '{ "older": "report" }' ] || fail "$report: the older one is gone"
	cd ..
	expect_message '^gsort: r: cannot write: .*large.*ulimit -f; the output is complete$' \
		"$report"
done

claim 'a report to a descriptor is written at its offset'
create_files
echo before > log
"$g" v -o o --stats-json=/dev/stdout >> log || fail "status $?"
[ "$(head -n 1 log)" = before ] || fail 'the earlier line was overwritten'
tail -n +2 log > json
expect_json json
"$g" v -o o --trace=/dev/fd/7 7> json || fail "status $?"
expect_json json
"$g" v -o o --stats-json=/dev/stderr 2> json || fail "status $?"
expect_json json
"$g" v -o o --trace=/dev/fd/7 7>&1 > /dev/null | cat > json
expect_json json
"$g" v --trace=/dev/fd/2 2> json > o || fail "status $?"
expect_json json
expect_same ../expected o 'to standard output'
cd ..

claim 'a named pipe takes a report'
create_files
mkfifo p
cat p > json &
"$g" v -o o --stats-json=p || fail "status $?"
wait
expect_json json
cd ..

expect_no_temp_files 'after all'
claim 'a report to a full device is one error, also of an abbreviated option'
"$g" -t u64 files/v --stats-=/dev/full -o full-output 2> stderr
[ $? -eq 2 ] || fail '/dev/full: not status 2'
expect_message '^gsort: /dev/full: .*No space left.*; the output is complete$' '--stats-='

claim 'an input of unknown type is not replaced'
generate -n 1000 -o raw
cp raw before
cp raw other
ln -s raw link
for arguments in 'raw -o raw' 'other raw -o raw' '-m raw -o raw' 'link -o raw' 'raw -o link' \
	'-u raw -o raw'; do
	expect_exit 2 $arguments
	expect_message "^gsort: -o '(raw|link)' is an input of unknown type; .*-t, -R, -k" \
		"$arguments"
	expect_same before raw "$arguments"
done
"$GSORT" - -o raw < raw 2> stderr
[ $? -eq 2 ] || fail 'standard input is not refused'
expect_same before raw 'standard input'
run raw -o expected
for type in '-t u64' '-R 8 -k 0:u64' '--fields=x:u64'; do
	cp before raw
	expect_exit 0 $type raw -o raw
	expect_same expected raw "$type"
done

finish
