#!/bin/sh
# test.sh - build gsort in four ways and run every test that this machine can run
#
# usage: sh tools/scripts/test.sh [DIRECTORY]
#
# Builds below DIRECTORY (default: build-test). Installs missing Debian packages first.
#	gcc	release build: all tests that asan does not run. Of those that it runs: faults,
#		the library, random configurations, and unit tests of vectorised code
#	asan	AddressSanitizer and UndefinedBehaviorSanitizer: unit tests, kernels, a 32nd of
#		the faults, and scripts that reach code that these tests do not reach
#	tsan	ThreadSanitizer: unit tests, kernels, and the programs in which most threads meet
#	clang	warnings are errors; nothing is generated (check_syntax.py)
#	aarch64	the programs and a few tests, compiled with warnings as errors; the tests run with
#		qemu-user. Skipped without a cross compiler
#	package	what `meson dist` packs, built in two directories with equal results
#		(check_reproducible.sh), and the Python package, built in one of them
# Each build contains only the programs of its tests and counts as one test. The last line is
# "N passed, N failed", with ", N skipped" if there are any. The exit status is 0 if nothing failed
# and something passed.
set -u
cd "$(dirname "$0")/../.." || exit 1
builds=${1:-build-test}
passed=0 failed=0 skipped=0

sh tools/scripts/install_deps.sh test-build || exit 1

# count RESULT LOG: the number of tests in a testlog.json (one object per line) with this result
count() {
	grep -c "\"result\": \"$1\"" "$2"
}

# compile NAME COMPILER OPTION...: configure, write the names of the tests that $tests prints to
# $builds/NAME.tests, and compile $targets and the programs of these tests
targets=''
tests=''
linked=''
compile() {
	name=$1 compiler=$2
	shift 2
	echo "$compiler $*"
	rm -rf "${builds:?}/$name"
	# shellcheck disable=SC2046,SC2086
	CC=$compiler CXX=$(echo "$compiler" | sed 's/gcc/g++/') \
		nice $linked meson setup "$builds/$name" "$@" &&
		$tests >"$builds/$name.tests" &&
		targets=$targets$(programs_of "$name" $(cat "$builds/$name.tests")) &&
		nice ninja -C "$builds/$name" $targets
}

# begin NAME COMMAND...: start a build, which runs beside the tests of the previous build
begin() {
	begun=$1
	shift
	"$@" >"$builds/$begun.log" 2>&1 &
	building=$!
}

# count_status NAME STATUS: count the result of a build or test; 77 means skipped
count_status() {
	case $2 in
	0) passed=$((passed + 1)) ;;
	77)
		echo "$1: skipped"
		skipped=$((skipped + 1))
		;;
	*)
		echo "$1: FAIL" | tee -a "$builds/failures"
		failed=$((failed + 1))
		;;
	esac
}

# built: wait for the build that was started and count its result
built() {
	wait "$building"
	result=$?
	printf '\n== %s: ' "$begun"
	head -n 1 "$builds/$begun.log"
	[ "$result" = 0 ] || cat "$builds/$begun.log"
	count_status "$begun" "$result"
	return "$result"
}

