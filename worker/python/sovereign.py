"""How a worker written in Python speaks to its supervisor.

Python 3.9 or newer, standard library only: copy this file beside your worker.

    from sovereign import Worker

    for message in Worker():
        with message:
            message.complete(resize(message.text))

The loop claims one message after the other and ends when the supervisor wants the
worker to stop. Leaving the `with` block settles the message, if the block has not
done so: it is completed, or failed where an exception came out of the block. The
exception is logged and goes no further; the loop takes the next message.

    Worker().run(resize, concurrency=4)     # the same, with a function and threads

A claim's time is counted from the moment its request was sent, and is renewed at a
third of what is left, in the background; one renewal that gets no answer changes
nothing. Code that keeps the interpreter to itself (one long regular expression, the power
of a huge number) keeps the renewals waiting too. With `claim: {renew: auto}`, the
default, that is no harm within the actor's `timeout`; with `manual`, or a `watchdog` that
is shorter, do such work in another process (concurrent.futures.ProcessPoolExecutor).
`message.cancelled` is set when the claim is lost: it expired, a person
cancelled the message, or the process lost its lease. Whatever is done from then on
counts for nothing, and the message is let go instead of settled.

Everything may be called from any thread. What is refused raises Refused.

Not promised: that a message is worked on once. It can be handed out again after a
death or an expiry; only one attempt's completion counts.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import logging
import math
import os
import pathlib
import queue
import signal
import socket
import sys
import threading
import time
import traceback
import weakref
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Tuple, Type, TypeVar, Union

__all__ = ["CallFailed", "Message", "Outgoing", "Refused", "Task", "Worker"]

MAX_LINE = 8 << 20  # bytes, the newline not counted
CLAIM_WAIT = 300.0  # seconds that one claim waits; a message is handed out as soon as there is one
TOKENS = 1 << 53  # every token is below

Content = Union[str, bytes]
Seconds = Union[float, timedelta]
Params = Dict[str, Any]
_T = TypeVar("_T")

log = logging.getLogger("sovereign")


class Refused(Exception):
    """The answer no, for a reason. Go by `category` (docs/protocol.md); `next` says
    what to do; `retryable`, that the same may succeed later."""

    def __init__(self, category: str, message: str, why: str = "", next: str = "", retryable: bool = False) -> None:
        super().__init__(category, message, why, next, retryable)
        self.category, self.message, self.why, self.next, self.retryable = category, message, why, next, retryable

    def __str__(self) -> str:
        text = f"{self.message} ({self.category})" + (f": {self.why}" if self.why else "")
        if self.category == "unavailable" and self.next:  # most often a person reads this
            text += f"; {self.next}"
        return text

    @property
    def final(self) -> bool:
        """The claim, or the lease under which it was made, is not current and never
        will be again."""
        return self.category in _FINAL


class CallFailed(Exception):
    """The message of a call did not complete: it is DEAD or PARKED, or `gone`: it was
    removed before its end was seen. `failure` and `receipt` are those of its last
    attempt that has ended, as the protocol has them, or None."""

    def __init__(self, id: str, state: str, gone: bool, failure: Optional[Params], receipt: Optional[Params]) -> None:
        super().__init__(id, state, gone, failure, receipt)
        self.id, self.state, self.gone, self.failure, self.receipt = id, state, gone, failure, receipt

    def __str__(self) -> str:
        text = f"message {self.id} is {'gone' if self.gone else self.state}"
        return text + (f" ({self.failure.get('category')}: {self.failure.get('reason')})" if self.failure else "")


_FINAL = frozenset(["actor_lease_lost", "lease_expired", "lease_corrupt", "fencing_token_stale",
                    "already_settled", "message_missing", "not_addressee"])
_DROP = "stop: what this attempt does counts no more"
_STOP = "stop: nothing that this process does counts any more"


@dataclass(frozen=True)
class Outgoing:
    """A message that is to be sent. Times are seconds or timedeltas; `at` has a zone."""

    to: str
    body: Content = b""
    subject: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str = ""  # idempotency key, per recipient
    key_ttl: Optional[Seconds] = None  # None: while the message exists
    delay: Seconds = 0
    at: Optional[datetime] = None  # instead of delay
    priority: int = 0
    group: str = ""
    ttl: Optional[Seconds] = None

    def params(self) -> Params:
        """The message as the protocol writes it."""
        p: Params = {"to": self.to, "body": _written(self.body), "subject": self.subject, "headers": dict(self.headers),
                     "key": self.key, "priority": self.priority, "group": self.group}
        for name, value in (("key_ttl", self.key_ttl), ("delay", self.delay or None), ("ttl", self.ttl)):
            if value is not None:
                p[name] = _duration(value)
        if self.at is not None:
            if self.at.tzinfo is None:
                raise _bad("at has no time zone")
            p["at"] = self.at.isoformat()
        return p


class _Sender:
    """Who can send."""

    def send(self, to: str, body: Content = b"", *, subject: str = "", headers: Optional[Mapping[str, str]] = None,
             key: str = "", key_ttl: Optional[Seconds] = None, delay: Seconds = 0, at: Optional[datetime] = None,
             priority: int = 0, group: str = "", ttl: Optional[Seconds] = None) -> str:
        """Send a message and return its id, once it is durable. What a Message or a
        Task sends is staged: it becomes visible when that completes, and never if
        it does not. What a Worker sends is visible at once."""
        return self._send(Outgoing(to, body, subject, headers or {}, key, key_ttl, delay, at, priority, group, ttl).params())

    def _send(self, params: Params) -> str:
        raise NotImplementedError


class Message(_Sender):
    """One claimed message."""

    id: str
    sender: str  # the actor that sent it, or ""
    subject: str
    headers: Dict[str, str]
    body: bytes
    attempt: int  # ordinal of this start, from 1
    token: int  # the fence: give it to resources that compare numbers
    cancelled: threading.Event  # set once the claim is lost
    lost: Optional[Refused]  # why it is

    def __init__(self, worker: Worker, delivery: object, sent: float) -> None:
        d = _object(delivery)
        self.id, self.sender, self.subject = _text(d, "id"), _text(d, "from"), _text(d, "subject")
        self.headers = {str(k): str(v) for k, v in _object(d.get("headers") or {}).items()}
        self.body = _read(d.get("body", ""))
        self.attempt, self.token = _whole(d, "attempt"), _whole(d, "token")
        self.cancelled, self.lost = threading.Event(), None
        self._worker = worker
        self._ref: Params = {"id": self.id, "token": self.token}
        self._settled = False
        self._callers: set[queue.SimpleQueue[Optional[_Answer]]] = set()  # calls that wait within it
        self._fenced = False  # the supervisor itself has refused the claim
        remaining = _whole(d, "remaining_ms") / 1000
        now = time.monotonic()
        self._deadline = sent + remaining
        # It was granted much later than it was asked for: to renew it, before the work
        # begins, is what tells how long it really has.
        self._late = now - sent > remaining / 4
        self._due = math.inf if self._late else now + (self._deadline - now) / 3  # when it is renewed next

    def __repr__(self) -> str:
        return f"<Message {self.id} attempt={self.attempt} token={self.token}>"

    @property
    def text(self) -> str:
        """The body as text. What is no UTF-8 raises UnicodeDecodeError."""
        return self.body.decode()

    def remaining(self) -> float:
        """The seconds for which the claim is known to hold; 0 once it is lost."""
        return 0.0 if self.cancelled.is_set() else max(self._deadline - time.monotonic(), 0.0)

    def complete(self, result: Optional[Content] = None, *, send: Iterable[Outgoing] = ()) -> str:
        """End the attempt with success and return the message's state. The result is
        stored; beyond 1 MiB it is cut. `send` is sent with it: where one of them is
        refused, nothing is sent and the claim goes on. Repeating it is harmless."""
        return self._complete(result, send, 0)[0]

    def fail(self, reason: str = "", *, delay: Optional[Seconds] = None, dead: bool = False) -> str:
        """End the attempt without success and return the message's state: it is tried
        again after the actor's backoff, or after `delay`; with `dead`, never."""
        params: Params = {"reason": _clean(reason), "dead": dead}
        if delay is not None:
            params["delay"] = _duration(delay)
        return _text(self._settle("fail", params), "state")

    def release(self) -> str:
        """Give the message back at once, uncharged, and return its state."""
        return _text(self._settle("release", {}), "state")

    def check(self) -> None:
        """Return while the claim is current, else raise. For the moment right before
        a step that cannot be taken back."""
        self._ask("check", {})

    def call(self, to: str, body: Content = b"", *, timeout: Optional[Seconds] = None, subject: str = "",
             headers: Optional[Mapping[str, str]] = None, key: str = "", key_ttl: Optional[Seconds] = None, delay: Seconds = 0,
             priority: int = 0, group: str = "", ttl: Optional[Seconds] = None) -> bytes:
        """Worker.call within the work on this message: it also ends, with the reason,
        when the claim is lost."""
        return self._worker._call(Outgoing(to, body, subject, headers or {}, key, key_ttl, delay, None, priority, group, ttl), timeout, self)

    def progress(self, text: str) -> None:
        """Record what is being done, for people, and renew the claim."""
        self._renew({"progress": _clean(text)})

    def __enter__(self) -> Message:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> bool:
        self._leave(error, None, 0)
        return isinstance(error, Exception)

    def _send(self, params: Params) -> str:
        return _text(self._ask("send", {**params, "claim": self._ref}, named=False), "id")

    def _ask(self, method: str, params: Params, named: bool = True) -> Params:
        if self.lost is not None:
            raise self.lost
        try:
            return self._worker._channel.ask(method, {**params, **(self._ref if named else {})})[0]
        except Refused as refused:
            if refused.final:
                self._fenced = True
                self._worker._lose(self, refused)
            raise

    def _renew(self, params: Params) -> None:
        sent = time.monotonic()
        self._extend(self._ask("renew", params), sent)

    def _extend(self, answer: Params, sent: float) -> None:
        """Move the deadline to what a renewal has granted, never to earlier."""
        until = sent + _whole(answer, "remaining_ms") / 1000
        with self._worker._changed:
            self._deadline, now = max(self._deadline, until), time.monotonic()
            self._due = now + max(self._deadline - now, 0) / 3
            self._worker._changed.notify()

    def _settle(self, method: str, params: Params) -> Params:
        answer = self._ask(method, params)
        self._settled = True
        self._worker._forget(self)
        return answer

    def _complete(self, result: Optional[Content], send: Iterable[Outgoing], claim: int) -> Tuple[str, List[Message]]:
        params: Params = {"send": [s.params() for s in send]}
        if result is not None:
            params["result"] = _written(result)
        if claim:
            params["next"] = {"max": claim}
        sent = time.monotonic()
        answer = self._settle("complete", params)
        return _text(answer, "state"), self._worker._deliveries(answer, sent)

    def _leave(self, error: Optional[BaseException], result: Optional[Content], claim: int) -> List[Message]:
        """Settle as the work on it has ended, once. What the supervisor refuses is
        logged. The messages are those that the completion has claimed."""
        if isinstance(error, Exception) and not (isinstance(error, Refused) and error is self.lost):
            log.error("%s attempt %d", self.id, self.attempt, exc_info=error)
        try:
            if self._settled:
                return []
            if self.cancelled.is_set():
                self._let_go()
            elif error is None:
                return self._finish(result, claim)
            elif isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                self.release()
            else:
                reason = "".join(traceback.format_exception_only(type(error), error)).strip()
                self._insist(lambda: self.fail(reason))
        except Refused as refused:
            log.warning("%s attempt %d is not settled: %s", self.id, self.attempt, refused)
        finally:
            self._worker._forget(self)
        return []

    def _finish(self, result: Optional[Content], claim: int) -> List[Message]:
        try:
            return self._insist(lambda: self._complete(result, (), claim)[1])
        except (Refused, TypeError) as refused:
            if isinstance(refused, Refused) and (self._settled or self.cancelled.is_set()):
                raise
            # It stays claimed otherwise, with nobody at work on it.
            reason = f"its completion was refused: {refused}"
            log.error("%s attempt %d: %s", self.id, self.attempt, reason)
            self._insist(lambda: self.fail(reason))
            return []

    def _insist(self, settle: Callable[[], _T]) -> _T:
        """Try again what may succeed later, for as long as the claim is held."""
        pause = 0.1
        while True:
            try:
                return settle()
            except Refused as refused:
                if not refused.retryable or self.cancelled.wait(pause):
                    raise
                pause = min(2 * pause, 5.0)

    def _let_go(self) -> None:
        """Tell the supervisor that the work on a lost claim has ended: one that a
        person cancelled is over then, and the process need not be killed for it."""
        log.warning("%s attempt %d: %s", self.id, self.attempt, self.lost)
        if not self._fenced and self._worker.lost is None:
            try:
                self._worker._channel.ask("release", self._ref)
            except Refused:
                pass  # as it should be: the claim is lost


