#!/bin/sh
# One message: whole numbers on stdin. Their sum on stdout is the result, stderr is
# the log, and the exit status says how it went:
#   0   done
#   65  the message itself is bad: it is DEAD at once (EX_DATAERR)
#   75  not now: try again after the backoff, no attempt is charged (EX_TEMPFAIL)
#   else  this attempt failed, it is charged and tried again
set -eu
numbers=$(cat)
if [ -e closed ]; then
    echo "the office is closed" >&2
    exit 75
fi
case $numbers in
'' | *[!0-9\ ]*)
    echo "these are no whole numbers: $numbers" >&2
    exit 65
    ;;
esac
sum=0
for n in $numbers; do sum=$((sum + n)); done
echo "$sum"
