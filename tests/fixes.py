"""Fixes of past defects, each with the edits that undo it and the tests that then fail.

test_fixes.py makes these edits in a copy of the repository, one fix at a time, and runs the tests
there. A test that passes without the fix would not notice if the defect came back.
"""

from __future__ import annotations

from typing import NamedTuple


class Fix(NamedTuple):
    """A fix, known by the defect that comes back without it.

    edits  the text in `file` that makes the fix, which occurs there once, and its replacement
    tests  test files or functions, as pytest takes them; each has a test that fails
    shows  part of the error of a failed test: it fails because of the defect
    """

    defect: str
    file: str
    edits: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]
    shows: str


CONNECTION_FIXES = [
    Fix(
        "messages that wait for a connection are lost when the client is closed",
        "natsproto/connection/machine.py",
        (
            (
                "        close = ending.start_close(deadline)\n",
                "        if self.state != CONNECTED:\n"
                "            self.lifecycle.shut(None)\n"
                "            return ending.report_loss()\n"
                "        close = ending.start_close(deadline)\n",
            ),
        ),
        ("tests/connection/test_machine_close.py::test_how_a_close_ends",),
        "assert 'CLOSED' != 'CLOSED'",
    ),
    Fix(
        "a held publish above the limit of the next server is sent",
        "natsproto/connection/outbound.py",
        (
            (
                "if len(frame) > self.max_payload and size_of(frame) > self.max_payload:",
                "if False:",
            ),
        ),
        (
            "tests/connection/test_outbound.py::"
            "test_held_publishes_above_the_new_limit_are_not_sent",
            "tests/connection/test_traffic_held.py::"
            "test_a_publish_that_is_too_large_for_the_next_server_is_dropped_alone",
            "tests/connection/test_traffic_held.py::"
            "test_a_request_that_is_too_large_for_the_next_server_fails",
        ),
        "assert [] == [b'PUB a.b 31",
    ),
    Fix(
        "a later INFO turns off the features that it does not mention",
        "natsproto/connection/transport.py",
        (("if name not in _MOMENTARY}", "if False}"),),
        (
            "tests/connection/test_lifecycle.py::test_a_later_info_does_not_unset_omitted_fields",
            "tests/connection/test_transport.py::test_a_later_info_does_not_unset_omitted_fields",
        ),
        "{'jetstream': False} != {'jetstream': True}",
    ),
    Fix(
        "request_many keeps any number of responses",
        "natsproto/connection/waitable.py",
        (("self._too_many()", "None"),),
        ("tests/connection/test_client.py::test_request_many_is_bounded",),
        "DID NOT RAISE TooManyReplies",
    ),
    Fix(
        "a flood of events displaces Closed",
        "natsproto/events.py",
        (("            elif not isinstance(event, Closed):\n", "            else:\n"),),
        (
            "tests/connection/test_events.py::test_the_events_kept_after_a_flood",
            "tests/connection/test_events.py::test_closed_stays_where_nothing_else_does",
        ),
        "nconfirmed=0)]",
    ),
    Fix(
        "a timeout of 0 is accepted for calls that need a response",
        "natsproto/durations.py",
        (("    if seconds == 0:\n", "    if seconds < 0:\n"),),
        (
            "tests/jetstream/test_timeout_zero.py::test_a_call_that_needs_an_answer_refuses_it",
            "tests/connection/test_session.py::test_an_answer_takes_time",
        ),
        "DID NOT RAISE InvalidValue",
    ),
    Fix(
        "errors are not built-in exceptions",
        "natsproto/errors.py",
        (("    except NameError:\n", "        raise NameError\n    except NameError:\n"),),
        ("tests/wire/test_errors.py::test_some_errors_are_built_in_ones_as_well",),
        "AssertionError: InvalidSubject",
    ),
    Fix(
        "errors quote whole payloads",
        "natsproto/wire/text.py",
        (
            (
                "        text = repr(value[:most])\n",
                "        text, most = repr(value), len(value)\n",
            ),
        ),
        ("tests/wire/test_text.py::test_values_are_shown_in_part",),
        "aaaa'\" == \"'aaaa",
    ),
    Fix(
        "a wake-up that is too early extends the patience of a reader of responses",
        "natsproto/replies.py",
        (
            (
                "        session.connection.wake_at(request, deadline)",
                "        session.connection.wake_at(request, session.port.now() + 5.0)",
            ),
        ),
        (
            "tests/connection/test_replies.py::"
            "test_a_wake_up_that_is_too_early_does_not_extend_the_patience",
        ),
        "assert 9.0 == 5.0",
    ),
]
ADAPTER_FIXES = [
    Fix(
        "MicroPython: client.rtt() was 0 on boards, whose time.time() counts whole seconds",
        "natsproto/adapters/micropython/port.py",
        (("if self._fine_clock is None and ticks_us is not None:", "if False:"),),
        ("tests/adapters/test_micropython.py::test_short_times_are_measured_in_microseconds",),
        "assert ",
    ),
    Fix(
        "adapters: host_websocket=True was accepted, and the WebSocket dialed as a plain server",
        "natsproto/adapters/_options.py",
        (("if options.get(name) and name not in host:", "if False:"),),
        (
            "tests/adapters/test_options.py::"
            "test_what_the_adapter_cannot_do_for_its_host_is_rejected"
            "[host_websocket-natsproto.adapters.asyncio]",
        ),
        "DID NOT RAISE",
    ),
    Fix(
        "natsproto.testing cannot be imported without a library for nkeys",
        "natsproto/testing/checks/issued.py",
        (
            (
                "def _claims(",
                "_USER = nkeys.public_key(jwts.USER)\n\n\ndef _claims(",
            ),
        ),
        (
            "tests/conformance/test_suite.py::"
            "test_the_suite_is_imported_without_the_libraries_of_single_checks",
        ),
        "CalledProcessError",
    ),
    Fix(
        "threads: messages are lost when the program ends without a close",
        "natsproto/adapters/threads.py",
        (("atexit.register(_close_all)\n", ""),),
        (
            "tests/adapters/test_threads.py::"
            "test_unsent_messages_are_reported_at_the_end_of_the_program",
        ),
        "assert 'MessagesUnconfirmed' in",
    ),
    Fix(
        "threads: publishing large messages stops forever",
        "natsproto/adapters/_sockets.py",
        (
            (
                "        unsent = self.unsent\n",
                "        unsent = self.unsent\n        rest = unsent[:]\n",
            ),
            (
                "                    unsent += take()\n",
                "                    unsent += [] if rest else take()\n",
            ),
        ),
        (
            "tests/adapters/test_sockets.py::"
            "test_data_is_left_untaken_only_while_the_transport_waits_to_write",
        ),
        "assert ([] or not [b'more'])",
    ),
    Fix(
        "tls= of a wrong type passes the options",
        "natsproto/adapters/_options.py",
        (("        _check_tls(checked.tls)\n", "        pass\n"),),
        (
            "tests/adapters/test_options.py::"
            "test_a_tls_context_of_a_wrong_type_is_rejected_before_dialing",
        ),
        "DID NOT RAISE InvalidValue",
    ),
    Fix(
        "asyncio: a forked child uses the connection of its parent",
        "natsproto/adapters/asyncio.py",
        (
            ("            protocol.disown()\n        super().on_fork()\n", "            pass\n"),
            (
                "        if get_ident() == self._thread and self._loop.is_running():\n",
                "        if True:\n",
            ),
        ),
        ("tests/adapters/test_loops.py::test_a_fork[asyncio-False]",),
        "DID NOT RAISE NatsError",
    ),
    Fix(
        "trio: a forked child uses the connection of its parent",
        "natsproto/adapters/trio.py",
        (("            stream.disown()\n        super().on_fork()\n", "            pass\n"),),
        ("tests/adapters/test_loops.py::test_a_fork[trio-False]",),
        "DID NOT RAISE NatsError",
    ),
    Fix(
        "threads: a caller that waits for a transport that was just closed gets a ValueError",
        "natsproto/adapters/_sockets.py",
        (("    if transport is not None and fd < 0:\n", "    if False:\n"),),
        (
            "tests/adapters/test_sockets.py::test_a_closed_transport_is_not_waited_for",
            "tests/adapters/test_threads.py::"
            "test_a_transport_that_another_thread_drops_before_its_reader_waits",
        ),
        "file descriptor cannot be a negative integer",
    ),
    Fix(
        "threads: publishes wait for other traffic after one that a signal handler interrupted",
        "natsproto/blocking.py",
        (("                port.pump_soon()\n", ""),),
        (
            "tests/adapters/test_threads.py::"
            "test_a_handler_that_raises_before_the_thread_is_woken[flush_soon-publish]",
        ),
        "TimeoutExpired",
    ),
    Fix(
        "blocking, threads: Ctrl-C is ignored after another signal handler interrupted a call",
        "natsproto/adapters/_interrupts.py",
        (
            (
                "            handler = self._handler\n",
                "            handler, self._handler = self._handler, None\n",
            ),
        ),
        (
            "tests/adapters/test_threads.py::"
            "test_a_handler_that_raises_while_another_one_is_restored",
        ),
        "assert ",
    ),
    Fix(
        "trio: two tasks read at once after a loan that ends while a read is interrupted",
        "natsproto/adapters/_trio_stream.py",
        (("self.lent = not self._borrowed", "self.lent = True"),),
        (
            "tests/adapters/test_trio_loan.py::"
            "test_a_loan_that_ends_in_the_turn_in_which_a_read_is_interrupted",
        ),
        "trio.BusyResourceError",
    ),
    Fix(
        "trio: the task that starts TLS lends the socket before it is secured",
        "natsproto/adapters/_trio_stream.py",
        (("        return port.connection.online ", "        return True "),),
        ("tests/adapters/test_trio_loan.py::test_the_socket_is_not_lent_during_a_handshake",),
        "assert (",
    ),
    Fix(
        "asyncio: a client is used on another event loop, or after its own was closed",
        "natsproto/adapters/asyncio.py",
        (
            (
                "        if get_ident() == self._thread and self._loop.is_running():\n",
                "        if True:\n",
            ),
        ),
        (
            "tests/adapters/test_loops.py::test_on_another_loop",
            "tests/adapters/test_loops.py::test_after_its_loop_was_closed",
        ),
        "DID NOT RAISE InvalidState",
    ),
    Fix(
        "a file that is opened for a canceled caller stays open",
        "natsproto/adapters/_files.py",
        (
            ("        for each in opened:\n            each.close()\n            remove()\n", ""),
            ("        if abandoned:\n            file.close()\n            remove()\n", ""),
        ),
        ("tests/adapters/test_files.py::test_a_canceled_caller_leaves_no_open_file",),
        "assert False",
    ),
]
PUBLISH_FIXES = [
    Fix(
        "an atomic batch fails at once while the stream elects a leader",
        "jetstream/publish/atomic.py",
        (("if not first or spent or now", "if True or spent or now"),),
        (
            "tests/jetstream/publish/test_atomic.py::"
            "test_the_first_message_is_sent_again_while_there_is_no_leader",
        ),
        "NoStreamResponse",
    ),
    Fix(
        "a publish without an acknowledgment is an ordinary timeout",
        "jetstream/publish/request.py",
        (
            (
                "    raise (PublishTimeout if late else PublishInDoubt)(text) from error\n",
                "    raise error\n",
            ),
        ),
        (
            "tests/jetstream/publish/test_request.py::test_a_lost_connection_leaves_the_publish_in_doubt",
            "tests/jetstream/publish/test_request.py::test_errors_that_leave_a_publish_in_doubt",
        ),
        "no answer to the request to 's.x' in time",
    ),
    Fix(
        "expect_last_subject is sent to servers that ignore it",
        "jetstream/publish/headers.py",
        (('        require_level(connection.info, 1, "expect_last_subject")\n', "        pass\n"),),
        (
            "tests/jetstream/publish/test_headers.py::"
            "test_an_old_server_would_compare_with_another_subject",
        ),
        "DID NOT RAISE NotSupported",
    ),
    Fix(
        "a fast batch whose end is canceled while it waits for room stays open",
        "jetstream/publish/fast.py",
        (
            (
                "            self._leave()"
                "  # D-FAST-15: otherwise it would be kept alive forever\n",
                "",
            ),
        ),
        ("tests/jetstream/publish/test_fast.py::test_a_batch_whose_end_is_canceled_is_left",),
        "assert {1: '_INBOX",
    ),
    Fix(
        "a fast batch whose end is canceled while it waits for the acknowledgment stays open",
        "jetstream/publish/fast.py",
        (("            self._leave()  # D-FAST-15\n", ""),),
        ("tests/jetstream/publish/test_fast.py::test_a_batch_whose_end_is_canceled_is_left",),
        "assert {1: '_INBOX",
    ),
    Fix(
        "a number with thousands of digits ends the connection",
        "jetstream/api/metadata.py",
        (
            (
                "    return token.isdigit() and len(token) <= MOST_DIGITS\n",
                "    return token.isdigit()\n",
            ),
        ),
        ("tests/jetstream/publish/test_fast_machine.py::test_answers_with_invalid_subjects",),
        "ValueError: Exceeds the limit (4300 digits)",
    ),
]
API_FIXES = [
    Fix(
        "the server forgets an idle fast batch, because acknowledgments delay its ping",
        "jetstream/publish/fast_machine.py",
        (
            (
                "            self.deadline = max(now, self._keep_at)",
                "            self.deadline = self.deadline if had_room else None\n"
                "            self.deadline = self.deadline or now + KEEP_ALIVE",
            ),
        ),
        (
            "tests/jetstream/publish/test_fast_machine_time.py::"
            "test_acknowledgments_do_not_delay_the_ping_of_an_idle_batch",
        ),
        "assert (5, 7.5) == (5, 4.0)",
    ),
    Fix(
        "a listing repeats a page forever",
        "jetstream/api/client.py",
        (("            if (page, missing, offline) == before:\n", "            if False:\n"),),
        ("tests/jetstream/api/test_client.py::test_a_listing_that_repeats_itself_ends",),
        "nobody expects Pub(subject=b'$JS.API.LIST'",
    ),
    Fix(
        "a listing has pages without end",
        "jetstream/api/client.py",
        (("        for _ in range(MOST_PAGES):\n", "        while True:\n"),),
        ("tests/jetstream/api/test_client.py::test_a_listing_without_end_ends",),
        "nobody expects Pub(subject=b'$JS.API.LIST'",
    ),
    Fix(
        "new fields of nested objects are sent to servers that ignore them",
        "jetstream/api/client.py",
        (('            if hasattr(each, "FIELDS"):\n', "            if False:\n"),),
        (
            "tests/jetstream/api/test_client.py::"
            "test_fields_of_nested_objects_that_are_newer_than_the_server",
        ),
        "DID NOT RAISE NotSupported",
    ),
    Fix(
        "an update with keywords resets the other fields",
        "jetstream/api/changes.py",
        (("    made = found.copy()\n", "    made = type(found)(name=found.name)\n"),),
        (
            "tests/jetstream/streams/test_manager.py::test_keywords_change_these_fields_of_a_stream",
            "tests/jetstream/streams/test_manager.py::test_keywords_change_these_fields_of_a_consumer",
        ),
        "('UPDATE', {'name': 'S', 'max_msgs': 5, 'max_bytes': 7}) != ('UPDATE', {'name': 'S', 'sub",
    ),
    Fix(
        "object links without a nuid are refused",
        "jetstream/objects/info.py",
        (("    if info.nuid or info.chunks or info.size:", "    if True:"),),
        ("tests/jetstream/objects/test_info.py::test_a_link_without_a_nuid",),
        "has a nuid that is not part of a subject",
    ),
    Fix(
        "the default chunk size is refused where max_payload is small",
        "jetstream/objects/put.py",
        (
            (
                "        if not size:\n            return largest",
                "        if False:\n            return largest",
            ),
        ),
        ("tests/jetstream/objects/test_put.py::test_a_server_with_small_messages",),
        "InvalidValue: chunk_size",
    ),
    Fix(
        "the TTL of an object store cannot become shorter than its duplicate window",
        "jetstream/kv/buckets.py",
        (('        names.append("duplicate_window")', "        pass"),),
        ("tests/jetstream/kv/test_buckets.py::test_a_window_that_follows_from_the_ttl",),
        "ids cannot be kept longer than messages",
    ),
    Fix(
        "an increment that is a duplicate has an invalid response",
        "jetstream/publish/request.py",
        (("        if ack.duplicate:  # COUNT-5\n", "        if False:\n"),),
        ("tests/jetstream/publish/test_request_calls.py::test_an_increment_that_is_a_duplicate",),
        "is not a whole number in text",
    ),
    Fix(
        "what an update made differs from the same configuration, which has no empty lists",
        "jetstream/api/assets.py",
        ((" for name in parts if parts[name] != []}", " for name in parts}"),),
        ("tests/jetstream/api/test_assets.py::test_empty_lists_are_not_sent",),
        "'filter_subjects': []",
    ),
    Fix(
        "a sealed object store cannot be updated",
        "jetstream/kv/buckets.py",
        (("    if config.deny_purge:\n", "    if False:\n"),),
        ("tests/jetstream/kv/test_buckets.py::test_an_update_of_a_sealed_bucket",),
        "a rollup purges",
    ),
]
CONSUMER_FIXES = [
    Fix(
        "consume() waits forever for a consumer that is gone, where servers respond with 503",
        "jetstream/pull/presence.py",
        (("return self._absences >= DOUBTFUL and self.silent(now)", "return False"),),
        ("tests/jetstream/pull/test_consume_gone.py::test_no_responders",),
        "assert [] == [0.05, 1.05]",
    ),
    Fix(
        "consume() waits forever for a consumer that is gone, where servers do not respond",
        "jetstream/pull/consume.py",
        (("        if self._presence.silent(now):\n", "        if False:\n"),),
        ("tests/jetstream/pull/test_consume_gone.py::test_silence",),
        "assert [] == [10.0, 11.0]",
    ),
    Fix(
        "consume() keeps messages that it never asked for",
        "jetstream/pull/room.py",
        (("return buffered <= self.most + min(late, MOST_LATE * self._limit)", "return True"),),
        ("tests/jetstream/pull/test_consume_room.py",),
        "assert 20000 == 84",
    ),
    Fix(
        "fetch keeps messages that it never asked for",
        "jetstream/pull/fetch.py",
        (("        if not self._has_room(msg):\n", "        if False:\n"),),
        (
            "tests/jetstream/pull/test_fetch_eager.py::"
            "test_at_most_the_requested_messages_are_kept",
            "tests/jetstream/pull/test_fetch_eager.py::test_at_most_the_requested_bytes_are_kept",
        ),
        "assert 1000 == (3 + 64)",
    ),
    Fix(
        "an ordered fetch refuses the shortest time after some of it has passed",
        "jetstream/ordered/api.py",
        (
            (" or failure is not None:\n", " or True:\n"),
            ("        expires = max(left, _SHORTEST)\n", "        expires = left\n"),
        ),
        (
            "tests/jetstream/ordered/test_api_fetch.py::test_the_shortest_fetch",
            "tests/jetstream/ordered/test_api_fetch.py::test_a_creation_that_takes_all_the_time",
        ),
        "is not a number of seconds from 0.001",
    ),
    Fix(
        "an ordered fetch that creates a consumer takes longer than its time",
        "jetstream/ordered/api.py",
        (("self._prepare(deadline + MARGIN)", "self._prepare(deadline + 60)"),),
        ("tests/jetstream/ordered/test_api_fetch.py::test_it_ends_in_time",),
        "assert 5.0 == 2.0",
    ),
    Fix(
        "term with a reason is ignored by old servers",
        "jetstream/message.py",
        ((" if why and known else TERM", " if why else TERM"),),
        ("tests/jetstream/test_message.py::test_a_reason_needs_a_server_that_knows_reasons",),
        "b'+TERM why') != ",
    ),
    Fix(
        "an acknowledgment goes to any subject",
        "jetstream/message.py",
        (("    if not raw_reply.startswith(ACK_PREFIX):\n", "    if not raw_reply:\n"),),
        (
            "tests/jetstream/test_message.py::test_only_jetstream_is_acknowledged_to",
            "tests/hostile/test_poison.py::test_a_push_subscription_ignores_reply_subjects_of_others",
        ),
        "nobody expects Pub(subject=b'admin.shutdown'",
    ),
    Fix(
        "flow control goes to any subject",
        "jetstream/push/machine.py",
        (("        if not subject.startswith(FLOW_CONTROL):\n", "        if False:\n"),),
        ("tests/jetstream/push/test_machine.py::test_flow_control",),
        "assert ['admin.delete'] == []",
    ),
    Fix(
        "a push subscription takes a stored message for a status",
        "jetstream/push/policy.py",
        (
            (
                "    return not msg.raw_reply or msg.raw_reply.startswith(FLOW_CONTROL)\n",
                "    return True\n",
            ),
        ),
        (
            "tests/jetstream/push/test_machine.py::"
            "test_a_stored_status_is_a_message[False-9--409 Consumer Deleted]",
            "tests/jetstream/push/test_machine.py::"
            "test_a_stored_status_is_a_message[False-9--100 Idle Heartbeat]",
        ),
        "At index 0 diff: Msg(",
    ),
    Fix(
        "the lookup of a dead letter is repeated after nobody waits for it",
        "jetstream/dead_letters/lookup.py",
        (("        self.deadline = None  # D-DEAD-5: nobody waits for the answer anymore\n", ""),),
        ("tests/jetstream/dead_letters/test_lookup.py::test_it_asks_no_more_when_it_has_ended",),
        "assert (1.0, False) == (None, False)",
    ),
    Fix(
        "a watch trusts the server's count of initial values, and then returns old ones",
        "jetstream/ordered/cursor.py",
        (
            (
                "        self.ahead = max(0, subjects - self.consumer_seq)",
                "        subjects = 0 if self.info is None else self.info.num_pending\n"
                "        self.ahead = max(0, subjects - self.consumer_seq)",
            ),
        ),
        ("tests/jetstream/ordered/test_cursor.py::test_when_the_last_of_each_subject_is_here",),
        "assert (0 == 0) == False",
    ),
    Fix(
        "messages of all abandoned pulls are dropped a while after the first of them",
        "jetstream/pull/ledger.py",
        (("in self._abandoned if pull.ends_at > time]", "in self._abandoned[:0]]"),),
        (
            "tests/jetstream/pull/test_consume_room.py::"
            "test_messages_of_each_abandoned_pull_are_expected_equally_long",
        ),
        "(1000, 0)",
    ),
    Fix(
        "a fetch with heartbeats of nats-py's API waits for a full batch",
        "natsproto/compat/nats/js/subscriptions.py",
        (
            (
                "            if batch == 1:\n                found",
                "            if batch:\n                found",
            ),
            ("self._bound.fetch(1, expires", "self._bound.fetch(batch, expires"),
        ),
        (
            "tests/compat/test_programs.py::test_a_program_with_jetstream_behaves_the_same"
            "[natsproto.compat.nats-pull_worker]",
        ),
        "TimeoutError",
    ),
    Fix(
        "members of a queue group that start at once listen to subjects of their own",
        "natsproto/compat/nats/js/client.py",
        (
            (
                "await create_push(self, core._api, stream, config, limits_of(*limits))",
                "await self._attach(\n"
                "                    await self.add_consumer(stream, config=config),"
                " cb, manual_ack, limits\n                )",
            ),
            (
                "return self._pushed(source, config, cb, manual_ack, limits)\n        return await",
                "return source\n        return await",
            ),
        ),
        (
            "tests/compat/test_failures.py"
            "::test_members_of_a_queue_group_that_start_at_once_share_a_consumer",
        ),
        "assert 4 == 1",
    ),
    Fix(
        "close of nats-py's API waits forever for a callback that does not return",
        "natsproto/compat/nats/aio/client.py",
        (("            if self._callbacks.skip_to_end():\n", "            if False:\n"),),
        (
            "tests/compat/test_endings.py::test_close_cancels_a_callback_that_does_not_return"
            "[natsproto.compat.nats]",
        ),
        "TimeoutError",
    ),
    Fix(
        "a handler of nats-py's API cannot stop its service",
        "natsproto/compat/nats/micro/service.py",
        (("await sub._drain(caller)", "await sub._drain()"),),
        ("tests/compat/test_endings.py::test_a_handler_may_stop_its_service",),
        "TimeoutError",
    ),
    Fix(
        "a drain of nats-py's API closes before a push subscription is read",
        "natsproto/compat/nats/aio/subscription.py",
        (
            (
                "                if self.pending_msgs:\n",
                "                if self._pending_queue.msgs:\n",
            ),
        ),
        (
            "tests/compat/test_endings.py::"
            "test_a_drain_waits_for_the_reader_of_a_push_subscription[natsproto.compat.nats]",
        ),
        "ConnectionClosedError",
    ),
]
SPARK_FIXES = [
    Fix(
        "Spark: a query with a name is refused",
        "jetstream/spark/options.py",
        (('{"checkpointlocation", "queryname"}', '{"checkpointlocation"}'),),
        ("tests/spark/test_options.py::test_options_that_spark_adds_to_those_of_a_query",),
        "InvalidValue: option queryname is unknown",
    ),
    Fix(
        "rows of merged partitions are stored twice without an error",
        "jetstream/spark/sink.py",
        (("        check_write(self._settings, positions)\n", ""),),
        ("tests/spark/test_replays.py::test_merged_partitions",),
        "DID NOT RAISE",
    ),
    Fix(
        "messages that are removed after they were read are reported as lost",
        "jetstream/spark/loss.py",
        (
            (
                "            last = max(last, self._part.end - 1)",
                "            pass",
            ),
        ),
        (
            "tests/spark/test_planning.py"
            "::test_messages_that_are_removed_after_the_last_one_was_read",
        ),
        "were removed",
    ),
    Fix(
        "the tasks of a filter have no messages but one",
        "jetstream/spark/source.py",
        (('cut_evenly(queries, each, plan, self.settings.number("fetchSize"))', "pass"),),
        ("tests/spark/test_planning.py::test_partitions_of_a_filter_are_equal",),
        "assert [0, 0, 0, 200] ==",
    ),
    Fix(
        "a limited micro-batch has one message too few",
        "jetstream/spark/limits.py",
        (
            ("max(1, count * self.most // total)", "max(1, int(count * (self.most / total)))"),
            ("shares[largest] + max(0, rest)", "shares[largest]"),
        ),
        ("tests/spark/test_query_limits.py::test_a_limit_is_reached_exactly",),
        "assert 14 == 15",
    ),
    Fix(
        "a batch of mode=consume has more bytes than its limit",
        "jetstream/spark/consume.py",
        (
            (
                'self.settings.number("fetchSize")), wait, room)',
                'self.settings.number("fetchSize")), wait)',
            ),
        ),
        ("tests/spark/test_consume.py::test_a_limit_by_bytes_with_messages_of_uneven_size",),
        "assert False",
    ),
    Fix(
        "a deleted stream of a pattern is a KeyError",
        "jetstream/spark/stream.py",
        (("for name in places.keys() - snapshots.keys():", "for name in ():"),),
        ("tests/spark/test_streams_and_times.py::test_a_stream_of_a_pattern_is_deleted[True]",),
        "KeyError",
    ),
    Fix(
        "a row that was a dead letter before is stored twice",
        "jetstream/spark/covered.py",
        (('["%s.%d" % (positions.ids, row) for row in dead]', "[]"),),
        (
            "tests/spark/test_dead_letters.py"
            "::test_a_repetition_with_other_dead_letters[another place]",
        ),
        "DID NOT RAISE",
    ),
]
FIXES = CONNECTION_FIXES + ADAPTER_FIXES + PUBLISH_FIXES + API_FIXES + CONSUMER_FIXES + SPARK_FIXES