# run NAME OPTION...: run tests of a build and count their results
run() {
	name=$1
	shift
	log=$builds/$name/meson-logs/testlog.json
	if ! $wrapper meson test -C "$builds/$name" --no-rebuild --print-errorlogs \
			--num-processes "$at_once" "$@" ||
			[ ! -s "$log" ]; then
		status=1
	else
		status=0
	fi
	[ -s "$log" ] || : >"$log"
	total=$(grep -c . "$log")
	ok=$(($(count OK "$log") + $(count EXPECTEDFAIL "$log")))
	skip=$(count SKIP "$log")
	bad=$((total - ok - skip))
	# A failure of meson counts, even if its log has none.
	[ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
	[ "$bad" = 0 ] || failures "$name" "$log" >>"$builds/failures"
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

# failures NAME LOG: the failed tests and the last lines of their output, for the end of the report
failures() {
	python3 - "$1" "$2" <<-'END'
		import json, sys
		for line in open(sys.argv[2]):
		    test = json.loads(line)
		    if test['result'] not in ('OK', 'EXPECTEDFAIL', 'SKIP'):
		        print(f"{sys.argv[1]}: {test['name']}: {test['result']}")
		        output = test.get('stdout', '') + test.get('stderr', '')
		        print(*('\t' + s for s in output.splitlines()[-10:]), sep='\n')
	END
}

# names_of NAME SUITE...: the names of the tests of a build in the order of their priorities, each
# once. meson runs tests in the order in which they are named, as often as they are named.
names_of() {
	name=$1
	shift
	# shellcheck disable=SC2046
	meson test -C "$builds/$name" --no-rebuild --list $(printf -- '--suite %s ' "$@") |
		sed -n 's|.* / ||p' | awk '!known[$0]++'
}

# programs_of NAME TEST...: the targets that the tests of a build need
programs_of() {
	python3 - "$builds/$1" "$@" <<-'END'
		import json, os.path, sys
		build, names = sys.argv[1], sys.argv[3:]
		def known(what):
		    return json.load(open(f'{build}/meson-info/intro-{what}.json'))
		files = {target['id']: target['filename'] for target in known('targets')}
		tests = [test for test in known('tests') if test['name'] in names]
		needed = {of for test in tests for of in test['depends']}
		if not needed:
		    sys.exit('no test has a program')
		for of in sorted(needed):
		    print(*(os.path.relpath(file, os.path.realpath(build)) for file in files[of]))
	END
}

# With many random address bits ThreadSanitizer of gcc 12 finds no room for its tables.
without_aslr=
setarch -R true 2>/dev/null && without_aslr='setarch -R'

# Line numbers are enough for stack traces. Full debug information takes a quarter of the build
# time. -O1 takes a quarter longer than -Og, and -O2 twice as long, without faster tests.
sanitized='--buildtype=debugoptimized -Doptimization=g -Ddebug=false -Dc_args=-g1 -Dcpp_args=-g1
	-Dcuda=disabled'

# A finding of a sanitizer ends the test. Checks that cannot continue make smaller programs, which
# compile and start faster.
no_recovery=-fno-sanitize-recover=all
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1
mkdir -p "$builds"
: >"$builds/failures"

# Random configurations depend on the sources only: the same sources repeat the same tests.
if [ -z "${GSORT_SEED:-}" ] && tree=$(git rev-parse 'HEAD^{tree}' 2>/dev/null); then
	GSORT_SEED=$(printf %d "0x$(printf %.8s "$tree")")
	export GSORT_SEED
fi

# Without a GPU no kernel runs, so machine code and optimised code are not needed.
gpu_arch=90
nvidia-smi -L >/dev/null 2>&1 || {
	gpu_arch=90-virtual
	export NVCC_APPEND_FLAGS='-Xcicc=-O0 -Xcompiler=-O0'
}

# More than the processors, because some tests wait most of the time.
at_once=$(($(nproc) + 2))
wrapper=
# Longest first.
asan_scripts='random_records tools random_scalars streams'

# only_asan: scripts that the release build skips, as options of grep. Both builds run the random
# configurations, because kernels differ between builds.
only_asan() {
	# shellcheck disable=SC2086
	printf -- '-e %s ' $asan_scripts | sed 's/-e random_[a-z]* //g'
}

# Unit tests that the release build runs: those that asan leaves out, or of which it leaves out a
# part, and those of code that the compiler vectorises.
# Longest first.
release_units='backend_cpu plan_limits distributed_sort_calls distributed_sort_volumes cpu_sort
	cpu_merge cpu_element_format cpu_gather cpu_indirect cpu_tie_break cpu_top_k codec
	key_batch key_tail run_file_packed spill_memory queue_pool launches'

# Tests that wait come first, so that the next build has the processors meanwhile.
gcc_tests() {
	# shellcheck disable=SC2046
	names_of gcc mpi gpu style cli | grep -vx $(only_asan)
	names_of gcc fault library | grep -vx 'faults_cuda_.*on_cpu'
	echo "$release_units"
}

# Skips tests that find the same errors in any build:
#  - backend_cpu and cpu_merge, whose buffers end at unmapped pages (tests/support/guarded.h);
#  - distributed_sort_calls and distributed_sort_volumes, which count calls and bytes;
#  - launches, which only computes numbers;
#  - faults_rehearsed and faults_cuda_rehearsed, whose sorts the other tests of faults begin with.
asan_tests() {
	echo "$asan_scripts"
	names_of asan unit kernels fault library |
		grep -vx -e backend_cpu -e cpu_merge -e distributed_sort_calls \
			-e distributed_sort_volumes -e launches \
			-e 'faults.*_rehearsed'
}

# Skips:
#  - tests of code without threads, such as src/options, src/plan, src/record and src/report,
#    zst_index, which reads with one thread, and cluster_cuts, which uses only threads of its own;
#  - backend_cpu, sort_records, distributed_sort_*, sort_kernels_sm75_on_cpu and gpu_lines_on_cpu,
#    because other tests run the same threads;
#  - launches and tile_cuts_on_cpu, which use one thread;
#  - fatal_signals: ThreadSanitizer delays raised signals, so they end nothing.
tsan_tests() {
	echo distributed_sort faults_devices library random_scalars streams # longest first
	names_of tsan unit kernels |
		grep -vx -e 'cpu_.*' -e 'distributed_sort.*' -e cluster_cuts \
			-e codec -e key_batch -e gen -e gensort -e mapping -e npy \
			-e layout -e backend_cpu -e sort_records \
			-e fatal_signals -e sort_kernels_sm75_on_cpu -e gpu_lines_on_cpu \
			-e launches -e tile_cuts_on_cpu -e zst_index \
			-e options -e files0 -e 'plan.*' -e cache_policy -e key_tail \
			-e 'html.*' -e report_file -e progress_line -e line_keys \
			-e format_detect -e part_manifest -e framing
}

tests=gcc_tests
begin gcc compile gcc gcc --buildtype=release -Dwerror=true -Dgpu_arch=$gpu_arch
sh tools/scripts/install_deps.sh test || exit 1
built
gcc=$?
tests=asan_tests
# ld.gold links in half the time, if binutils include it. The release build uses the default linker.
! command -v ld.gold >/dev/null || linked='env CC_LD=gold CXX_LD=gold'
# shellcheck disable=SC2086
begin asan compile asan gcc $sanitized -Db_sanitize=address,undefined \
	"-Dc_args=-g1 $no_recovery" "-Dcpp_args=-g1 $no_recovery"
# shellcheck disable=SC2046
[ "$gcc" != 0 ] || run gcc --timeout-multiplier 4 $(cat "$builds/gcc.tests")

built
asan=$?
tests=tsan_tests
# shellcheck disable=SC2086
begin tsan compile tsan gcc $sanitized -Db_sanitize=thread
# The release build runs all faults and configurations. Builds with sanitizers are four times as
# slow and run a sample. The seed, and so the sample, depends on the commit.
export GSORT_FAULT_INTERVAL=32 GSORT_ROUNDS=6
at_once=$(($(nproc) + 1)) # few of these tests wait
# shellcheck disable=SC2046
[ "$asan" != 0 ] || run asan --timeout-multiplier 4 $(cat "$builds/asan.tests")

built
tsan=$?
# Tests that depend on the processor and are fast under emulation.
imitated_tests() {
	echo cpu_element_format cpu_gather key_tail cpu_indirect forecast io_queue queue_pool \
		mapping layout run_file run_file_packed
}

# These builds are not optimised; the other builds are.
plain='--buildtype=debug -Ddebug=false -Dcuda=disabled -Dwerror=true'
imitate() {
	sh tools/scripts/setup_aarch64.sh "$builds/aarch64-root" || return
	compile aarch64 gcc --cross-file "$builds/aarch64-root/cross.ini" "$@"
}
linked_here=$linked
linked=''
tests=imitated_tests
targets='src/gsort src/libgsort.a tools/gsort-gen tools/gsort-check '
# shellcheck disable=SC2086
begin aarch64 imitate $plain
wrapper=$without_aslr
# shellcheck disable=SC2046
[ "$tsan" != 0 ] || run tsan --timeout-multiplier 8 $(cat "$builds/tsan.tests")
wrapper=

built
aarch64=$?
# Options that meson-python passes, too, so that it compiles nothing again.
here=$(realpath "$builds")
pack() {
	echo 'meson dist, built in two directories'
	# shellcheck disable=SC2086
	CFLAGS=-O0 CXXFLAGS=-O0 nice $linked_here sh tools/scripts/check_reproducible.sh \
		"$here/gcc" "$here/package" -Dbuildtype=release -Db_ndebug=false \
		-Dcuda=disabled -Dwerror=true -Dpython=true
}
[ "$gcc" != 0 ] || begin package pack
# shellcheck disable=SC2046
[ "$aarch64" != 0 ] || run aarch64 --timeout-multiplier 8 $(cat "$builds/aarch64.tests")

package=
[ "$gcc" != 0 ] || ! built || package=$here/package
syntax() {
	echo 'clang -fsyntax-only'
	nice python3 tools/scripts/check_syntax.py "$builds/gcc" clang clang++
}
begin clang syntax
if [ "$gcc" = 0 ]; then
	# shellcheck disable=SC2086
	sh tests/python/run.sh "$PWD" "$here/python" \
		"$here/gcc/src/libgsort.so" $package
	count_status python_package $?
fi
built

echo
cat "$builds/failures"
if [ "$skipped" -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
