#!/usr/bin/env python3
"""Does what the body says. Words in the log tell the test where it is; the pipe
`go` has it wait for the test."""
import os
import sys

from sovereign import Message, Refused, Worker


class Loud(Worker):
    def drain(self) -> None:
        super().drain()
        os.write(1, b"draining\n")


worker = Loud()


def wait_for_go() -> None:
    with open("go") as pipe:
        pipe.read()


def work(message: Message) -> None:
    command = message.subject
    if command == "echo":
        message.complete(message.body)
    elif command == "die":
        message.send("next", f"attempt {message.attempt}")
        if message.attempt == 1:
            print("held", message.id)
            message.cancelled.wait()
        message.complete(f"attempt {message.attempt}")
    elif command == "slow":
        print("held", message.id)
        wait_for_go()
        message.complete(f"drains: {worker.draining}")
    elif command == "wait":
        print("held", message.id)
        message.cancelled.wait()
        print("lost:", message.lost.why if message.lost else "no reason")
    elif command == "late" and message.attempt == 1:
        print("held", message.id)
        wait_for_go()
        try:
            message.complete("late")
        except Refused as refused:
            print("refused:", refused.category)
            raise
    elif command == "long":
        first = message.remaining()
        renewed = 0
        while renewed < 3:  # several times its ttl
            assert not message.cancelled.wait(first)
            assert message.remaining() > 0
            message.check()
            renewed += 1
        message.complete("held all the time")
    elif command == "copy":
        message.send("next", message.body)
    elif command == "call":
        message.complete(message.call("task", message.body, key=message.id, timeout=300))
    elif command == "fail":
        raise ValueError("as it should")
    else:
        message.complete(command)


if len(sys.argv) > 1:
    worker.run(work, concurrency=int(sys.argv[1]))
else:
    for each in worker:
        with each:
            work(each)
