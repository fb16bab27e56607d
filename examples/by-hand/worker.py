#!/usr/bin/env python3
"""A worker that turns texts around, and speaks the protocol itself."""
import itertools
import json
import os
import signal
import socket
import sys


class Refused(Exception):
    """The supervisor said no; the category says why."""


class Supervisor:
    """The channel to the supervisor: JSON-RPC 2.0, one object a line."""

    def __init__(self):
        channel = socket.socket(fileno=int(os.environ["SOVEREIGN_FD"]))
        # Two files: one for both ways would forget what it has read ahead when it writes.
        self.answers = channel.makefile("r", encoding="utf-8")
        self.requests = channel.makefile("w", encoding="utf-8")
        self.ids = itertools.count(1)
        self.draining = False

    def call(self, method, **params):
        request = next(self.ids)
        line = json.dumps({"jsonrpc": "2.0", "id": request, "method": method, "params": params})
        print(line, file=self.requests, flush=True)
        for line in self.answers:
            answer = json.loads(line)
            if answer.get("method") == "drain":  # a claim that waits is answered now
                self.draining = True
            if answer.get("id") == request:
                if "error" in answer:
                    raise Refused(answer["error"]["data"]["category"])
                return answer["result"]
        sys.exit("the supervisor is gone")


def turn_around(text):
    if not text:
        raise ValueError("there is nothing to turn around")
    return text[::-1]


signal.signal(signal.SIGTERM, signal.SIG_IGN)  # "drain" says the same: finish, then go
supervisor = Supervisor()
supervisor.call("ready")
while not supervisor.draining:
    for message in supervisor.call("claim", wait="10m")["messages"]:
        claim = {"id": message["id"], "token": message["token"]}
        try:
            supervisor.call("complete", **claim, result=turn_around(message["body"]))
        except Refused as refused:
            print(f"{message['id']} is no longer ours: {refused}", file=sys.stderr)
        except Exception as problem:
            supervisor.call("fail", **claim, reason=str(problem))
