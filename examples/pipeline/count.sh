#!/bin/sh
# Counts the words of one line.
set -eu
line=$(cat)
words=$(printf '%s\n' "$line" | wc -w)
printf '%d words: %s\n' "$words" "$line" | sovereign send report - --subject "$SOVEREIGN_SUBJECT" >/dev/null
