#!/bin/sh
# make_man.sh - one page of the manual, made of a document
#
# usage: make_man.sh PANDOC TITLE SECTION DOCUMENT [-M KEY=VALUE]...
#
# Written to standard output. What pandoc says twice (a paragraph after a heading) is said once.
set -eu
pandoc=$1 title=$2 section=$3 document=$4
shift 4
"$pandoc" --standalone --from=gfm --to=man --lua-filter="$(dirname "$0")/manual_to_man.lua" \
	-M title="$title" -M section="$section" "$@" "$document" |
	sed -e '/^\.S[HS]/{n;/^\.PP$/d}' -e '/^\.hy$/d'
