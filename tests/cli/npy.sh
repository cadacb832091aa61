#!/bin/sh
# npy - compare sorts of numpy arrays by gsort and by numpy (see npy.py)
. "$(dirname "$0")/testlib.sh"

claim '--verify reports that /dev/null cannot be read back, even without records'
head -c 8 /dev/zero > header
expect_failure '--verify: /dev/null: cannot be read back$' \
	--verify --skip-bytes=8 header -o /dev/null

claim 'gsort sorts arrays as numpy does'
# Prefer the Python of the system, which has numpy as a package. PATH may have another one first.
python=/usr/bin/python3
[ -x "$python" ] || python=python3
"$python" "$(dirname "$0")/npy.py" "$GSORT" "$GSORT_CHECK" > findings 2>&1
status=$?
cat findings
[ $status -ne 77 ] || exit 77
expect_status 0

finish
