#!/bin/sh
# Looks at what was done.
set -eu
outcome=$(cat)
echo "Review: $outcome" | "$MODEL"
