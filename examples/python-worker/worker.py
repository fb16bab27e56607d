#!/usr/bin/env python3
"""A worker that turns texts around."""
from sovereign import Worker

for message in Worker():
    with message:
        if not message.text:
            raise ValueError("there is nothing to turn around")
        message.complete(message.text[::-1])