class Worker(_Sender):
    """A process of an actor of mode worker. Opened before other programs are
    started, it keeps the channel from them; a process that this one forks has to
    open a Worker of its own.

    In the main thread a SIGTERM, with which the supervisor stops a worker, has it
    drain, unless the program has a handler of its own or `sigterm` is False."""

    draining: bool  # no more is claimed
    lost: Optional[Refused]  # why nothing counts any more

    def __init__(self, *, sigterm: bool = True) -> None:
        self.draining, self.lost = False, None
        self._sigterm = sigterm
        self._claimers: set[queue.SimpleQueue[Any]] = set()
        self._changed = threading.Condition(threading.Lock())  # guards _held
        self._held: Dict[Tuple[str, int], Message] = {}
        self._told = False  # that it is ready
        self._channel = _Channel.open(self._notified, self._ended)
        this = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _unlocked(this()))
        threading.Thread(target=self._keep, name="sovereign-renew", daemon=True).start()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection. What is claimed and not settled is the supervisor's to
        give out again, once this process has ended."""
        self._channel.end(None)

    def ready(self) -> None:
        """Tell the supervisor that the worker is ready (ready: {notify: true}). The loop
        and run do so by themselves."""
        self._channel.ask("ready", {})
        self._told = True

    def call(self, to: str, body: Content = b"", *, timeout: Optional[Seconds] = None, subject: str = "",
             headers: Optional[Mapping[str, str]] = None, key: str = "", key_ttl: Optional[Seconds] = None, delay: Seconds = 0,
             priority: int = 0, group: str = "", ttl: Optional[Seconds] = None) -> bytes:
        """Send a message and wait for its result. It always comes back: with the result;
        with CallFailed, where the message is DEAD, PARKED or gone; with TimeoutError
        after `timeout`; or with Refused, of the send or of a supervisor that stops.
        The message goes on where nobody waits any longer.

        It is sent at once, not with the completion of what is at hand. A handler that
        may run again gives a key, such as one made of the id of its own message: then
        the second run gets the first one's answer. An actor whose every slot calls the
        actor itself waits until the timeout of its message."""
        return self._call(Outgoing(to, body, subject, headers or {}, key, key_ttl, delay, None, priority, group, ttl), timeout, None)

    def _call(self, out: Outgoing, timeout: Optional[Seconds], within: Optional[Message]) -> bytes:
        limit = None if timeout is None else time.monotonic() + _seconds(timeout)
        answers: queue.SimpleQueue[Optional[_Answer]] = queue.SimpleQueue()
        if within is not None:
            within._callers.add(answers)
        try:
            def ask(method: str, params: Params) -> Params:
                if within is not None and within.lost is not None:
                    raise within.lost
                self._channel.post(method, params, answers.put)
                answer = answers.get(timeout=None if limit is None else max(limit - time.monotonic(), 0))
                if answer is None:  # the claim is lost
                    assert within is not None and within.lost is not None
                    raise within.lost
                return answer.result()

            sent = _text(ask("send", out.params()), "id")
            try:
                end = ask("await", {"id": sent})
            except Refused as refused:
                if refused.category != "message_missing":
                    raise
                raise CallFailed(sent, "", True, None, None) from None
        except queue.Empty:
            raise TimeoutError(f"no answer of {out.to} in time") from None
        finally:
            if within is not None:
                within._callers.discard(answers)
        if end.get("gone") is True or end.get("state") != "DONE":
            failure, receipt = (_object(end[k]) if end.get(k) is not None else None for k in ("last_failure", "receipt"))
            raise CallFailed(sent, _text(end, "state"), end.get("gone") is True, failure, receipt)
        return _read(end["result"]) if end.get("result") is not None else b""

    def ping(self) -> None:
        """Give a sign of life for the watchdog, as every other request does."""
        self._channel.ask("ping", {})

    def request(self, method: str, **params: Any) -> Params:
        """Make any request of the protocol and return its result."""
        return self._channel.ask(method, params)[0]

    def claim(self, *, wait: Seconds = 0, max: int = 1, id: Optional[str] = None, request: Optional[str] = None) -> List[Message]:
        """Claim messages: none, if there are none within `wait` or once the worker drains.
        Each is to be settled. `id` asks for one message; a `request`, a string of your
        own, brings the same claims again when it is repeated."""
        params: Params = {"wait": _duration(wait), "max": max}
        if id is not None:
            params["id"] = id
        if request is not None:
            params["request"] = request
        place = _Place()
        self._claimers.add(place.wakes)
        try:
            if self.draining:
                return []
            self._channel.post("claim", params, lambda answer: self._claimed(answer, place))
            patience: Optional[float] = None
            while place.wakes.get(timeout=patience) is None:  # drain: the supervisor that asked for it answers at once
                patience = 1.0
            got = place.take()
            if isinstance(got, Refused):
                raise got
            try:
                return [m for m in got if self._fresh(m)]
            except BaseException:  # of a signal handler
                self._give_back(got)
                raise
        except queue.Empty:
            return []
        finally:
            self._claimers.discard(place.wakes)
            self._give_back(place.take())  # what came and was not taken

    def __iter__(self) -> Iterator[Message]:
        """The messages, one at a time, until the worker drains. One that the loop's
        body has not settled when it asks for the next is failed. Raises Refused when
        the lease of the process is lost or the supervisor is gone: exit then."""
        restore = self._begin()
        try:
            while True:
                for message in self._next():
                    yield message
                    if not message._settled and not message.cancelled.is_set():
                        message._leave(RuntimeError("its worker went on without settling it"), None, 0)
                if self.draining:
                    break
        finally:
            restore()
        if self.lost is not None:
            raise self.lost

    def run(self, handle: Callable[[Message], Optional[Content]], *, concurrency: int = 1) -> None:
        """Call `handle` with each message, in as many threads as `concurrency` says; with
        1, in this one. What it returns is the result, an exception fails the attempt;
        it may settle the message itself. Returns once the worker has drained and the
        handlers have returned; raises as the loop does. A SystemExit of a handler
        drains, and is raised at the end."""
        restore = self._begin()
        try:
            if concurrency == 1:
                ended = self._serve(handle)
            else:
                ends: queue.SimpleQueue[Optional[BaseException]] = queue.SimpleQueue()
                for n in range(concurrency):
                    threading.Thread(target=lambda: ends.put(self._serve(handle)), name=f"sovereign-{n + 1}", daemon=True).start()
                ended = next(iter([e for e in [ends.get() for _ in range(concurrency)] if e is not None]), None)
        finally:
            restore()
        if self.lost is not None:
            raise self.lost
        if ended is not None:
            raise ended

    def drain(self) -> None:
        """Claim no more. The loop and run end once what is at hand is settled."""
        self.draining = True
        for claimer in tuple(self._claimers):
            claimer.put(None)  # safe within a signal handler

    def _send(self, params: Params) -> str:
        return _text(self._channel.ask("send", params)[0], "id")

    def _begin(self) -> Callable[[], None]:
        """Tell that the worker is ready, and see to SIGTERM until the result is called."""
        restore = self._drain_on_sigterm()
        try:
            if not self._told and not self.draining:
                self.ready()
        except BaseException:
            restore()
            raise
        return restore

    def _drain_on_sigterm(self) -> Callable[[], None]:
        process, main = os.getpid(), threading.main_thread()
        if not self._sigterm or threading.current_thread() is not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return lambda: None

        def restore() -> None:
            if threading.current_thread() is main:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)

        def drain(*_: object) -> None:
            if os.getpid() == process:
                self.drain()
            else:  # a fork has inherited this, and dies of the signal as it would have
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(signal.SIGTERM, drain)
        return restore

    def _next(self) -> List[Message]:
        """The next messages; none once the worker drains. A refusal that lasts is asked
        for once a second."""
        while not self.draining:
            try:
                got = self.claim(wait=CLAIM_WAIT)
            except Refused as refused:
                if refused.category in ("actor_lease_lost", "lease_expired", "bad_request", "unavailable") and not refused.retryable:
                    self._stop(refused)
                    break
                log.warning("claim refused: %s", refused)
                self._pause(1)
                continue
            if got and self.draining:
                self._give_back(got)  # claimed while draining began
            elif got:
                return got
        return []

    def _fresh(self, message: Message) -> bool:
        """Whether the work on it may begin."""
        if not message._late:
            return True
        try:
            message._renew({})
            message._late = False
            return True
        except Refused as refused:
            log.warning("%s attempt %d is not begun: %s", message.id, message.attempt, refused)
            self._give_back([message])
            return False

    def _pause(self, seconds: float) -> None:
        wake: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._claimers.add(wake)
        try:
            if not self.draining:
                wake.get(timeout=seconds)
        except queue.Empty:
            pass
        finally:
            self._claimers.discard(wake)

    def _serve(self, handle: Callable[[Message], Optional[Content]]) -> Optional[BaseException]:
        """Handle one message after the other. The completion of one claims the next."""
        ended: Optional[BaseException] = None
        ready: List[Message] = []
        while ended is None:
            ready = ready or self._next()
            if not ready:
                return None
            message = ready.pop(0)
            if self.draining:
                self._give_back([message])
                continue
            if not self._fresh(message):
                continue
            error: Optional[BaseException] = None
            result: Optional[Content] = None
            try:
                result = handle(message)
            except BaseException as raised:  # it ends the attempt; what is no Exception, the worker too
                error = raised
            if error is not None and not isinstance(error, Exception):
                ended = error
                self.drain()
            ready += message._leave(error, result, 0 if self.draining or ready else 1)
        self._give_back(ready)
        return ended

    def _claimed(self, answer: _Answer, place: _Place) -> None:
        """Take the answer of a claim, in the reading thread, so that a message is known
        before any notification about it is read. What nobody waits for goes back."""
        got: Union[List[Message], Refused]
        try:
            got = self._deliveries(answer.result(), answer.sent)
        except Refused as refused:
            got = refused
        if not place.put(got):
            self._give_back(got)

    def _deliveries(self, result: Params, sent: float) -> List[Message]:
        messages = [Message(self, d, sent) for d in _list(result.get("messages") or [])]
        with self._changed:
            for m in messages:
                self._held[m.id, m.token] = m
            self._changed.notify()
        if self.lost is not None:
            for m in messages:
                self._lose(m, self.lost)
        return messages

    def _give_back(self, claimed: Union[List[Message], Refused]) -> None:
        """Release claims that nobody works on, without waiting for the answers."""
        if isinstance(claimed, list) and claimed:
            threading.Thread(target=self._release, args=(claimed,), name="sovereign-release", daemon=True).start()

    def _release(self, claimed: List[Message]) -> None:
        for message in claimed:
            self._forget(message)
            try:
                if not message._fenced:
                    self._channel.ask("release", message._ref)
            except Refused as refused:
                log.warning("%s is not released: %s", message.id, refused)

    def _forget(self, message: Message) -> None:
        with self._changed:
            self._held.pop((message.id, message.token), None)

    def _lose(self, message: Message, why: Refused) -> None:
        self._forget(message)
        if message.lost is None:
            message.lost = why
        message.cancelled.set()
        for caller in tuple(message._callers):
            caller.put(None)

    def _stop(self, why: Refused) -> None:
        """Nothing that this process does counts any more."""
        if self.lost is None:
            self.lost = why
        with self._changed:
            held = list(self._held.values())
            self._changed.notify()
        for m in held:
            self._lose(m, why)
        self.drain()

    def _ended(self, why: Refused) -> None:
        self._stop(why)

    def _notified(self, method: str, params: Params) -> None:
        """In the reading thread."""
        reason = str(params.get("reason", ""))
        if method == "drain":
            self.drain()
        elif method == "lease_lost":
            self._stop(Refused("actor_lease_lost", "the lease of this process is lost", reason, _STOP))
        elif method == "claim_lost":
            with self._changed:
                message = self._held.get((str(params.get("id")), params.get("token", 0)))
            if message is not None:
                self._lose(message, Refused("lease_expired", f"the claim of message {message.id} is lost", reason,
                                            _DROP))

    def _keep(self) -> None:
        """Renew what is held, each at a third of the time that it has left. A renewal that
        gets no answer, or is refused for another reason than the fence, is tried again;
        at the deadline the claim is taken for lost."""
        while self.lost is None:
            with self._changed:
                now = time.monotonic()
                due = [m for m in self._held.values() if m._due <= now]
                if not due:
                    soonest = min((m._due for m in self._held.values()), default=None)
                    self._changed.wait(None if soonest is None or soonest == math.inf else soonest - now)
                    continue
            for m in due:
                left = m._deadline - time.monotonic()
                if left <= 0:
                    self._lose(m, Refused("lease_expired", f"the claim of message {m.id} has run out",
                                          "no renewal was answered in time", _DROP))
                    continue
                # At the very end there is no use in trying more often than now and then.
                m._due = time.monotonic() + max(left / 3, min(left, 0.005))
                try:
                    self._channel.post("renew", m._ref, functools.partial(self._renewed, m))
                except Refused:
                    pass  # the connection has ended, which is told otherwise

    def _renewed(self, message: Message, answer: _Answer) -> None:
        try:
            message._extend(answer.result(), answer.sent)
        except Refused as refused:
            if refused.final and not message._settled:
                message._fenced = True
                self._lose(message, refused)


class _Place:
    """Where the answer of a claim arrives, while somebody waits for it."""

    def __init__(self) -> None:
        self.wakes: queue.SimpleQueue[Optional[bool]] = queue.SimpleQueue()  # None: drain; True: it has come
        self._lock = threading.Lock()  # guards what follows
        self._open = True
        self._got: Union[List[Message], Refused] = []

    def put(self, got: Union[List[Message], Refused]) -> bool:
        """False if nobody waits any more."""
        with self._lock:
            if self._open:
                self._got = got
            taken = self._open
        if taken:
            self.wakes.put(True)
        return taken

    def take(self) -> Union[List[Message], Refused]:
        """What has come, once; nothing comes any more."""
        with self._lock:
            got, self._got, self._open = self._got, [], False
        return got


class Task(_Sender):
    """The message of a process of an actor of mode task. What the process prints is
    the result, its exit status decides: 0 completes, an exception fails.

        task = Task()
        print(task.text.upper())
    """

    id: str
    sender: str
    subject: str
    attempt: int
    token: int
    workspace: pathlib.Path  # an empty folder of this attempt

    def __init__(self) -> None:
        try:
            self.id, self.workspace = os.environ["SOVEREIGN_MESSAGE_ID"], pathlib.Path(os.environ["SOVEREIGN_WORKSPACE"])
            self.attempt, self.token = int(os.environ["SOVEREIGN_ATTEMPT"]), int(os.environ["SOVEREIGN_CLAIM_TOKEN"])
        except (KeyError, ValueError) as error:
            raise _no_supervisor(f"this is no task: {error}") from None
        self.sender, self.subject = os.environ.get("SOVEREIGN_FROM", ""), os.environ.get("SOVEREIGN_SUBJECT", "")
        self._body: Optional[bytes] = None
        self._open: Optional[_Channel] = None

    @property
    def body(self) -> bytes:
        """The body, read from the standard input."""
        if self._body is None:
            self._body = sys.stdin.buffer.read()
        return self._body

    @property
    def text(self) -> str:
        """The body as text. What is no UTF-8 raises UnicodeDecodeError."""
        return self.body.decode()

    def check(self) -> None:
        """Return while the claim is current, else raise."""
        self._ask("check", {"id": self.id, "token": self.token})

    def progress(self, text: str) -> None:
        """Record what is being done, for people."""
        self._ask("renew", {"id": self.id, "token": self.token, "progress": _clean(text)})

    def later(self, reason: str = "") -> NoReturn:
        """Exit: the message is tried again after the backoff, uncharged."""
        self._exit(75, reason)

    def bad(self, reason: str = "") -> NoReturn:
        """Exit: the message itself is bad, and DEAD at once."""
        self._exit(65, reason)

    def _exit(self, status: int, reason: str) -> NoReturn:
        if reason:
            print(_clean(reason), file=sys.stderr)
        sys.exit(status)

    def _send(self, params: Params) -> str:
        return _text(self._ask("send", {**params, "claim": {"id": self.id, "token": self.token}}), "id")

    def _ask(self, method: str, params: Params) -> Params:
        if self._open is None:
            self._open = _Channel.open(lambda *_: None, lambda _: None)
        return self._open.ask(method, params)[0]


class _Answer:
    """What came back for a request that went out at `sent`."""

    def __init__(self, sent: float, line: Union[Params, Refused]) -> None:
        self.sent, self._line = sent, line

    def result(self) -> Params:
        if isinstance(self._line, Refused):
            raise self._line
        error = self._line.get("error")
        if error is None:
            return _object(self._line.get("result"))
        error = _object(error)
        data = _object(error.get("data") or {})
        raise Refused(str(data.get("category", "failed")), str(error.get("message", "")), str(data.get("why", "")),
                      str(data.get("next", "")), data.get("retryable") is True)


class _Channel:
    """A connection: JSON-RPC 2.0, one object a line, answers in any order."""

    def __init__(self, sock: socket.socket, identity: Params, notified: Callable[[str, Params], None],
                 ended: Callable[[Refused], None]) -> None:
        sock.settimeout(None)
        self._sock, self._identity, self._notified, self._ended = sock, identity, notified, ended
        self._ids = itertools.count(1)
        self._writing = threading.Lock()  # held while a line goes out
        self._lock = threading.Lock()  # guards what follows
        self._pending: Dict[int, Tuple[float, Callable[[_Answer], None]]] = {}
        self._gone: Optional[Refused] = None
        this = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _forked(this()))
        threading.Thread(target=self._read_all, name="sovereign-read", daemon=True).start()

    @classmethod
    def open(cls, notified: Callable[[str, Params], None], ended: Callable[[Refused], None]) -> _Channel:
        """Over the descriptor that SOVEREIGN_FD names, else over the socket of
        SOVEREIGN_SOCKET. The descriptor is this process's alone: programs that it
        starts do not inherit it, nor its name."""
        number = os.environ.pop("SOVEREIGN_FD", "")
        if number:
            try:
                fd = int(number)
                os.set_inheritable(fd, False)
                return cls(socket.socket(fileno=fd), {}, notified, ended)
            except (ValueError, OSError) as error:
                raise _no_supervisor(f"SOVEREIGN_FD is {number!r}, which is no channel: {error}") from None
        try:
            path, process, token = (os.environ["SOVEREIGN_" + name] for name in ("SOCKET", "PROCESS", "LEASE_TOKEN"))
            identity = {"process": process, "lease_token": int(token)}
        except KeyError as error:
            raise _no_supervisor(f"{error.args[0]} is not set") from None
        except ValueError as error:
            raise _no_supervisor(f"SOVEREIGN_LEASE_TOKEN is no token: {error}") from None
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
        except OSError as error:
            sock.close()
            raise Refused("unavailable", "connect to the supervisor", str(error), _STOP) from None
        return cls(sock, identity, notified, ended)

    def ask(self, method: str, params: Params) -> Tuple[Params, float]:
        """Make a request and return its result, and when it was sent."""
        answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self.post(method, params, answers.put)
        answer = answers.get()
        return answer.result(), answer.sent

    def post(self, method: str, params: Params, then: Callable[[_Answer], None]) -> None:
        """Make a request; `then` is called with the answer, or with
        the end of the connection, by another thread."""
        call = next(self._ids)
        try:
            line = json.dumps({"jsonrpc": "2.0", "id": call, "method": method, "params": {**params, **self._identity}},
                              ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        except UnicodeEncodeError as error:
            raise _bad(_not_text("", params) or str(error)) from None
        except (TypeError, ValueError) as error:
            raise _bad(str(error)) from None
        if len(line) > MAX_LINE + 1:
            raise Refused("message_too_large", "the line would be too long", "a line holds at most 8 MiB",
                          "keep the data in a file and send its path")
        with self._writing:
            with self._lock:
                if self._gone is not None:
                    raise self._gone
                self._pending[call] = (time.monotonic(), then)
            try:
                self._sock.sendall(line)
            except BaseException as error:  # the stream may end in the middle of a line
                with self._lock:
                    self._pending.pop(call, None)
                self.end(error)
                if isinstance(error, OSError):
                    raise _gone(error) from None
                raise

    def end(self, cause: Optional[BaseException]) -> None:
        """Fail every call under way and to come. What they asked may have been done."""
        with self._lock:
            if self._gone is not None:
                return
            gone = self._gone = _gone(cause)
            pending = list(self._pending.values())
            self._pending.clear()
        try:
            self._sock.shutdown(socket.SHUT_RDWR)  # wakes the reading thread, which closes it
        except OSError:
            pass
        self._ended(gone)
        for sent, then in pending:
            then(_Answer(sent, gone))

    def _read_all(self) -> None:
        cause: Optional[BaseException] = None
        try:
            for line in self._lines():
                self._take(json.loads(line))
        except BaseException as error:  # whatever it is: nobody may wait for an answer that is not read
            cause = error
        self.end(cause)
        self._sock.close()

    def _lines(self) -> Iterator[bytes]:
        """The lines that are not blank; one that is too long is skipped whole."""
        rest, seen, skipping = bytearray(), 0, False
        while True:
            part = self._sock.recv(1 << 16)
            if not part:
                return
            rest += part
            while True:
                end = rest.find(b"\n", seen)
                if end < 0:
                    break
                line, skip, skipping = bytes(rest[:end]).strip(), skipping or end > MAX_LINE, False
                del rest[:end + 1]
                seen = 0
                if line and not skip:
                    yield line
            seen = len(rest)
            if seen > MAX_LINE:
                rest, seen, skipping = bytearray(), 0, True

    def _take(self, line: object) -> None:
        """Hand a line to whom it is for."""
        message = _object(line)
        if isinstance(message.get("method"), str):
            params = message.get("params")
            self._notified(message["method"], params if isinstance(params, dict) else {})
            return
        call = message.get("id")
        with self._lock:
            sent, then = self._pending.pop(call, (0.0, None)) if type(call) is int else (0.0, None)
        if then is not None:
            then(_Answer(sent, message))


def _unlocked(worker: Optional[Worker]) -> None:
    """In a forked child the thread that may hold this lock does not exist: it would be held
    for ever, and a fork that comes out of its handler wait for it."""
    if worker is not None:
        worker._changed = threading.Condition(threading.Lock())


def _forked(channel: Optional[_Channel]) -> None:
    """In a forked child the channel is its parent's: let go of it, without a word."""
    if channel is not None:
        channel._lock = threading.Lock()
        channel._writing = threading.Lock()
        channel._gone = Refused("unavailable", "this is a fork of the worker", "the channel is that of the process that opened it",
                                "open a Worker in the fork itself")
        channel._sock.close()


