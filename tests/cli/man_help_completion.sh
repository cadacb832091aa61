#!/bin/sh
# man_help_completion - check the installed files; manual, help and completion have the same options
#
# usage: man_help_completion.sh BUILD
#
# GSORT, GSORT_GEN, GSORT_CHECK (testlib.sh) or GSORT_MPI in the environment are the programs.
. "$(dirname "$0")/testlib.sh"

build=$1
root=$work/root
called=$(basename "$GSORT") # -Dprogram_name
DESTDIR=$root meson install -C "$build" --no-rebuild > install.log 2>&1 || {
	claim "meson install succeeds"
	fail "$(tail -n 3 install.log)"
	finish
}
# list_installed [-name PATTERN]...: list the installed files
list_installed() {
	find "$root" -type f "$@" 2> /dev/null
}

claim "programs, completions and documents are in the directories of a distribution"
for name in bin/$called bin/$called-gen bin/$called-check share/doc/$called/LICENSE \
		share/bash-completion/completions/$called share/zsh/site-functions/_$called \
		share/fish/vendor_completions.d/$called.fish \
		share/bash-completion/completions/lsort; do
	[ "$(list_installed -path "*/$name" | wc -l)" = 1 ] || fail "$name is missing"
done

claim "the benchmark is only installed if it is asked for"
[ -z "$(list_installed -name "$called-bench")" ] || fail "$called-bench is there"

claim "with -Dprogram_name, only files of the library are called gsort"
[ "$called" = gsort ] || {
	mine=$(list_installed -name '*gsort*' | grep -vE '/(lib|include)/|man3/gsort\.3$')
	[ -z "$mine" ] || fail "$mine"
}

claim "library, header and pkg-config file are in the directories of a distribution"
for name in include/gsort.h libgsort.a libgsort.so.0.3.* pkgconfig/gsort.pc \
		share/doc/$called/docs/library.md share/doc/$called/examples/top_k.c; do
	[ "$(list_installed -path "*/$name" | wc -l)" = 1 ] || fail "$name is missing"
done
pc=$(list_installed -name gsort.pc)
libraries=$(dirname "$(dirname "$pc")")
for link in libgsort.so libgsort.so.0.3; do
	[ -L "$libraries/$link" ] || fail "$link is no link"
done

claim "links of installed documents lead to installed documents"
documents=$(dirname "$(list_installed -path "*/share/doc/$called/README.md")")
find "$documents" -name '*.md' > documents
while read -r document; do
	grep -oE '\]\([A-Za-z.][^):#]*[)#]' "$document" | tr -d '])(#' | while read -r link; do
		[ -e "$(dirname "$document")/$link" ] || echo "${document#"$documents/"}: $link"
	done
done < documents > broken_links
[ ! -s broken_links ] || fail "$(head broken_links)"

claim "troff prints no warnings about the manual"
if command -v man > /dev/null; then
	list_installed -path '*/man/man*' -name '*gsort*' > manuals
	while read -r manual; do
		MANWIDTH=80 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$manual" 2> warnings \
			> page || fail "$manual: status $?"
		[ ! -s warnings ] || fail "$manual: $(head -n 3 warnings)"
	done < manuals
fi

claim "each function has a manual page"
if [ -n "$(list_installed -name 'gsort.3*')" ]; then
	for function in $(grep -oE '\bgsort_[a-z0-9_]+\(' "$(list_installed -path \
		'*/include/gsort.h')" |
			tr -d '(' | grep -v '_callback$' | sort -u) gsort_set_message_callback \
			gsort_set_progress_callback; do
		[ "$(find "$root" -path "*/man3/$function.3" -exec readlink {} +)" = gsort.3 ] ||
			fail "$function(3)"
	done
fi

# Build a program with the installed files, unless the archive needs the runtime of a sanitizer or
# of gcov. The shared library contains the runtime of gcov.
instrumented=$(nm "$libraries/libgsort.a" | grep -cE ' U __(asan|tsan|ubsan|gcov|llvm)')
source=$(list_installed -name top_k.c)
build_example() {
	PKG_CONFIG_PATH=$(dirname "$pc") PKG_CONFIG_SYSROOT_DIR=$root \
		pkg-config "$@" gsort > flags && cc -O1 "$source" -o top_k $(cat flags) 2> stderr
}
if [ "$instrumented" = 0 ] && command -v pkg-config > /dev/null; then
	claim "a program can be built with the flags of pkg-config and finds the library"
	generate -n 1000 -o numbers
	build_example --cflags --libs || fail "it does not build"
	! grep -qe -D flags || fail "it gets macros: $(cat flags)"
	LD_LIBRARY_PATH=$libraries ./top_k 3 < numbers > found || fail "status $?"
	[ "$(wc -l < found)" = 3 ] || fail "$(head found)"
	claim "a program can be built with the archive and does not need the shared library"
	mv "$libraries/libgsort.so" away
	build_example --static --cflags --libs || fail "it does not build"
	mv away "$libraries/libgsort.so"
	./top_k 3 < numbers | cmp -s - found || fail "its output differs"
