"""Clients of PostgreSQL's protocol at all nodes, with transactions and blocks that they leave open.

    a block    BEGIN; INSERT (client, number, 0); count of its own rows; INSERT (client, number, 1); count; COMMIT or ROLLBACK
               between two statements, at times, a pause of up to PAUSE_S: the block idles, and others wait for it
    alone      INSERT of both rows as one statement

Judged: within its block a client sees the rows that it has inserted, and no others of its own; at the end both rows of a transaction are there whose COMMIT was done, none of one that was refused or rolled back, both
or none where the answer to COMMIT was lost. So statements of one client that run in another's transaction are found: by the count, by rows without a commit, by a commit without rows.
"""
import random
import socket
import struct
import threading
import time

from .history import OK, REFUSED, UNKNOWN
from .nodes import NODES

ANSWER_TIME_S = 15
PAUSE_S = 1.5
# The commit may have been made: the process that writes was lost while it committed; its log could not be written.
UNKNOWN_CODES = ("08007", "58030", "57P01")


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__("%s %s" % (code, message))
        self.code = code


class Connection:
    """Simple queries of the protocol, version 3."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=ANSWER_TIME_S)
        self.socket.settimeout(ANSWER_TIME_S)
        start = struct.pack(">I", 196608) + b"user\0faults\0database\0orrery\0\0"
        self.socket.sendall(struct.pack(">I", len(start) + 4) + start)
        self.answer()

    def ask(self, text):
        """The first columns of the rows; fails with what the server refuses."""
        body = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">I", len(body) + 4) + body)
        return self.answer()

    def exactly(self, count):
        parts = b""
        while len(parts) < count:
            part = self.socket.recv(count - len(parts))
            if not part:
                raise OSError("the connection ended")
            parts += part
        return parts

    def answer(self):
        rows, refused = [], None
        while True:
            head = self.exactly(5)
            body = self.exactly(struct.unpack(">I", head[1:])[0] - 4)
            if head[:1] == b"D":
                length = struct.unpack(">i", body[2:6])[0]
                rows.append(body[6:6 + length].decode())
            elif head[:1] == b"E":
                fields = {field[:1]: field[1:].decode() for field in body.split(b"\0") if field}
                refused = Refused(fields[b"C"], fields[b"M"])
                if fields[b"S"] == "FATAL":
                    raise refused
            elif head[:1] == b"Z":
                if refused:
                    raise refused
                return rows

    def close(self):
        self.socket.close()


class SqlClient(threading.Thread):
    """One client; what became of its transactions is in `outcomes`, by their numbers."""

    def __init__(self, number, seed, ports, history, pause_s):
        super().__init__(daemon=True)
        self.number, self.ports, self.history, self.pause_s = number, ports, history, pause_s
        self.random = random.Random("%d sql %d" % (seed, number))
        self.is_over, self.failure, self.outcomes, self.wrong = False, None, {}, []
        self.connections, self.codes = {}, {}

    def run(self):
        try:
            while not self.is_over:
                if self.history.is_quiet:
                    time.sleep(0.05)
                    continue
                self.transaction()
                time.sleep(self.random.uniform(0, 2 * self.pause_s))
        except Exception as error:  # noqa: BLE001 - told at the end, and then the run has failed
            self.failure = repr(error)
            raise

    def connection(self, node):
        if node not in self.connections:
            self.connections[node] = Connection(self.ports[node])
        return self.connections[node]

    def transaction(self):
        number = len(self.outcomes)
        node = self.random.choice([node for node in NODES if node != self.history.spared])
        act = self.random.choice((self.block, self.block, self.alone))
        # Until the last statement is sent, nothing can have been committed.
        self.outcomes[number], self.is_committing = REFUSED, False
        try:
            act(self.connection(node), number)
        except Refused as refused:
            self.codes[refused.code] = self.codes.get(refused.code, 0) + 1
            if self.is_committing and refused.code in UNKNOWN_CODES:
                self.outcomes[number] = UNKNOWN
            try:
                self.connection(node).ask("rollback")
            except (Refused, OSError):
                self.forget(node)
        except OSError:
            if self.is_committing:
                self.outcomes[number] = UNKNOWN
            self.forget(node)

    def forget(self, node):
        connection = self.connections.pop(node, None)
        if connection:
            connection.close()

    def idle(self):
        if self.random.random() < 0.15:
            time.sleep(self.random.uniform(0, PAUSE_S))

    def block(self, connection, number):
        connection.ask("begin")
        for part in (0, 1):
            connection.ask("insert into faults values (%d, %d, %d)" % (self.number, number, part))
            self.idle()
            rows = connection.ask("select part from faults where client = %d and number = %d order by part" % (self.number, number))
            if rows != [str(part) for part in range(part + 1)]:
                self.wrong.append("SQL client %d sees the parts %s in its block %d after it has inserted %d" % (self.number, rows, number, part + 1))
        self.idle()
        if self.random.random() < 0.2:
            connection.ask("rollback")
            return
        self.is_committing = True
        connection.ask("commit")
        self.outcomes[number] = OK

    def alone(self, connection, number):
        self.is_committing = True
        connection.ask("insert into faults values (%d, %d, 0), (%d, %d, 1)" % (self.number, number, self.number, number))
        self.outcomes[number] = OK


def make_table(ports):
    """Whether there is one now."""
    for node in NODES:
        try:
            Connection(ports[node]).ask("create table if not exists faults (client int, number int, part int, primary key (client, number, part))")
            return True
        except (OSError, Refused):
            continue
    return False


def rows_at(port):
    """What a node has, as (client, number) with their parts; none if it does not answer."""
    try:
        rows = Connection(port).ask("select client || ' ' || number || ' ' || part from faults order by client, number, part")
    except (OSError, Refused):
        return None
    found = {}
    for row in rows:
        client, number, part = map(int, row.split())
        found.setdefault((client, number), []).append(part)
    return found


def check(clients, states):
    """What is wrong with the clients' transactions, in the states of the nodes at the end."""
    wrong = [line for client in clients for line in client.wrong]
    for node, state in states.items():
        if state != next(iter(states.values())):
            wrong.append("the tables of node %s differ from others" % node)
        known = {(client.number, number) for client in clients for number in client.outcomes}
        wrong += ["rows of a transaction %s that nobody made are at node %s" % (key, node) for key in state if key not in known]
        for client in clients:
            for number, outcome in client.outcomes.items():
                parts = state.get((client.number, number), [])
                expected = {OK: ([0, 1],), REFUSED: ([],), UNKNOWN: ([], [0, 1])}[outcome]
                if parts not in expected:
                    wrong.append("transaction %d of SQL client %d, %s, has the parts %s at node %s" % (number, client.number, outcome, parts, node))
    return wrong


def told(clients):
    """How many ended how, and why."""
    outcomes, codes = {OK: 0, REFUSED: 0, UNKNOWN: 0}, {}
    for client in clients:
        for outcome in client.outcomes.values():
            outcomes[outcome] += 1
        for code, count in client.codes.items():
            codes[code] = codes.get(code, 0) + count
    return "%d transactions of SQL: %d done, %d refused, %d unknown; refusals by their codes: %s" % (
        sum(outcomes.values()), outcomes[OK], outcomes[REFUSED], outcomes[UNKNOWN], ", ".join("%s %d" % item for item in sorted(codes.items())) or "none")
