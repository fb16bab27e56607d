#!/bin/sh
# Carries out one step, and has it reviewed. world.log is the world: what happens
# there cannot be taken back.
set -eu
step=$(cat)
sovereign fence            # exits 3 when the claim is not ours any more
echo "begun: $step" >>world.log
echo "at work: $step" >&2
outcome=$(echo "Do: $step" | "$MODEL")
echo "ended: $step" >>world.log
sovereign send reviewer "$outcome" --subject "$SOVEREIGN_SUBJECT" >/dev/null
echo "$outcome"