fi

# list_options HELP: list the options, such as "--type=TYPE"
list_options() {
	sed -n 's/^  \(-., \|    \)\(--[a-z0-9-]*\)\(\[*=[^ ]*\)\{0,1\}.*/\2/p' "$1" | sort
}

claim 'completion of lsort knows the options of --lines --help'
"$GSORT" --lines --help | grep -o -e '--[a-z][a-z0-9-]*' | sort -u > options
"$GSORT" --lines --completion=fish | sed -n 's/.* -l \([a-z0-9-]*\).*/--\1/p' | sort > completed
missing=$(comm -23 options completed)
[ -z "$missing" ] || fail "$missing"
for shell in bash zsh; do
	"$GSORT" --lines --completion=$shell > script || fail "$shell: status $?"
	grep -q 'lsort' script || fail "$shell: lsort is not in it"
done

claim 'the words of an option are completed'
"$GSORT" --completion=bash | grep -qF "'auto none delta zstd'" || fail 'of --temp-compress'

for program in "$called" "$called-gen" "$called-check"; do
	case $program in
	*-gen) path=$GSORT_GEN ;;
	*-check) path=$GSORT_CHECK ;;
	*) path=$GSORT ;;
	esac
	"$path" --help > help
	list_options help > options

	claim "--help of $program describes options from column 30 on, in 80 columns"
	# A long name is alone in its line.
	grep '^ *-' help | grep -vE '^.{28}  [^ ]|^ +-[^ ]*( --[^ ]*)?$' > misplaced
	[ ! -s misplaced ] || fail "$(head -n 3 misplaced)"
	awk 'length > 79' help > wide
	[ ! -s wide ] || fail "$(head -n 3 wide)"

	claim "completion of $program knows the options of --help, and no others"
	"$path" --completion=fish | sed -n 's/.* -l \([a-z0-9-]*\).*/--\1/p' | sort > completed
	cmp -s options completed || fail "$(diff options completed | head -5)"

	page=$(list_installed -name "$program.1")
	[ -n "$page" ] || continue
	claim "the manual of $program knows the options of --help, and no others"
	sed 's/\\-/-/g' "$page" | grep -o -e '--[a-z][a-z0-9-]*' | sort -u > told
	while read -r option; do
		case $option in
		--help | --version | --completion) [ "$program" = "$called" ] || continue ;;
		esac
		grep -qxe "$option" told || fail "$option is not in it"
	done < options
	sed -n '/^\.TP/{n;s/\\-/-/g;p}' "$page" | grep -o -e '--[a-z][a-z0-9-]*' | sort -u > terms
	cp options known
	[ "$program" != "$called" ] ||
		"$path" --lines --help | grep -o -e '--[a-z][a-z0-9-]*' >> known
	while read -r option; do
		grep -qxe "$option" known || fail "$option is not in --help"
	done < terms
done

# gsort-mpi has the options of gsort. Its manual describes only the differences.
if [ -n "${GSORT_MPI-}" ]; then
	claim "$called-mpi is installed, and so is its manual if manuals are built"
	[ "$(list_installed -path "*/bin/$called-mpi" | wc -l)" = 1 ] || fail "it is not installed"
	page=$(list_installed -name "$called-mpi.1")
	[ -n "$page" ] || [ -z "$(list_installed -name "$called.1")" ] || fail "it has no manual"
fi
if [ -n "${GSORT_MPI-}" ] && [ -n "$page" ]; then
	claim "the manual of $called-mpi has its own options, and no unknown ones"
	"$GSORT" --help > help
	list_options help > options
	"$GSORT_MPI" --help > help
	list_options help > options_of_mpi
	sed 's/\\-/-/g' "$page" > told
	comm -13 options options_of_mpi > own
	[ -s own ] || fail "it can do nothing of its own"
	while read -r option; do
		grep -qe "$option" told || fail "$option is not in it"
	done < own
	sed -n '/^\.TP/{n;p}' told | grep -o -e '--[a-z][a-z0-9-]*' | sort -u > terms
	[ -s terms ] || fail "it has no terms"
	while read -r option; do
		grep -qxe "$option" options_of_mpi || fail "$option is not in --help"
	done < terms
	claim "the manual of $called-mpi has the expected sections"
	for part in NAME SYNOPSIS DESCRIPTION STARTING REFUSALS 'EXIT STATUS' ENVIRONMENT; do
		grep -qx "\.SH \"*$part\"*" told || fail "$part is missing"
	done
	! grep -qi '^\.SH.*gsort-gen' told || fail "it has a section of another program"
fi

claim "mandoc reports no errors in manual pages"
if command -v mandoc > /dev/null; then
	for page in $(list_installed -path '*/man/man*'); do
		mandoc -Tlint -W warning "$page" > lint || fail "$(head -n 3 lint)"
	done
fi

claim "uninstalling removes all files"
DESTDIR=$root ninja -C "$build" uninstall > uninstall.log 2>&1
left=$(find "$root" 2> /dev/null | head -n 1)
[ -z "$left" ] || fail "$left is left"
finish
