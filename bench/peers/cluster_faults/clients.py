"""Clients: threads that write and read over HTTP at whichever node, and note what they did in the history.

    registers   one triple <http://e/KEY> <http://e/value> N        written, compared and set, read
    lists       one triple <http://e/KEY> <http://e/list> " 1 2 3"  a change appends to two or three; a query reads as many at once
    read, then append with If-Match    made only if nothing was changed in between
    big         a literal of 80,000 characters, so that the nodes also send files
    relaxed     with --relaxed: a triple of its own, with durability=relaxed

Keys are given up after some changes, and new ones begin.

How a request ends: 200 is done. Certainly not done are: a connection that was refused, 412, 503 with "does not write" or with a commit that was not there (min-commit). All else is unknown.
"""
import csv
import http.client
import io
import random
import threading
import time
import urllib.parse

from .history import OK, REFUSED, UNKNOWN
from .nodes import NODES

REQUEST_TIME_S = 5
CHANGES_OF_KEY = 40
BIG_CHARACTERS = 80_000
VALUE, LIST, BIG = "<http://e/value>", "<http://e/list>", "<http://e/big>"


class Keys:
    """The keys that are in use, and numbers that nobody has had."""

    def __init__(self, prefix, slots):
        self.prefix, self.lock, self.number = prefix, threading.Lock(), 0
        self.slots, self.changes, self.recent = [0] * slots, [0] * slots, {}

    def name(self, slot):
        return "%s%d-%d" % (self.prefix, slot, self.slots[slot])

    def some(self, random, count):
        """Different ones."""
        with self.lock:
            return [self.name(slot) for slot in random.sample(range(len(self.slots)), count)]

    def next_value(self, key):
        with self.lock:
            slot = int(key[len(self.prefix):].split("-")[0])
            if key == self.name(slot):
                self.changes[slot] += 1
                if self.changes[slot] >= CHANGES_OF_KEY:
                    self.slots[slot], self.changes[slot] = self.slots[slot] + 1, 0
            self.number += 1
            return self.number


class Answer:
    """How a request ended."""

    def __init__(self, outcome, commit=None, body="", detail=""):
        self.outcome, self.commit, self.body, self.detail = outcome, commit, body, detail


class Caller:
    """Sends requests of one client; keeps a connection to each node."""

    def __init__(self, ports):
        self.ports, self.connections = ports, {}

    def send(self, node, update=None, query=None, headers=(), timeout=REQUEST_TIME_S, is_relaxed=False):
        headers = dict(headers, Accept="text/csv")
        is_sent = False
        try:
            connection = self.connections.get(node)
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.ports[node], timeout=timeout)
                connection.connect()
                self.connections[node] = connection
            is_sent = True
            if update is not None:
                connection.request("POST", "/sparql?durability=relaxed" if is_relaxed else "/sparql", update.encode(), dict(headers, **{"Content-Type": "application/sparql-update"}))
            else:
                connection.request("GET", "/sparql?query=" + urllib.parse.quote(query), headers=headers)
            response = connection.getresponse()
            body = response.read().decode()
            return judge(response, body)
        except (OSError, http.client.HTTPException) as error:
            failed = self.connections.pop(node, None)
            if failed:
                failed.close()
            return Answer(UNKNOWN if is_sent else REFUSED, detail=repr(error))


def judge(response, body):
    if response.status == 200:
        tag = response.getheader("ETag", "").strip('"').split("-")[0]
        return Answer(OK, int(tag) if tag.isdigit() else None, body)
    is_refused = response.status == 412 or response.status == 503 and ("does not write" in body or "(min-commit)" in body)
    return Answer(REFUSED if is_refused else UNKNOWN, detail="%d %s" % (response.status, body.strip()))


def append_text(key, element):
    return ("DELETE { <http://e/%s> %s ?o } INSERT { <http://e/%s> %s ?n } WHERE { OPTIONAL { <http://e/%s> %s ?o } BIND(CONCAT(COALESCE(?o, \"\"), \" %d\") AS ?n) }"
            % (key, LIST, key, LIST, key, LIST, element))


def numbers(text):
    return [int(word) for word in text.split()]


