"""Possible mistakes in buckets, objects and publishes; see test_mutants.py."""

from __future__ import annotations

# name, module, what is replaced, by what, and who finds it: a mode of the simulation, or a table
MUTANTS = [
    (
        "a message that is passed over is no proof",
        "ordered.policy",
        "if verdict is KEEP or verdict is SKIP:",
        "if verdict is KEEP:",
        "ordered.test_policy",
    ),
    (
        "a change of leader is a proof",
        "pull.consume",
        "        if meaning != RETRY:\n            self.policy.proved()",
        "        if True:\n            self.policy.proved()",
        "pull.test_consume_in_order",
    ),
    (
        "initial values end at the first zero",
        "kv.snapshot",
        "        elif seq > self.fence or (self._trusting and not pending):\n"
        "            self.doubtful = True",
        "        elif not pending:\n            self.end()",
        "kv_watch",
    ),
    (
        "a list ends at the first zero",
        "kv.snapshot",
        "        elif seq > self.fence or (self._trusting and not pending):\n"
        "            self.doubtful = True",
        "        elif not pending:\n            self.end()",
        "kv_keys",
    ),
    (
        "keys after the fence count",
        "kv.snapshot",
        "                if seq <= self.fence:\n                    self.left -= 1",
        "                self.left -= 1",
        "kv_keys",
    ),
    (
        "a key counts each time",
        "kv.snapshot",
        "            if key not in self._seen:\n                self._seen.add(key)",
        "            if True:\n                self._seen.add(key)",
        "kv.test_snapshot",
    ),
    (
        "a doubt is never settled",
        "kv.watcher",
        "            if self._snapshot.doubtful:\n"
        "                await self._settle(deadline)\n"
        "                continue\n",
        "",
        "kv.test_watcher",
    ),
    (
        "keys that are gone are waited for",
        "kv.snapshot",
        "                wanted = min(wanted, counts.get(key, 0))\n",
        "",
        "kv.test_snapshot",
    ),
    (
        "deleted keys are listed",
        "kv.store",
        "                if entry.deleted:\n                    found.discard(entry.key)",
        "                if False:\n                    found.discard(entry.key)",
        "kv_keys",
    ),
    (
        "deletions are values",
        "kv.store",
        "                if entry.deleted:\n",
        "                if False:\n",
        "kv_keys",
    ),
    (
        "a watch begins with the present values again",
        "ordered.cursor",
        "        if stream_seq < self.start:\n            return SKIP",
        "        if False:\n            return SKIP",
        "kv_watch",
    ),
    (
        "an object is read without a look at its size",
        "objects.read",
        "        if (self._size, self._chunks) != (info.size, info.chunks or self._chunks):",
        "        if False:",
        "objects.test_read",
    ),
    (
        "an object is read without a look at its digest",
        "objects.read",
        "        elif not same_digest(info.digest, self._hash.digest()):",
        "        elif False:",
        "objects.test_read",
    ),
    (
        "half of an object is a whole one",
        "objects.read",
        "        if (self._size, self._chunks) != (info.size, info.chunks or "
        "self._chunks):\n"
        '            why = "there are %s, not %d in %d" % (received, info.size, '
        "info.chunks)\n"
        "        elif not same_digest(info.digest, self._hash.digest()):",
        "        if False:\n"
        '            why = "there are %s, not %d in %d" % (received, info.size, '
        "info.chunks)\n"
        "        elif False:",
        "objects",
    ),
    (
        "replaced chunks stay",
        "objects.put",
        "            await metas.purge_chunks(before)  # OBJ-24",
        "            pass  # OBJ-24",
        "objects",
    ),
    (
        "any response acknowledges a publish of a window",
        "publish.window_machine",
        "publication = open.pop(msg.raw_subject[skip:], None)",
        'publication = open.pop(next(iter(open), b""), None)',
        "forged",
    ),
    (
        "an unanswered publish waits for ever",
        "publish.window_machine",
        "                late.append(publication)  # D-PUB-12",
        "                pass  # D-PUB-12",
        "publish",
    ),
    (
        "a lost connection loses publishes silently",
        "publish.window_machine",
        "                lost.append(publication)\n",
        "                pass\n",
        "publish",
    ),
    (
        "a publish in doubt is not sent again",
        "publish.window_machine",
        "            self._send(publication, now)\n\n    def unsent",
        "            pass\n\n    def unsent",
        "publish",
    ),
    (
        "a failure is raised twice",
        "publish.window_machine",
        "        self.failed = []\n        return [",
        "        return [",
        "publish.test_window_machine",
    ),
    (
        "the window has no limit",
        "publish.window_machine",
        "return len(self.open) >= self.max_pending",
        "return False",
        "publish",
    ),
]
