#!/bin/sh
# Sends each line of its message to count. What a task sends is staged: it becomes
# visible when the task's own message is completed, and not at all if it fails.
set -eu
while IFS= read -r line || [ -n "$line" ]; do
    sovereign send count "$line" --subject "$SOVEREIGN_MESSAGE_ID" >/dev/null
    # So that there is something to see: the first attempt dies half-way.
    if [ "$SOVEREIGN_ATTEMPT" = 1 ]; then
        echo "failing with a line staged already" >&2
        exit 1
    fi
done