def big_text(number):
    """A literal that can be made again from its number."""
    return ("%d " % (number * 7_919 + 1)) * (BIG_CHARACTERS // len("%d " % (number * 7_919 + 1)))


class Client(threading.Thread):
    def __init__(self, number, seed, ports, history, registers, lists, pause_s):
        super().__init__(daemon=True)
        self.number, self.random, self.caller, self.history = number, random.Random("%s-%d" % (seed, number)), Caller(ports), history
        self.registers, self.lists, self.pause_s = registers, lists, pause_s
        self.known, self.is_over, self.failure = 0, False, None
        self.acts = [(self.write, 5), (self.cas, 6), (self.read, 10), (self.append, 9), (self.read_lists, 10), (self.read_then_append, 5), (self.refused, 1), (self.big, 0.15)]

    def run(self):
        acts, parts = zip(*self.acts)
        reads = (self.read, self.read_lists)
        try:
            while not self.is_over:
                (self.random.choice(reads) if self.history.is_quiet else self.random.choices(acts, parts)[0])()
                time.sleep(self.random.uniform(0, 2 * self.pause_s))
        except Exception as error:  # noqa: BLE001 - told at the end, and then the run has failed
            self.failure = repr(error)
            raise

    def begin(self, kind, **rest):
        return self.history.begin(self.number, kind, self.some_node(), **rest)

    def some_node(self):
        return self.random.choice([node for node in NODES if node != self.history.spared])

    def fresh(self, op):
        """Names the newest commit that anybody knows."""
        op.is_fresh = op.is_session = True
        op.min_commit = self.history.newest
        return {"Orrery-Min-Commit": str(op.min_commit)}

    def some_freshness(self, op):
        """Half of the reads take part in real time, most others go on from what their client knows."""
        chance = self.random.random()
        if chance < 0.5:
            return self.fresh(op)
        if chance < 0.85:
            op.is_session, op.min_commit = True, self.known
            return {"Orrery-Min-Commit": str(op.min_commit)}
        return {}

    def end(self, op, answer):
        op.outcome, op.commit, op.detail = answer.outcome, answer.commit, answer.detail
        if answer.commit is not None:
            self.known = max(self.known, answer.commit)
            self.history.saw(answer.commit)
        if answer.outcome != UNKNOWN:
            op.end = time.monotonic()

    # Registers.

    def write(self):
        key = self.registers.some(self.random, 1)[0]
        value = self.registers.next_value(key)
        op = self.begin("write", key=key, value=value)
        text = "DELETE { <http://e/%s> %s ?o } INSERT { <http://e/%s> %s %d } WHERE { OPTIONAL { <http://e/%s> %s ?o } }" % (key, VALUE, key, VALUE, value, key, VALUE)
        self.end(op, self.caller.send(op.node, update=text))
        if op.outcome == OK:
            self.registers.recent[key] = value

    def cas(self):
        key = self.registers.some(self.random, 1)[0]
        if self.registers.recent.get(key) is None:
            self.write()
        else:
            self.cas_at(self.some_node(), key)

    def cas_at(self, node, key):
        """Gives what came of it."""
        value, expected = self.registers.next_value(key), self.registers.recent[key]
        op = self.history.begin(self.number, "cas", node, key=key, value=value, expected=expected)
        text = "DELETE { <http://e/%s> %s %d } INSERT { <http://e/%s> %s %d } WHERE { <http://e/%s> %s %d }" % (key, VALUE, expected, key, VALUE, value, key, VALUE, expected)
        answer = self.caller.send(op.node, update=text)
        op.swapped = answer.outcome == OK and '"added":1' in answer.body
        self.end(op, answer)
        if op.swapped:
            self.registers.recent[key] = value
        return op.outcome

    def read(self):
        key = self.registers.some(self.random, 1)[0]
        op = self.begin("read", key=key)
        answer = self.caller.send(op.node, query="SELECT ?v { <http://e/%s> %s ?v }" % (key, VALUE), headers=self.some_freshness(op))
        if answer.outcome == OK:
            rows = answer.body.split()[1:]
            # Two values at once are what nobody wrote.
            op.value = None if not rows else int(rows[0]) if len(rows) == 1 else " ".join(rows)
            if len(rows) == 1:
                self.registers.recent[key] = op.value
        self.end(op, answer)

    # Lists.

    def appends(self):
        keys = self.lists.some(self.random, self.random.choice((2, 3)))
        if self.random.random() < 0.2:
            keys.append(keys[0])
        return [(key, self.lists.next_value(key)) for key in keys]

    def append(self):
        appends = self.appends()
        op = self.begin("txn", appends=appends)
        self.end(op, self.caller.send(op.node, update=" ;\n".join(append_text(*append) for append in appends)))

    def lists_at(self, node, headers):
        keys = self.lists.some(self.random, self.random.choice((2, 3)))
        if self.random.random() < 0.1:
            # One that was given up.
            slot, generation = keys[0][len(self.lists.prefix):].split("-")
            keys[0] = "%s%s-%d" % (self.lists.prefix, slot, max(0, int(generation) - 1))
        answer = self.caller.send(node, query="SELECT ?k ?l { VALUES ?k { %s } ?k %s ?l }" % (" ".join("<http://e/%s>" % key for key in keys), LIST), headers=headers)
        reads = {key: [] for key in keys}
        if answer.outcome == OK:
            for key, text in list(csv.reader(io.StringIO(answer.body)))[1:]:
                # A second row would be a second list of the same key, which is no beginning of the first.
                reads[key.rsplit("/", 1)[1]] += numbers(text)
        return reads, answer

    def read_lists(self):
        op = self.begin("txn")
        reads, answer = self.lists_at(op.node, self.some_freshness(op))
        if answer.outcome == OK:
            op.reads = reads
        self.end(op, answer)

    def read_then_append(self):
        op = self.begin("txn")
        reads, answer = self.lists_at(op.node, self.fresh(op))
        if answer.outcome != OK:
            return self.end(op, answer)
        op.reads, op.reads_commit, op.appends = reads, answer.commit, self.appends()
        self.known = max(self.known, answer.commit)
        self.history.saw(answer.commit)
        headers = {"If-Match": '"%d"' % answer.commit}
        # At another node: what is read here is changed there.
        self.end(op, self.caller.send(self.some_node(), update=" ;\n".join(append_text(*append) for append in op.appends), headers=headers))

    def refused(self):
        """A change on a condition that is not so."""
        if self.known:
            appends = self.appends()
            op = self.begin("txn", appends=appends)
            self.end(op, self.caller.send(op.node, update=" ;\n".join(append_text(*append) for append in appends), headers={"If-Match": '"0"'}))

    def relaxed(self):
        """A change that may be lost, and is nobody else's affair. What commits were seen because of it is not told: others get their numbers."""
        number = self.registers.next_value(self.registers.some(self.random, 1)[0])
        self.caller.send(self.some_node(), update="INSERT DATA { <http://e/relaxed%d> <http://e/relaxed> %d }" % (number, number), is_relaxed=True)

    def big(self):
        number = self.registers.next_value(self.registers.some(self.random, 1)[0])
        op = self.begin("big", value=number)
        self.end(op, self.caller.send(op.node, update='INSERT DATA { <http://e/big%d> %s "%s" }' % (number, BIG, big_text(number))))
