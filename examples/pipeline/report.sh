#!/bin/sh
# The end of the line: its result is kept with the message.
cat
