"""Linearizability of single registers: the search of Wing and Gong, with Lowe's memory of (what is placed, state), for each key by itself.

An operation has to take its place between its start and its end. One whose outcome is unknown may take one at any time after its start, or none. Reads are those that named the newest
commit which any client knew (the others may be old, and are judged in `commits`); a compare-and-set that found another value is a read, too: it says what was not there.

What has no outcome would double the search each time. All values differ, so what was seen must have happened before it was seen: that ends it. Writes that nobody saw are alike, each only hides
what was there before: they are taken in the order of their starts.
"""
import dataclasses

from .history import OK, REFUSED, UNKNOWN

STATES_MAX = 2_000_000


class Undecided(Exception):
    """The search became too large."""


def of_registers(ops, with_failed_cas=True):
    """The operations that count, by key, in the order of their starts."""
    keys = {}
    for op in ops:
        if op.kind == "read":
            counts = op.outcome == OK and op.is_fresh
        elif op.kind == "cas":
            counts = op.outcome != REFUSED and (op.outcome == UNKNOWN or op.swapped or with_failed_cas)
        else:
            counts = op.kind == "write" and op.outcome != REFUSED
        if counts:
            keys.setdefault(op.key, []).append(op)
    for of_key in keys.values():
        of_key.sort(key=lambda op: op.start)
    return keys


def apply(op, state):
    """Whether an operation fits to a state, and the state after it."""
    if op.kind == "write":
        return True, op.value
    if op.kind == "read":
        return state == op.value, state
    if op.outcome == OK and not op.swapped:
        return state != op.expected, state
    return state == op.expected, op.value


def settle(ops):
    """Gives what was seen its end and its outcome."""
    seen = {}
    for op in ops:
        value = op.value if op.kind == "read" else op.expected if op.swapped else None
        if value is not None:
            seen[value] = min(op.end, seen.get(value, op.end))
    return [dataclasses.replace(op, outcome=OK, end=seen[op.value], swapped=op.kind == "cas") if op.outcome == UNKNOWN and op.value in seen else op for op in ops]


def is_linearizable(ops):
    """`ops` of one key, by their starts. Gives None, or the most operations that could be placed and those none of which fits after them."""
    ops = settle(ops)
    number, is_open = len(ops), [op.outcome == UNKNOWN for op in ops]
    # Operations behind the first one that is not placed are few, so a state is that one, the mask of those behind it, and the value.
    stack, seen = [(0, 0, None)], {(0, 0, None)}
    best = (-1, [])
    while stack:
        first, mask, state = stack.pop()
        horizon, candidates, at, left = float("inf"), [], first, False
        while at < number and ops[at].start <= horizon:
            if not mask >> (at - first) & 1:
                candidates.append(at)
                if not is_open[at]:
                    left, horizon = True, min(horizon, ops[at].end)
            at += 1
        if not left:
            return None
        candidates = [at for at in candidates if ops[at].start <= horizon]
        alike = [at for at in candidates if is_open[at] and ops[at].kind == "write"]
        candidates = [at for at in candidates if at not in alike[1:]]
        placed = first + bin(mask).count("1")
        if placed > best[0]:
            best = (placed, [ops[at] for at in candidates])
        # The last one is tried first: what has an end, and the earliest one.
        candidates.sort(key=lambda at: (is_open[at], ops[at].end), reverse=True)
        for at in candidates:
            fits, after = apply(ops[at], state)
            if not fits:
                continue
            next_first, next_mask = first, mask | 1 << (at - first)
            while next_mask & 1:
                next_first, next_mask = next_first + 1, next_mask >> 1
            key = (next_first, next_mask, after)
            if key not in seen:
                if len(seen) >= STATES_MAX:
                    raise Undecided
                seen.add(key)
                stack.append(key)
    return best


def check(ops, with_failed_cas=True):
    """What is wrong, in sentences, and how many keys and operations were judged."""
    wrong, keys = [], of_registers(ops, with_failed_cas)
    for key, of_key in keys.items():
        try:
            found = is_linearizable(of_key)
        except Undecided:
            wrong.append("register %s: not decided within %d states" % (key, STATES_MAX))
            continue
        if found:
            stuck = "; ".join("%s %r%s (client %d, node %d, %.3f to %.3f, commit %s)"
                              % (op.kind, op.value, " for %r: %s" % (op.expected, op.swapped) if op.kind == "cas" else "",
                                 op.client, op.node, op.start, op.end, op.commit) for op in found[1])
            wrong.append("register %s is not linearizable: after %d of %d operations none of these fits: %s" % (key, found[0], len(of_key), stuck))
    return wrong, len(keys), sum(map(len, keys.values()))
