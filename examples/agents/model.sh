#!/bin/sh
# Stands in for a model. To do something takes as many seconds as the file pace
# says.
read -r task prompt
case $task in
Plan:) printf '%s\n' "migrate the database" "switch the traffic" ;;
Do:)
    sleep "$(cat pace)"
    echo "done: $prompt"
    ;;
Review:) echo "approved, $prompt" ;;
esac
