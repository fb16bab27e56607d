// Package python holds the SDK for workers written in Python: sovereign.py, one
// file of the standard library alone, which is copied beside the worker.
//
//	from sovereign import Worker
//
//	for message in Worker():
//	    with message:
//	        message.complete(resize(message.text))
//
// It keeps the rules of package worker: what leaves the block settles the message,
// once; a claim's time counts from when it was asked for; one renewal without an
// answer changes nothing; a lost claim is let go, not settled; claims that nobody
// waits for any more are given back; a SIGTERM drains. Its documentation is in it.
//
// `sovereign init --python` writes the SDK that belongs to the program.
package python

import _ "embed"

// SDK is the text of sovereign.py.
//
//go:embed sovereign.py
var SDK string
