#!/bin/sh
# file_conflicts - gsort refuses one file in two roles, and reports appear when they are complete
. "$(dirname "$0")/testlib.sh"

# begin: create inputs, a list of names, an older output, an older report, and links to them
begin() {
	cd "$work" || exit 99
	rm -rf files
	mkdir files files/d
	cd files || exit 99
	cp ../v v
	printf 'v\0' > l
	echo 'an older output' > o
	echo 'an older report' > r
	ln v hard
	ln -s v soft
	ln -s new to-new
	ln -s .gsort-0123456789abcdef to-hidden
	ln l hard-list
	is_new=no
}

# everything: print the names and contents of all files
everything() {
	cksum * d/* .[!.]* 2>&1
}

generate -n 5000 -o v
"$GSORT" v -o expected

# everything: print the names and contents of all files
everything() {
	find . -type f -exec cksum {} + | sort
	find . | sort
}

# clash REGEX COMMAND: the command ($g is gsort) is refused with one line, and no file changes
clash() {
	regex=$1
	shift
	if [ $is_new = yes ]; then
		cd files || exit 99
	else
		begin
		everything > ../before
	fi
	(eval "$*") > ../stdout 2> ../stderr < /dev/null
	status=$?
	everything > ../after
	cd "$work" || exit 99
	[ $status -eq 2 ] || broken "$*: status $status"
	one_line "$regex" "$*"
	is_new=yes
	cmp -s before after || {
		broken "$*: $(diff before after | tr '\n' ' ')"
		is_new=no
	}
}
is_new=no
g=$GSORT

claim 'a report over an input'
clash "--trace 'v' and input 'v' are the same file" '$g v --trace=v -o o'
clash "--stats-json 'v' and input 'v' are the same file" '$g v --stats-json=v -o o'
clash "--trace 'v' and input 'v' are the same file" '$g -c --trace=v v'
clash "--stats-json 'v' and input './v' are the same file" '$g -m ./v --stats-json=v'
clash "--stats-json 'hard' and input 'v' are the same file" '$g v --stats-json=hard -o o'
clash "--trace 'soft' and input 'v' are the same file" '$g v v --trace=soft -o o'
clash "--trace 'd/../v' and input 'soft' are" '$g soft --trace=d/../v -o o'
clash "--trace 'v' and standard input are the same file" '$g --trace=v -o o < v'
clash "--stats-json 'v' and standard input are" '$g --stats-json=v - >> o < v'
clash "--trace 'v' and input '/dev/fd/7' are" '$g --trace=v -o o /dev/fd/7 7< v'
clash "--trace 'v' and input '/dev/stdin' are" '$g --trace=v -o o /dev/stdin < v'
clash "--trace '/dev/fd/7' and input 'v' are" '$g --trace=/dev/fd/7 -o o v 7<> v'
clash "--stats-json '/dev/fd/7' and input 'v'" '$g --stats-json=/dev/fd/7 -o o v 7>> v'

claim 'a report over the list of names'
clash "--files0-from 'l' and --trace 'l' are the same file" '$g --files0-from=l --trace=l -o o'
clash "--files0-from 'l' and --stats-json 'hard-list' are" \
	'$g --files0-from=l --stats-json=hard-list'
clash '--files0-from, standard input and --trace' '$g --files0-from=- --trace=l < l'

claim 'the output over the list of names'
clash "--files0-from 'l' and -o 'l' are the same file" '$g --files0-from=l -o l'

claim 'a report over the output, there or not'
clash "-o 'o' and --stats-json './o' are the same file" '$g v -o o --stats-json=./o'
clash "-o 'new' and --stats-json './new' are the same file" '$g v -o new --stats-json=./new'
clash "-o 'd/new' and --trace 'd/../d//new' are" '$g v -o d/new --trace=d/../d//new'
clash "-o 'new' and --trace 'to-new' are the same file" '$g v -o new --trace=to-new'
clash "standard output and --trace 'o' are the same file" '$g v --trace=o >> o'
clash "standard output and --trace '/dev/stdout' are the same file" \
	'$g v --trace=/dev/stdout >> o'
begin
{ "$g" v --trace=/dev/fd/1 2> ../stderr || echo $? > ../code; } | cat > /dev/null
cd ..
[ "$(cat code)" = 2 ] || broken 'a report among the records'
one_line "standard output and --trace '/dev/fd/1' are the same pipe" 'a report among the records'

claim 'an output by the name of a descriptor is the file of the descriptor'
clash "-o '/dev/fd/7' and --trace 'o' are the same file" '$g v -o /dev/fd/7 --trace=o 7>> o'
clash "-o '/dev/fd/7' and --trace '/dev/fd/7' are" '$g v -o /dev/fd/7 --trace=/dev/fd/7 7>> o'
clash "standard output and --trace 'o' are the same" '$g v -o /dev/fd/1 --trace=o >> o'
clash "-o '/dev/stderr' and standard error are the same" '$g v -o /dev/stderr 2>> ../stderr'
clash '/dev/fd/7: .* input' '$g v -o /dev/fd/7 7>> v'
clash 'standard output: .* input' '$g v -o /dev/fd/1 >> v'

claim 'two reports in one file'
clash "--stats-json 'new' and --trace './new' are" '$g v -o o --stats-json=new --trace=./new'
clash "--stats-json 'r' and --trace 'r' are" '$g v -o o --stats-json=r --trace=r'

claim 'a report of lines over an input, the output or another report'
for option in stats-json trace report; do
	clash "--$option 'v' and input 'v' are the same file" "\$g --lines v --$option=v -o o"
	clash "-o 'o' and --$option './o' are the same file" "\$g --lines v -o o --$option=./o"
	clash "standard output and --$option 'o' are the same file" \
		"\$g --lines v --$option=o >> o"
done
clash "--stats-json 'r' and --report 'r' are" '$g --lines v -o o --stats-json=r --report=r'
clash "--trace 'r' and --report 'r' are" '$g --lines v -o o --trace=r --report=r'

claim 'messages among the records, or over an input'
begin
"$g" v >> o 2>&1
status=$?
tail -n 1 o > ../stderr
cd ..
[ $status -eq 2 ] || broken '2>&1: status not 2'
one_line 'standard output and standard error are the same file' '2>&1'

# to_one_pipe EXPECTED_STATUS ARGUMENT...: run gsort with both output streams in one pipe; its data
# is in `arrived` and `stderr`
to_one_pipe() {
	expected_status=$1
	shift
	begin
	{ "$g" "$@" 2>&1; echo $? > ../code; } | cat > ../arrived
	cd ..
	cp arrived stderr
	[ "$(cat code)" = "$expected_status" ] || broken "$*: status $(cat code)"
}

claim 'a pipe for both output streams gets the error or the records'
to_one_pipe 2 missing
one_line '^gsort: missing: cannot open: No such file' 'missing'
to_one_pipe 2 -R 7 v
one_line '^gsort: v: .*7' 'a part of a record'
to_one_pipe 0 v
"$g" files/v -o expected
same expected arrived 'records'
for option in --stats --debug --progress=always; do
	to_one_pipe 2 $option v
	one_line 'standard output and standard error are the same pipe' "$option"
done
begin
"$g" missing >> o 2>&1
status=$?
tail -n 1 o > ../stderr
cd ..
[ $status -eq 2 ] || broken 'missing, 2>&1: status not 2'
one_line '^gsort: missing: cannot open' 'missing, 2>&1'
begin
"$g" v -o o 2>> v
status=$?
cd ..
[ $status -eq 2 ] || broken '2>> v: status not 2'
same v files/v '2>> v'

# unsaid COMMAND: the command is refused, and no file changes, standard error included
unsaid() {
	begin
	everything > ../before
	(eval "$*") > ../stdout < /dev/null
	status=$?
	everything > ../after
	cd "$work" || exit 99
	: > stderr
	[ $status -eq 2 ] || broken "$*: status $status"
	same before after "$*"
	[ ! -s stdout ] || broken "$*: wrote to standard output"
	is_new=no
}

claim 'an error message does not overwrite the file that it names'
unsaid '$g v -o new 2<> v'
unsaid '$g - -o new < v 2<> v'
unsaid '$g v -o o 2<> o'
unsaid '$g --files0-from=l -o new 2<> l'
unsaid '$g v -o new --stats-json=r 2<> r'
unsaid '$g v -o o --trace=o 2<> v'
unsaid '$g soft missing -o o 2<> v'
unsaid '"$GSORT_CHECK" v 2<> v'
unsaid '"$GSORT_GEN" -o o 2<> o'
clash "standard output and input 'v' are the same file" '$g --explain v >> v'

claim 'a pipe as its own input and output'
begin
mkfifo p
exec 5<> p
"$g" < p > p 2> ../stderr
status=$?
exec 5>&-
cd ..
[ $status -eq 2 ] || broken "status $status"
one_line 'standard output and standard input are the same pipe' '< p > p'

claim "the files of a checkpoint"
clash "-o 'd/gsort-runs' and --checkpoint's 'd/gsort-runs' are" \
	'$g --checkpoint=d v -o d/gsort-runs'
clash "-o 'e/gsort-manifest' and --checkpoint's 'e/gsort-manifest'" \
	'$g --checkpoint=e v -o e/gsort-manifest'
clash "--trace './gsort-runs' and --checkpoint's './gsort-runs' are" \
	'$g --checkpoint=. v -o o --trace=./gsort-runs'

clash "-o 'new' and --checkpoint './new' are the same; use another name" \
	'$g --checkpoint=./new v -o new'

claim 'no report or output has the name of an unfinished output of a checkpoint'
hidden=.gsort-0123456789abcdef
for report in --trace --stats-json --report; do
	clash "$report './$hidden' has the name of a temp file" \
		"\$g --checkpoint=d v -o o $report=./$hidden"
	clash "$report 'to-hidden' has the name of a temp file" \
		"\$g v -o d/o $report=to-hidden"
done
clash "--trace 'd/.gsort-temp-0123456789abcdef' has the name of a temp file" \
	'$g v --trace=d/.gsort-temp-0123456789abcdef >> o'
clash "-o '$hidden' has the name of a temp file" "\$g v -o $hidden"

claim 'files that may be the same'
begin
for arguments in '-t u64 v -o v' '-t u64 v -o hard' 'v v -o o' '-t u64 soft -o soft' \
	'v -o o --trace=/dev/null --stats-json=/dev/null'; do
	"$g" $arguments 2> ../stderr || broken "$arguments: status $?"
done
"$g" -c --trace=o --stats-json=new v || broken '-c with reports'
is_json o
is_json new
cd ..

claim 'a report that cannot be written is refused before the sort'
for report in --trace --stats-json; do
	clash 'nowhere/r: ' "\$g v -o o $report=nowhere/r"
	clash 'd: Is a directory' "\$g v -o o $report=d"
	clash '/dev/fd/77: is not open for writing' "\$g v -o o $report=/dev/fd/77"
	clash '/dev/stdin: is not open for writing' "\$g v -o o $report=/dev/stdin"
	[ "$(id -u)" -ne 0 ] || continue
	clash 'r: Permission denied' \
		"chmod 0444 r; \$g v -o o $report=r; s=\$?; chmod 0644 r; exit \$s"
	clash 'd/r: ' "chmod 0555 d; \$g v -o o $report=d/r; s=\$?; chmod 0755 d; exit \$s"
done

claim 'a pipe is read once'
clash "'-': standard input can be read only once, not 2 times" '$g - v - -o o < v'
clash "standard input and input '/dev/stdin' are the same pipe; it can be read only once" \
	'cat v | $g - v /dev/stdin -o o'
clash "input '/dev/fd/7' and input '/dev/stdin' are the same pipe; it can" \
	'cat v | $g -m /dev/fd/7 /dev/stdin 7<&0 -o o'
clash "files0-from, standard input and input '/dev/stdin' are the same pipe; it can" \
	'printf "/dev/stdin\0" | $g --files0-from=- -o o'
clash "input 'p' and input './p' are the same pipe; it can be read only once" \
	'mkfifo p; timeout 20 $g p v ./p -o o; s=$?; rm p; exit $s'
begin
mkfifo p
timeout 20 "$GSORT_CHECK" --same-records v p p > ../stdout 2> ../stderr
[ $? -eq 2 ] || broken 'gsort-check: not status 2'
says "^gsort-check: input 'p' and input 'p' are the same pipe; it can be" ../stderr
cat v > p &
"$g" p v v -o o || broken "a pipe, and a file twice: status $?"
[ "$(wc -c < o)" -eq 120000 ] || broken 'a pipe, and a file twice: something is missing'
cat v | "$g" /dev/null - /dev/null -o o || broken "a device twice: status $?"
wait
cd ..

claim 'nothing is written to the file of the program that is running'
begin
cp "$g" p.0001
ln p.0001 other
ln -s other link
everything > ../before
for options in '-o p.0001' '-o link' '-o /proc/self/exe' '-o p.0001 --split=2' \
	'-o o --trace=./other'; do
	# Word splitting is intended.
	# shellcheck disable=SC2086
	./p.0001 v $options > ../stdout 2> ../stderr
	[ $? -eq 2 ] || broken "$options: not status 2"
	everything | diff ../before - > ../after || broken "$options: $(cat ../after)"
	cd ..
	one_line "^gsort: -.* '.*' is the running program" "$options"
	cd files || exit 99
done
rm -f other
cp "$g" other
./other v -o p.0001 || broken 'a copy of the program is refused'
cd ..

claim 'an older report survives a sort that fails, and appears complete'
for report in --trace --stats-json; do
	clash 'missing' "\$g missing -o o $report=r"
	clash 'nowhere/o' "\$g v -o nowhere/o $report=r"
	clash 'v: .*40000.*7' "\$g -t b7 v -o o $report=r"
	clash 'File too large' "ulimit -f 8; \$g v -o o $report=r"
	begin
	"$g" v -o o $report=r || broken "$report: status $?"
	is_json r
	same ../expected o "$report"
	cd ..
done

claim 'if a report cannot be written at the end, the message says that the output is complete'
for report in --trace --stats-json --report; do
	begin
	head -c 80 v > ten
	"$g" ten -o ../expected-ten
	(ulimit -f 1; "$g" ten -o o $report=r 2> ../stderr)
	[ $? -eq 2 ] || broken "$report: not status 2"
	same ../expected-ten o "$report"
	[ "$(cat r)" = 'an older report' ] || broken "$report: the older one is gone"
	cd ..
	one_line '^gsort: r: cannot write: .*large.*ulimit -f; the output is complete$' \
		"$report"
done

claim 'a report to a descriptor is written at its offset'
begin
echo before > log
"$g" v -o o --stats-json=/dev/stdout >> log || broken "status $?"
[ "$(head -n 1 log)" = before ] || broken 'the earlier line was overwritten'
tail -n +2 log > json
is_json json
"$g" v -o o --trace=/dev/fd/7 7> json || broken "status $?"
is_json json
"$g" v -o o --stats-json=/dev/stderr 2> json || broken "status $?"
is_json json
"$g" v -o o --trace=/dev/fd/7 7>&1 > /dev/null | cat > json
is_json json
"$g" v --trace=/dev/fd/2 2> json > o || broken "status $?"
is_json json
same ../expected o 'to standard output'
cd ..

claim 'a named pipe takes a report'
begin
mkfifo p
cat p > json &
"$g" v -o o --stats-json=p || broken "status $?"
wait
is_json json
cd ..

nothing_left everything
claim 'a report to a full device is one error, also of an abbreviated option'
"$g" -t u64 files/v --stats-=/dev/full -o full-output 2> stderr
[ $? -eq 2 ] || broken '/dev/full: not status 2'
one_line '^gsort: /dev/full: .*No space left.*; the output is complete$' '--stats-='

claim 'an input of unknown type is not replaced'
generate -n 1000 -o raw
cp raw before
cp raw other
ln -s raw link
for arguments in 'raw -o raw' 'other raw -o raw' '-m raw -o raw' 'link -o raw' 'raw -o link' \
	'-u raw -o raw'; do
	run $arguments
	[ "$status" -eq 2 ] || broken "$arguments: status $status"
	one_line "^gsort: -o '(raw|link)' is an input of unknown type; .*-t, -R, -k" "$arguments"
	same before raw "$arguments"
done
"$GSORT" - -o raw < raw 2> stderr
[ $? -eq 2 ] || broken 'standard input is not refused'
same before raw 'standard input'
run raw -o expected
for type in '-t u64' '-R 8 -k 0:u64' '--fields=x:u64'; do
	cp before raw
	run $type raw -o raw
	[ "$status" -eq 0 ] || broken "$type: status $status"
	same expected raw "$type"
done

finish
