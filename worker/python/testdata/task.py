#!/usr/bin/env python3
import os

from sovereign import Task

task = Task()
assert task.workspace.is_dir() and not list(task.workspace.iterdir())
if task.text == "bad":
    task.send("next", "never seen")
    task.bad("this is no message")
if task.text == "later" and task.attempt == 1:
    task.later("not yet")
task.progress("at work")
task.check()
task.send("next", task.body, subject=task.id)
print(task.text.upper(), task.attempt, end="")
