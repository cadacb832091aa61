#!/bin/sh
# explain - the plan for people and the plan for scripts are the same: see explain.py
. "$(dirname "$0")/prelude.sh"

claim 'both forms of --explain agree'
python3 "$(dirname "$0")/explain.py" "$GSORT" "$GSORT_GEN" > findings 2>&1
status=$?
cat findings
[ $status -eq 0 ] || broken "status $status"

claim 'what neither form is, is refused'
refuses 'explain' --explain=xml

finish
