#!/bin/sh
# make_man.sh - convert a Markdown document to a manual page
#
# usage: make_man.sh PANDOC TITLE SECTION DOCUMENT [-M KEY=VALUE]...
#
# Writes to standard output. Removes the paragraph request that pandoc writes after a heading, and
# hyphenates no words, so that a search finds them.
set -eu
pandoc=$1 title=$2 section=$3 document=$4
shift 4
"$pandoc" --standalone --from=gfm --to=man --lua-filter="$(dirname "$0")/manual_to_man.lua" \
	-M title="$title" -M section="$section" "$@" "$document" |
	sed -e '/^\.S[HS]/{n;/^\.PP$/d}' -e '/^\.hy$/d' -e '/^\.TH /a .nh'
