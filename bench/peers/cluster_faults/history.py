"""What a client did and was told: one `Op` for each request, or for a read and the change that depends on it."""
import dataclasses
import json
import threading
import time
from typing import Any, Optional

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


@dataclasses.dataclass
class Op:
    """
    kind      write, cas, read (of a register); txn (of lists: reads, then appends); big (a large literal)
    start     before the request was sent; end: after the answer was there and its commit was told to all clients
    outcome   ok; refused: certainly not done; unknown: perhaps done, perhaps done later
    is_fresh  it named the newest commit that any client knew when it began, so it takes part in the order of real time
    is_session  it named the newest commit that its own client knew
    """
    client: int
    kind: str
    start: float
    node: int
    end: float = float("inf")
    outcome: str = UNKNOWN
    key: str = ""
    value: Any = None        # written, or read; of a register None is: not there
    expected: Any = None     # of a cas
    swapped: bool = False    # whether a cas did what it was to do
    reads: Optional[dict] = None      # txn: list -> elements
    appends: Optional[list] = None    # txn: (list, element), in their order
    commit: Optional[int] = None      # of an answer
    reads_commit: Optional[int] = None  # txn that reads first: of the reading
    min_commit: Optional[int] = None
    is_fresh: bool = False
    is_session: bool = False
    detail: str = ""

    def is_change(self):
        return self.kind in ("write", "cas", "big") or bool(self.appends)


class History:
    """All of it, and the newest commit that anybody knows."""

    def __init__(self):
        self.ops, self.newest, self.lock = [], 0, threading.Lock()
        # What the nemesis asks of clients for a while: to read only, and to ask all nodes but one.
        self.is_quiet, self.spared = False, None

    def begin(self, client, kind, node, **rest):
        op = Op(client, kind, time.monotonic(), node, **rest)
        with self.lock:
            self.ops.append(op)
        return op

    def saw(self, commit):
        with self.lock:
            self.newest = max(self.newest, commit)

    def save(self, path):
        with open(path, "w") as file:
            for op in self.ops:
                record = dataclasses.asdict(op)
                record["end"] = None if op.end == float("inf") else op.end
                file.write(json.dumps(record) + "\n")


def load(path):
    """The operations of a file, to judge them again."""
    ops = []
    with open(path) as file:
        for line in file:
            record = json.loads(line)
            if record["end"] is None:
                record["end"] = float("inf")
            if record["appends"]:
                record["appends"] = [tuple(append) for append in record["appends"]]
            ops.append(Op(**record))
    return ops
