#!/bin/sh
# A goal on stdin becomes steps for the operator: all of them, or none.
set -eu
goal=$(cat)
plan=$(echo "Plan: $goal" | "$MODEL")
echo "$plan" | while IFS= read -r step; do
    sovereign send operator "$step" --subject "$goal" >/dev/null
done
echo "$plan"
