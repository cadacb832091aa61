#!/bin/sh
# test.sh - build gsort in four ways and run every test that this machine can run
#
# usage: sh tools/test.sh [DIRECTORY]
#
# Builds below DIRECTORY (default: build-test). Missing Debian packages are installed first.
#	gcc	release build, all suites
#	asan	AddressSanitizer and UndefinedBehaviorSanitizer, suite unit
#	tsan	ThreadSanitizer, suite unit
#	clang	compiled with warnings as errors, no tests
# A build counts as one test. The last line is "N passed, N failed", with ", N skipped" if there are
# any; the exit status is 0 if nothing failed and something passed.
set -u
cd "$(dirname "$0")/.." || exit 1
builds=${1:-build-test}
passed=0 failed=0 skipped=0

sh tools/setup-debian.sh test || exit 1

# count RESULT LOG: how many tests of a testlog.json (one object per line) ended so
count() {
	grep -c "\"result\": \"$1\"" "$2"
}

# build NAME COMPILER OPTION...: configure and compile
build() {
	name=$1 compiler=$2
	shift 2
	printf '\n== %s: %s %s\n' "$name" "$compiler" "$*"
	rm -rf "${builds:?}/$name"
	if CC=$compiler CXX=$(echo "$compiler" | sed 's/gcc/g++/; s/clang/clang++/') \
			meson setup "$builds/$name" "$@" >"$builds/$name.log" 2>&1 &&
			ninja -C "$builds/$name" >>"$builds/$name.log" 2>&1; then
		passed=$((passed + 1))
		return 0
	fi
	cat "$builds/$name.log"
	echo "$name: the build failed"
	failed=$((failed + 1))
	return 1
}

# run NAME OPTION...: run tests of a build and add up how they ended
run() {
	name=$1
	shift
	log=$builds/$name/meson-logs/testlog.json
	if ! $wrapper meson test -C "$builds/$name" --no-rebuild --print-errorlogs "$@" ||
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
	# What meson calls a failure is one, even if its log has none.
	[ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
	passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
}

# With many random bits in addresses ThreadSanitizer of gcc 12 finds no room for its tables.
without_aslr=
setarch -R true 2>/dev/null && without_aslr='setarch -R'

# A finding of the sanitizers ends the test.
export ASAN_OPTIONS=detect_leaks=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1
mkdir -p "$builds"

wrapper=
build gcc gcc --buildtype=release -Dwerror=true && run gcc
build asan gcc --buildtype=debugoptimized -Db_sanitize=address,undefined &&
	run asan --suite unit --timeout-multiplier 4
wrapper=$without_aslr
build tsan gcc --buildtype=debugoptimized -Db_sanitize=thread &&
	run tsan --suite unit --timeout-multiplier 8
build clang clang --buildtype=debugoptimized -Dwerror=true

echo
if [ "$skipped" -gt 0 ]; then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