def _gone(cause: Optional[BaseException]) -> Refused:
    return Refused("unavailable", "the supervisor is gone", str(cause) if cause else "the connection to it has ended", _STOP)


def _no_supervisor(why: str) -> Refused:
    return Refused("unavailable", "this program has no supervisor", why,
                   "declare it as an actor in actors.yaml and start it with `sovereign run`")


def _bad(why: str) -> Refused:
    return Refused("bad_request", "the request cannot be written", why)


def _garbled(why: str) -> Refused:
    return Refused("failed", "the supervisor's answer cannot be read", why)


def _written(content: Content) -> Union[str, Dict[str, str]]:
    """The content as a string where it is text, else as {"base64": …}."""
    if not isinstance(content, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"a body or result is str or bytes, not {type(content).__name__}")
    try:
        raw = content.encode() if isinstance(content, str) else bytes(content)
    except UnicodeEncodeError as error:
        raise _bad(str(error)) from None
    coded = base64.b64encode(raw)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return {"base64": coded.decode()}
    # Escapes of control characters take six bytes each.
    long = len(json.dumps(text, ensure_ascii=False).encode()) - 2 > 2 * len(coded)
    return {"base64": coded.decode()} if long else text


def _read(body: object) -> bytes:
    try:
        if isinstance(body, str):
            return body.encode()
        return base64.b64decode(_text(_object(body), "base64"), validate=True)
    except ValueError as error:
        raise _garbled(f"a body: {error}") from None


