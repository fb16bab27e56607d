"""The SDK against a supervisor's end that the test plays, for what no real one does
on demand: answers that are late, lost or garbage. The real one is tested against in
python_test.go, which runs this file too."""

from __future__ import annotations

import base64
import json
import logging
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import unittest
import unittest.mock
from datetime import datetime, timedelta
from typing import Any, Callable, Dict, List, Optional, Set

import sovereign
from sovereign import Message, Outgoing, Refused, Task, Worker

logging.getLogger("sovereign").addHandler(logging.NullHandler())
logging.getLogger("sovereign").propagate = False

PATIENCE = 300  # seconds: a bound for what hangs, far from what a busy machine takes


def delivery(n: int, remaining_ms: int = 3_600_000, **more: Any) -> Dict[str, Any]:
    return {"id": f"m{n}", "from": "", "subject": "", "headers": {}, "body": "b", "attempt": 1, "token": n,
            "remaining_ms": remaining_ms, **more}


class Clock:
    """Time that passes when a test says so, for a worker whose own time it takes the
    place of: a busy machine makes nothing late."""

    def __init__(self, worker: Worker) -> None:
        self.now, self._worker = 1000.0, worker

    def monotonic(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds
        with self._worker._changed:
            self._worker._changed.notify_all()  # it looks again what is due


class Script(unittest.TestCase):
    """The supervisor's end of a channel."""

    def setUp(self) -> None:
        ours, theirs = socket.socketpair()
        os.environ["SOVEREIGN_FD"] = str(theirs.detach())
        self.sock = ours
        self.sock.settimeout(PATIENCE)
        self.reader = ours.makefile("rb")
        self.worker = Worker()
        self.addCleanup(self.hang_up)
        self.addCleanup(self.worker.close)

    def clock(self) -> Clock:
        """From now on the worker's time is this one."""
        clock = Clock(self.worker)
        patch = unittest.mock.patch.object(sovereign, "time", clock)
        patch.start()
        self.addCleanup(patch.stop)
        return clock

    def hang_up(self) -> None:
        self.reader.close()
        self.sock.close()

    def read(self) -> Dict[str, Any]:
        line = self.reader.readline()
        self.assertTrue(line, "the worker sent nothing more")
        request = json.loads(line)
        assert isinstance(request, dict)
        return request

    def want(self, method: str) -> Dict[str, Any]:
        """The next request, of the method; its params are under their own names."""
        request = self.read()
        self.assertEqual(request["method"], method, request)
        return {**request["params"], "#": request["id"]}

    def write(self, line: object) -> None:
        self.sock.sendall(json.dumps(line).encode() + b"\n")

    def answer(self, request: Dict[str, Any], result: object) -> None:
        self.write({"jsonrpc": "2.0", "id": request["#"], "result": result})

    def refuse(self, request: Dict[str, Any], category: str, retryable: bool = False) -> None:
        self.write({"jsonrpc": "2.0", "id": request["#"], "error": {"code": -32000, "message": "refused", "data": {
            "category": category, "why": "by the test", "next": "go on", "retryable": retryable}}})

    def notify(self, method: str, **params: Any) -> None:
        self.write({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, *messages: Dict[str, Any]) -> None:
        self.answer(self.want("ready"), {})
        self.answer(self.want("claim"), {"messages": list(messages)})

    def start(self, work: Callable[[], object]) -> queue.Queue[Optional[BaseException]]:
        """Runs work in a thread; the queue has what it raised, or None."""
        end: queue.Queue[Optional[BaseException]] = queue.Queue()

        def whole() -> None:
            try:
                work()
                end.put(None)
            except BaseException as error:
                end.put(error)
        threading.Thread(target=whole, daemon=True).start()
        return end

    def loop(self, body: Callable[[Message], object]) -> queue.Queue[Optional[BaseException]]:
        def work() -> None:
            for message in self.worker:
                with message:
                    body(message)
        return self.start(work)

    def stop(self, end: queue.Queue[Optional[BaseException]]) -> None:
        """Drains the worker, whose next request is a claim."""
        claim = self.want("claim")
        self.notify("drain")
        self.answer(claim, {"messages": []})
        self.assertIsNone(end.get(timeout=PATIENCE))


class Settles(Script):
    def settled(self, body: Callable[[Message], object]) -> Dict[str, Any]:
        end = self.loop(body)
        self.begin(delivery(7))
        request = self.read()
        self.answer({"#": request["id"]}, {"state": "DONE", "attempts": 1})
        self.stop(end)
        return {"method": request["method"], **request["params"]}

    def test_leaving_completes(self) -> None:
        self.assertEqual(self.settled(lambda m: None), {"method": "complete", "id": "m7", "token": 7, "send": []})

    def test_an_explicit_settle_is_the_only_one(self) -> None:
        got = self.settled(lambda m: m.complete("out", send=[Outgoing("next", "x", delay=timedelta(minutes=1))]))
        self.assertEqual((got["method"], got["result"], got["send"][0]["to"], got["send"][0]["delay"]),
                         ("complete", "out", "next", "60.000000s"))
        self.assertEqual(self.settled_again(), [])

    def settled_again(self) -> List[object]:
        self.sock.setblocking(False)
        try:
            return [self.sock.recv(1)]
        except BlockingIOError:
            return []

    def test_an_exception_fails(self) -> None:
        def broken(_: Message) -> None:
            raise ValueError("nothing there")
        self.assertEqual(self.settled(broken), {"method": "fail", "id": "m7", "token": 7, "dead": False, "reason": "ValueError: nothing there"})

    def test_a_settle_before_an_exception_stands(self) -> None:
        def body(m: Message) -> None:
            m.fail("busy", delay=5)
            raise ValueError("too late")
        got = self.settled(body)
        self.assertEqual((got["method"], got["reason"], got["delay"]), ("fail", "busy", "5.000000s"))

    def test_dead_and_release(self) -> None:
        self.assertTrue(self.settled(lambda m: m.fail("bad", dead=True))["dead"])

    def test_release(self) -> None:
        self.assertEqual(self.settled(lambda m: m.release())["method"], "release")

    def test_a_reason_may_hold_anything(self) -> None:
        def body(m: Message) -> None:
            raise ValueError("\udc80 and \0")
        self.assertEqual(self.settled(body)["reason"], "ValueError: \\udc80 and \0")

    def test_a_person_who_interrupts_charges_nobody(self) -> None:
        def body(m: Message) -> None:
            raise KeyboardInterrupt
        end = self.loop(body)
        self.begin(delivery(1))
        self.answer(self.want("release"), {"state": "NEW"})
        self.assertIsInstance(end.get(timeout=PATIENCE), KeyboardInterrupt)

    def test_a_message_left_unsettled_is_failed(self) -> None:
        end = self.start(lambda: [m.id for m in self.worker])
        self.begin(delivery(1))
        request = self.want("fail")
        self.assertIn("without settling it", request["reason"])
        self.answer(request, {"state": "NEW", "attempts": 1})
        self.stop(end)

    def test_a_refused_completion_fails(self) -> None:
        end = self.loop(lambda m: None)
        self.begin(delivery(1))
        self.refuse(self.want("complete"), "message_too_large")
        request = self.want("fail")
        self.assertIn("its completion was refused: refused (message_too_large)", request["reason"])
        self.answer(request, {"state": "NEW", "attempts": 1})
        self.stop(end)

    def test_a_result_of_the_wrong_type_fails(self) -> None:
        end = self.start(lambda: self.worker.run(lambda m: 42))  # type: ignore[arg-type, return-value]
        self.begin(delivery(1))
        request = self.want("fail")
        self.assertIn("str or bytes, not int", request["reason"])
        self.answer(request, {"state": "NEW", "attempts": 1})
        self.stop(end)

    def test_what_may_succeed_later_is_tried_again(self) -> None:
        end = self.loop(lambda m: None)
        self.begin(delivery(1))
        self.refuse(self.want("complete"), "disk_full", retryable=True)
        self.answer(self.want("complete"), {"state": "DONE"})
        self.stop(end)

    def test_a_stale_completion_is_final(self) -> None:
        seen: List[Message] = []
        end = self.loop(seen.append)
        self.begin(delivery(1))
        self.refuse(self.want("complete"), "fencing_token_stale")
        self.stop(end)  # it asks for the next, and nothing else about this one
        self.assertTrue(seen[0].cancelled.is_set())
        self.assertEqual(seen[0].remaining(), 0)
        with self.assertRaises(Refused):
            seen[0].complete()

    def test_a_settle_may_be_repeated(self) -> None:
        def body(m: Message) -> None:
            m.complete("x")
            m.complete("x")
        end = self.loop(body)
        self.begin(delivery(1))
        self.answer(self.want("complete"), {"state": "DONE"})
        self.answer(self.want("complete"), {"state": "DONE"})
        self.stop(end)


class Calls(Script):
    """A call comes back whatever happens."""

    def called(self, end: object) -> object:
        got: List[bytes] = []
        done = self.start(lambda: got.append(self.worker.call("resize", b"x", key="k")))
        self.answer(self.want("send"), {"id": "m5"})
        request = self.want("await")
        self.assertEqual(request["id"], "m5")
        if isinstance(end, str):
            self.refuse(request, end)
        else:
            self.answer(request, end)
        raised = done.get(timeout=PATIENCE)
        return raised if raised is not None else got[0]

    def test_the_result(self) -> None:
        self.assertEqual(self.called({"id": "m5", "state": "DONE", "result": {"base64": "/w=="}}), b"\xff")

    def test_no_result(self) -> None:
        self.assertEqual(self.called({"id": "m5", "state": "DONE"}), b"")

    def test_the_failure(self) -> None:
        failed = self.called({"id": "m5", "state": "DEAD", "last_failure": {"category": "bad_message", "reason": "no"}, "receipt": {"attempt": 2}})
        assert isinstance(failed, sovereign.CallFailed) and failed.receipt
        self.assertEqual((failed.state, failed.gone, failed.receipt["attempt"], str(failed)), ("DEAD", False, 2, "message m5 is DEAD (bad_message: no)"))

    def test_gone_with_its_last_receipt(self) -> None:
        gone = self.called({"id": "m5", "state": "NEW", "gone": True, "receipt": {"attempt": 1}})
        assert isinstance(gone, sovereign.CallFailed)
        self.assertEqual((gone.gone, gone.receipt), (True, {"attempt": 1}))

    def test_gone_before_it_waits(self) -> None:
        gone = self.called("message_missing")
        assert isinstance(gone, sovereign.CallFailed)
        self.assertTrue(gone.gone)

    def test_a_refusal(self) -> None:
        self.assertIsInstance(self.called("unavailable"), Refused)

    def test_time_is_up(self) -> None:
        done = self.start(lambda: self.worker.call("resize", timeout=0.2))
        self.answer(self.want("send"), {"id": "m5"})
        # No answer tells how the message ends. A slow machine may not even have asked.
        self.assertIsInstance(done.get(timeout=PATIENCE), TimeoutError)

    def test_time_is_up_before_it_is_sent(self) -> None:
        with self.assertRaises(TimeoutError):
            self.worker.call("resize", timeout=0.1)  # no answer to its send

    def test_the_supervisor_is_gone(self) -> None:
        done = self.start(lambda: self.worker.call("resize"))
        self.want("send")
        self.sock.shutdown(socket.SHUT_RDWR)
        self.assertIsInstance(done.get(timeout=PATIENCE), Refused)

    def test_ends_with_its_claim(self) -> None:
        raised: queue.Queue[BaseException] = queue.Queue()

        def body(m: Message) -> None:
            try:
                m.call("resize")
            except Refused as refused:
                raised.put(refused)
                raise
        self.loop(body)
        self.begin(delivery(1))
        self.answer(self.want("send"), {"id": "m5"})
        self.want("await")
        self.notify("claim_lost", id="m1", token=1, reason="cancelled")
        self.assertEqual(str(raised.get(timeout=PATIENCE)), "the claim of message m1 is lost (lease_expired): cancelled")


class Texts(Script):
    """What is not UTF-8 does not leave the worker: written otherwise two keys that differ
    could become one."""

    def test_text_that_is_not_utf8_is_refused(self) -> None:
        bad = os.fsdecode(b"k\xff")  # what the name of a file may be
        asks: Dict[str, Callable[[], object]] = {
            "to": lambda: self.worker.send(bad), "key": lambda: self.worker.send("a", key=bad),
            "group": lambda: self.worker.send("a", group=bad), "subject": lambda: self.worker.send("a", subject=bad),
            "headers x": lambda: self.worker.send("a", headers={"x": bad}),
            "a name of headers": lambda: self.worker.send("a", headers={bad: "x"}),
            "request": lambda: self.worker.claim(request=bad),
        }
        for name, ask in asks.items():
            with self.subTest(name), self.assertRaises(Refused) as refused:
                ask()
            self.assertEqual(refused.exception.category, "bad_request")
            self.assertTrue(refused.exception.why.startswith(f"{name} is not UTF-8: it is 'k\\udcff'"), refused.exception.why)

    def test_of_a_completion_too(self) -> None:
        end = self.loop(lambda m: m.complete(send=[Outgoing("a", key="\ud800")]))
        self.begin(delivery(1))
        request = self.want("fail")
        self.assertIn("key is not UTF-8", request["reason"])
        self.answer(request, {"state": "NEW", "attempts": 1})
        self.stop(end)


class Time(Script):
    def setUp(self) -> None:
        super().setUp()
        self.time = self.clock()

    def test_counts_from_the_request(self) -> None:  # mistake 24
        left: List[float] = []
        end = self.loop(lambda m: left.append(m.remaining()))
        self.answer(self.want("ready"), {})
        claim = self.want("claim")
        self.time.advance(2)  # the answer is long under way
        self.answer(claim, {"messages": [delivery(1, 10_000)]})
        self.answer(self.want("complete"), {"state": "DONE"})
        self.stop(end)
        self.assertEqual(left, [8])

    def test_renews_after_a_long_wait_before_it_begins(self) -> None:
        seen: List[str] = []
        end = self.loop(lambda m: seen.append(m.id))
        self.answer(self.want("ready"), {})
        for n, settle in ((1, "complete"), (2, None)):
            claim = self.want("claim")
            self.time.advance(3)
            self.answer(claim, {"messages": [delivery(n, 2_000)]})  # less than it waited
            renew = self.want("renew")
            if settle:
                self.answer(renew, {"remaining_ms": 60_000})
                self.answer(self.want(settle), {"state": "DONE"})
            else:
                self.refuse(renew, "lease_expired")
        self.stop(end)
        self.assertEqual(seen, ["m1"])

    def test_renewals_may_fail(self) -> None:  # mistake 25
        begun, release = threading.Event(), threading.Event()
        held: List[Message] = []
        cancelled: List[bool] = []

        def body(m: Message) -> None:
            held.append(m)
            begun.set()
            release.wait()
            cancelled.append(m.cancelled.is_set())
        end = self.loop(body)
        self.begin(delivery(1, 9_000))
        begun.wait()
        self.assertEqual(held[0]._due - self.time.now, 3)  # a third of what is left
        self.time.advance(3)
        self.want("renew")  # never answered
        self.time.advance(2)
        self.refuse(self.want("renew"), "unavailable")
        self.time.advance(2)
        self.answer(self.want("renew"), {"remaining_ms": 60_000})
        release.set()
        self.answer(self.want("complete"), {"state": "DONE"})
        self.stop(end)
        self.assertEqual(cancelled, [False])

    def test_stops_at_the_deadline(self) -> None:
        seen: List[Message] = []
        begun = threading.Event()

        def body(m: Message) -> None:
            seen.append(m)
            begun.set()
            self.assertTrue(m.cancelled.wait(PATIENCE))
        end = self.loop(body)
        self.begin(delivery(1, 9_000))
        begun.wait()
        self.time.advance(8)
        self.want("renew")  # never answered
        self.assertEqual(seen[0].remaining(), 1)
        self.time.advance(1)
        request = self.want("release")
        self.refuse(request, "lease_expired")
        self.stop(end)
        self.assertEqual(seen[0].lost and seen[0].lost.category, "lease_expired")


class Losses(Script):
    def lost(self, lose: Callable[[], None]) -> Refused:
        found: queue.Queue[Optional[Refused]] = queue.Queue()
        begun = threading.Event()

        def body(m: Message) -> None:
            begun.set()
            self.assertTrue(m.cancelled.wait(PATIENCE))
            found.put(m.lost)
        self.end = self.loop(body)
        self.begin(delivery(1))
        begun.wait()
        lose()
        why = found.get(timeout=PATIENCE)
        assert why is not None
        if self.worker.lost is None:
            request = self.read()
            if request["method"] == "release":  # the supervisor learns that the work has ended
                self.refuse({"#": request["id"]}, "lease_expired")
                request = self.read()
            self.assertEqual(request["method"], "claim")
            self.notify("drain")
            self.answer({"#": request["id"]}, {"messages": []})
        self.ended = self.end.get(timeout=PATIENCE)
        return why

    def test_claim_lost(self) -> None:
        def lose() -> None:
            self.notify("claim_lost", id="m9", token=9, reason="another's")
            self.notify("claim_lost", id="m1", token=7, reason="an older attempt's")
            self.notify("claim_lost", id="m1", token=1, reason="cancelled")
        why = self.lost(lose)
        self.assertEqual((why.category, why.why), ("lease_expired", "cancelled"))
        self.assertIsNone(self.ended)

    def test_claim_lost_right_behind_the_claim(self) -> None:
        seen: queue.Queue[Message] = queue.Queue()

        def body(m: Message) -> None:
            self.assertTrue(m.cancelled.wait(PATIENCE))
            seen.put(m)
        self.loop(body)
        self.answer(self.want("ready"), {})
        claim = self.want("claim")
        lines = [{"jsonrpc": "2.0", "id": claim["#"], "result": {"messages": [delivery(1)]}},
                 {"jsonrpc": "2.0", "method": "claim_lost", "params": {"id": "m1", "token": 1, "reason": "cancelled"}}]
        self.sock.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        seen.get(timeout=PATIENCE)

    def test_lease_lost(self) -> None:
        why = self.lost(lambda: self.notify("lease_lost", reason="replaced"))
        self.assertEqual((why.category, why.why), ("actor_lease_lost", "replaced"))
        self.assertIs(self.ended, why)

    def test_the_supervisor_dies(self) -> None:
        why = self.lost(lambda: self.sock.shutdown(socket.SHUT_RDWR))
        self.assertEqual(why.category, "unavailable")
        self.assertIs(self.ended, why)

    def test_a_lease_lost_while_claiming_ends_it(self) -> None:
        end = self.loop(lambda m: None)
        self.answer(self.want("ready"), {})
        self.refuse(self.want("claim"), "actor_lease_lost")
        error = end.get(timeout=PATIENCE)
        assert isinstance(error, Refused)
        self.assertEqual((error.category, error.why, error.next, error.retryable), ("actor_lease_lost", "by the test", "go on", False))


class Drains(Script):
    def test_finishes_what_it_has(self) -> None:
        begun, go = threading.Event(), threading.Event()

        def body(_: Message) -> None:
            begun.set()
            go.wait()
        end = self.loop(body)
        self.begin(delivery(1))
        begun.wait()
        self.notify("drain")
        go.set()
        self.answer(self.want("complete"), {"state": "DONE"})
        self.assertIsNone(end.get(timeout=PATIENCE))

    def test_gives_back_what_it_got_while_draining(self) -> None:
        end = self.loop(lambda m: None)
        self.answer(self.want("ready"), {})
        claim = self.want("claim")
        self.notify("drain")
        self.answer(claim, {"messages": [delivery(3)]})
        self.assertEqual(self.want("release")["id"], "m3")
        self.assertIsNone(end.get(timeout=PATIENCE))

    def test_an_answer_that_nobody_waits_for_is_given_back(self) -> None:
        self.worker.drain()
        self.assertEqual(self.worker.claim(wait=60), [])
        self.worker.draining = False
        end = self.start(lambda: self.worker.claim(wait=60))
        claim = self.want("claim")
        self.worker.drain()  # as a SIGTERM does, of which the supervisor knows nothing
        self.assertIsNone(end.get(timeout=PATIENCE))
        self.answer(claim, {"messages": [delivery(4)]})
        request = self.want("release")
        self.assertEqual((request["id"], request["token"]), ("m4", 4))

    def test_a_claim_that_is_interrupted_is_given_back(self) -> None:
        claims: List[Dict[str, Any]] = []

        def supervise() -> None:
            claims.append(self.want("claim"))
            with self.worker._channel._writing:
                pass  # it has been written, and is waited for
            # Again and again: one that comes just before Python begins to wait does not end the wait.
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.05)

        def interrupt(*_: object) -> None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt
        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        end = self.start(supervise)
        with self.assertRaises(KeyboardInterrupt):
            self.worker.claim(wait=60)
        self.assertIsNone(end.get(timeout=PATIENCE))
        self.answer(claims[0], {"messages": [delivery(5)]})
        self.assertEqual(self.want("release")["id"], "m5")

    def test_sigterm(self) -> None:
        def supervise() -> None:
            self.begin()
            claim = self.want("claim")
            os.kill(os.getpid(), signal.SIGTERM)  # the main thread waits for the claim
            self.answer(claim, {"messages": []})
        end = self.start(supervise)
        self.assertEqual([m.id for m in self.worker], [])
        self.assertIsNone(end.get(timeout=PATIENCE))
        self.assertIs(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)


class Runs(Script):
    def test_the_completion_claims_the_next(self) -> None:
        end = self.start(lambda: self.worker.run(lambda m: m.text.upper()))
        self.begin(delivery(1))
        request = self.want("complete")
        self.assertEqual((request["result"], request["next"]), ("B", {"max": 1}))
        self.answer(request, {"state": "DONE", "messages": [delivery(2)]})
        request = self.want("complete")
        self.notify("drain")
        self.answer(request, {"state": "DONE", "messages": [delivery(3)]})
        self.assertEqual(self.want("release")["id"], "m3")
        self.assertIsNone(end.get(timeout=PATIENCE))

    def test_concurrency(self) -> None:
        begun: queue.Queue[str] = queue.Queue()
        finish = threading.Event()

        def handle(m: Message) -> None:
            begun.put(m.id)
            finish.wait()
        end = self.start(lambda: self.worker.run(handle, concurrency=3))
        self.answer(self.want("ready"), {})
        for n in (1, 2, 3):
            self.answer(self.want("claim"), {"messages": [delivery(n)]})
        self.assertEqual({begun.get(timeout=PATIENCE) for _ in range(3)}, {"m1", "m2", "m3"})
        self.notify("drain")
        finish.set()
        done: Set[str] = set()
        while len(done) < 3:
            request = self.read()
            self.assertIn(request["method"], ("complete", "claim"))
            if request["method"] == "complete":
                done.add(request["params"]["id"])
            self.answer({"#": request["id"]}, {"state": "DONE", "messages": []})
        self.assertIsNone(end.get(timeout=PATIENCE))

    def test_an_exit_fails_the_message_and_ends_the_worker(self) -> None:
        end = self.start(lambda: self.worker.run(lambda m: sys.exit(3), concurrency=2))
        self.answer(self.want("ready"), {})
        first, second = self.want("claim"), self.want("claim")
        self.answer(first, {"messages": [delivery(1)]})
        request = self.want("fail")
        self.assertEqual(request["reason"], "SystemExit: 3")
        self.answer(request, {"state": "NEW", "attempts": 1})
        self.answer(second, {"messages": []})
        error = end.get(timeout=PATIENCE)
        assert isinstance(error, SystemExit)
        self.assertEqual(error.code, 3)


class Wire(Script):
    def pinged(self) -> queue.Queue[Optional[BaseException]]:
        end = self.start(self.worker.ping)
        self.ping = self.want("ping")
        return end

    def test_garbage_ends_the_connection(self) -> None:
        for n, line in enumerate([b"garbage\n", b"[1]\n", b"\xff\n", b"[" * 100_000 + b"\n", b'{"method":"claim_lost","params":{"token":[]}}\n']):
            with self.subTest(line=line[:20]):
                if n:
                    self.setUp()
                end = self.pinged()
                self.sock.sendall(line)
                error = end.get(timeout=PATIENCE)
                assert isinstance(error, Refused)
                self.assertEqual(error.category, "unavailable")
                with self.assertRaises(Refused):
                    self.worker.ping()

    def test_answers_to_nobody_are_ignored(self) -> None:
        end = self.pinged()
        calls: List[object] = [True, None, "1", 1.0, 99, [1], {}]
        for call in calls:
            self.write({"jsonrpc": "2.0", "id": call, "result": {}})
        self.notify("something new", x=1)
        self.sock.sendall(b"\n  \n")
        self.answer(self.ping, {})
        self.assertIsNone(end.get(timeout=PATIENCE))

    def test_results_of_the_wrong_kind(self) -> None:
        for result in (None, 1, {"messages": 1}, {"messages": [1]}, {"messages": [delivery(1, token=1.5)]},
                       {"messages": [delivery(1, token=1 << 53)]}, {"messages": [delivery(1, body={"base64": "?"})]},
                       {"messages": [delivery(1, body="\ud800")]}, {"messages": [delivery(1, attempt=True)]}):
            with self.subTest(result=result):
                end = self.start(self.worker.claim)
                self.answer(self.want("claim"), result)
                error = end.get(timeout=PATIENCE)
                assert isinstance(error, Refused), error
                self.assertEqual(error.category, "failed")

    def test_an_error_without_data(self) -> None:
        end = self.pinged()
        self.write({"jsonrpc": "2.0", "id": self.ping["#"], "error": {"code": -32700, "message": "what?"}})
        error = end.get(timeout=PATIENCE)
        assert isinstance(error, Refused)
        self.assertEqual(str(error), "what? (failed)")

    def test_tokens_are_whole(self) -> None:
        largest = (1 << 53) - 1
        end = self.loop(lambda m: m.complete(str(m.token)))
        self.begin(delivery(1, token=largest))
        request = self.want("complete")
        self.assertEqual((request["token"], request["result"]), (largest, str(largest)))
        self.answer(request, {"state": "DONE"})
        self.stop(end)

    def test_bodies_both_ways(self) -> None:
        for content, text in ((b"", True), ("größer \u2028 \U0001f600".encode(), True), (b"\xff\0", False), (b"\0" * 100, False),
                              (b"line\n\ttab\n", True), (b"mostly text\0", True)):
            written = sovereign._written(content)
            self.assertIs(isinstance(written, str), text, content)
            self.assertEqual(sovereign._read(json.loads(json.dumps(written))), content)
        with self.assertRaises(Refused):
            sovereign._written("\ud800")

    def test_lines_up_to_the_limit(self) -> None:
        with self.assertRaises(Refused) as refused:
            self.worker.send("next", b"x" * sovereign.MAX_LINE)
        self.assertEqual(refused.exception.category, "message_too_large")
        body = "y" * (sovereign.MAX_LINE - 1000)
        end = self.loop(lambda m: m.complete(m.body))
        ready = self.want("ready")
        self.sock.sendall(b"z" * (sovereign.MAX_LINE + 1) + b"\n" + b"z" * 2 * sovereign.MAX_LINE + b"\n")  # skipped
        self.answer(ready, {})
        self.answer(self.want("claim"), {"messages": [delivery(1, body=body)]})
        request = self.want("complete")
        self.assertEqual(len(request["result"]), len(body))
        self.answer(request, {"state": "DONE"})
        self.stop(end)

    def test_what_cannot_be_written_is_refused_here(self) -> None:
        sends: List[Callable[[], object]] = [
            lambda: self.worker.send("next", delay=-1), lambda: self.worker.send("next", ttl=float("nan")),
            lambda: self.worker.send("next", at=datetime(2026, 1, 1)), lambda: self.worker.request("claim", max={1})]
        for send in sends:
            with self.assertRaises(Refused) as refused:
                send()
            self.assertEqual(refused.exception.category, "bad_request")
        self.pinged()  # and nothing of it went out

    def test_staged_and_visible_sends(self) -> None:
        def body(m: Message) -> None:
            m.complete(m.send("next", b"\xff", key="k") + self.worker.send("other"))
        end = self.loop(body)
        self.begin(delivery(2))
        staged = self.want("send")
        self.assertEqual((staged["claim"], staged["key"], staged["body"]),
                         ({"id": "m2", "token": 2}, "k", {"base64": base64.b64encode(b"\xff").decode()}))
        self.assertNotIn("id", staged)
        self.answer(staged, {"id": "m8"})
        now = self.want("send")
        self.assertNotIn("claim", now)
        self.answer(now, {"id": "m9"})
        request = self.want("complete")
        self.assertEqual(request["result"], "m8m9")
        self.answer(request, {"state": "DONE"})
        self.stop(end)

    def test_a_fork_has_no_channel(self) -> None:
        child = os.fork()
        if child == 0:
            status = 1
            try:
                self.worker.ping()
            except Refused as refused:
                status = 0 if "fork" in refused.message + refused.why else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        end = self.pinged()
        self.answer(self.ping, {})
        self.assertIsNone(end.get(timeout=PATIENCE))

    def test_a_fork_out_of_its_handler_ends(self) -> None:
        # Another thread may hold the lock of what is held in the moment of a fork, and does
        # not exist in the child, which lets go of its message and ends. Leave _unlocked out
        # and this waits for the alarm.
        child = 0

        def body(m: Message) -> None:
            nonlocal child
            self.worker._changed.acquire()
            child = os.fork()
            if child != 0:
                self.worker._changed.release()
            else:
                signal.alarm(30)
                try:
                    m._leave(ValueError(), None, 0)
                    self.worker._next()
                finally:
                    os._exit(0 if self.worker.lost is not None and "fork" in str(self.worker.lost) else 1)
        end = self.loop(body)
        self.begin(delivery(1))
        self.answer(self.want("complete"), {"state": "DONE"})
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.stop(end)


class Opens(unittest.TestCase):
    def test_without_a_supervisor(self) -> None:
        environments: List[Dict[str, str]] = [
            {}, {"SOVEREIGN_FD": "x"}, {"SOVEREIGN_FD": "250"}, {"SOVEREIGN_SOCKET": "/nowhere"},
            {"SOVEREIGN_SOCKET": "/nowhere", "SOVEREIGN_PROCESS": "p", "SOVEREIGN_LEASE_TOKEN": "1"}]
        for env in environments:
            with self.subTest(env=env):
                program = "import sovereign\ntry: sovereign.Worker()\nexcept sovereign.Refused as r: print(r.category)"
                out = subprocess.run([sys.executable, "-c", program], env={"PATH": os.environ["PATH"], **env},
                                     cwd=os.path.dirname(__file__) or ".", stdout=subprocess.PIPE, check=True)
                self.assertEqual(out.stdout, b"unavailable\n")

    def test_says_what_to_do_without_one(self) -> None:
        # Who starts a worker by hand sees the last line of a traceback. Leave out what to
        # do next and this fails.
        out = subprocess.run([sys.executable, "-c", "import sovereign\nsovereign.Worker()"], env={"PATH": os.environ["PATH"]},
                             cwd=os.path.dirname(__file__) or ".", stderr=subprocess.PIPE)
        self.assertEqual(out.stderr.decode().splitlines()[-1],
                         "sovereign.Refused: this program has no supervisor (unavailable): SOVEREIGN_SOCKET is not set; "
                         "declare it as an actor in actors.yaml and start it with `sovereign run`")

    def test_no_task(self) -> None:
        with self.assertRaises(Refused):
            Task()


if __name__ == "__main__":
    unittest.main()