def _not_text(name: str, value: object) -> str:
    """What of a value is no text: a str that no UTF-8 stands for, as bytes of a file's
    name that are not UTF-8 become. "": nothing."""
    if isinstance(value, str):
        try:
            value.encode()
            return ""
        except UnicodeEncodeError:
            return f"{name} is not UTF-8: it is {value!a}; give it as text, or encode it, say with base64"
    if isinstance(value, dict):
        return next(filter(None, (_not_text("a name" + (f" of {name}" if name else ""), k) or _not_text(f"{name} {k}".strip() if name else str(k), v)
                                  for k, v in value.items())), "")
    if isinstance(value, (list, tuple)):
        return next(filter(None, (_not_text(name, v) for v in value)), "")
    return ""


def _clean(text: str) -> str:
    """Text that can be written whatever it holds."""
    return text.encode("utf-8", "backslashreplace").decode()


def _seconds(span: Seconds) -> float:
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if not 0 <= seconds < 1e9:
        raise _bad(f"{span!r} is no duration")
    return seconds


def _duration(span: Seconds) -> str:
    return f"{_seconds(span):.6f}s"


def _object(value: object) -> Params:
    if not isinstance(value, dict):
        raise _garbled(f"{type(value).__name__} where an object should be")
    return value


def _list(value: object) -> List[Any]:
    if not isinstance(value, list):
        raise _garbled(f"{type(value).__name__} where a list should be")
    return value


def _text(o: Params, name: str) -> str:
    value = o.get(name, "")
    if not isinstance(value, str):
        raise _garbled(f"{name} is no string")
    return value


def _whole(o: Params, name: str) -> int:
    value = o.get(name)
    if type(value) is not int or not 0 <= value < TOKENS:
        raise _garbled(f"{name} is no whole number")
    return value
