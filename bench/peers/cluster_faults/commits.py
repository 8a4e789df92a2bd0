"""What the numbers of commits promise, whichever node answers and however old the answer is:

- acknowledged changes have different numbers, larger than all that anybody knew when they began;
- an answer is as new as the commit that its request named, so a client that names its last one never goes back;
- what is read at a commit is the same for all, has what was acknowledged up to it, and nothing of what was acknowledged after it;
- nothing is read that nobody wrote, or that was refused.
"""
import bisect

from .history import OK, REFUSED


def check(ops):
    """What is wrong, in sentences, and how many answers were judged."""
    wrong = numbers(ops) + registers(ops) + lists(ops)
    return wrong, sum(1 for op in ops if op.commit is not None)


def told(op):
    return "%s of client %d at node %d (%.3f to %.3f, commit %s)" % (op.kind, op.client, op.node, op.start, op.end, op.commit)


def changed(op):
    """Whether a change was acknowledged, and changed something: else it makes no commit."""
    return op.outcome == OK and op.commit is not None and op.is_change() and (op.kind != "cas" or op.swapped)


def numbers(ops):
    wrong, by_number = [], {}
    for op in filter(changed, ops):
        other = by_number.setdefault(op.commit, op)
        if other is not op:
            wrong.append("two acknowledged changes have one commit: %s; %s" % (told(other), told(op)))
    # In the order of time: the newest commit that anybody knew at each moment.
    ended = sorted((op for op in ops if op.outcome == OK and op.commit is not None), key=lambda op: op.end)
    times, newest, known = [op.end for op in ended], [], 0
    for op in ended:
        known = max(known, op.commit)
        newest.append(known)
    for op in ops:
        if op.commit is None or op.outcome != OK:
            continue
        if op.min_commit is not None and op.commit < op.min_commit:
            wrong.append("it asked for commit %d: %s" % (op.min_commit, told(op)))
        at = bisect.bisect_left(times, op.start)
        if changed(op) and at and op.commit <= newest[at - 1]:
            wrong.append("commit %d was known before it began: %s" % (newest[at - 1], told(op)))
    return wrong


def registers(ops):
    wrong, written, acknowledged, seen = [], {}, {}, {}
    for op in ops:
        if op.kind in ("write", "cas"):
            written[(op.key, op.value)] = op
            if changed(op):
                acknowledged.setdefault(op.key, []).append((op.commit, op.value))
    for of_key in acknowledged.values():
        of_key.sort()
    for op in ops:
        if op.kind != "read" or op.outcome != OK:
            continue
        other = seen.setdefault((op.key, op.commit), op)
        if other.value != op.value:
            wrong.append("register %s has two values at one commit: %r, %s; %r, %s" % (op.key, other.value, told(other), op.value, told(op)))
        of_key = acknowledged.get(op.key, [])
        at = bisect.bisect_right(of_key, (op.commit, float("inf")))
        should = of_key[at - 1][1] if at else None
        if op.value == should:
            continue
        source = written.get((op.key, op.value))
        if source is None:
            wrong.append("register %s is %r, not %r: %s" % (op.key, op.value, should, told(op)))
        elif source.outcome == REFUSED or source.kind == "cas" and source.outcome == OK and not source.swapped:
            wrong.append("register %s is %r, which was refused: %s" % (op.key, op.value, told(op)))
        elif source.outcome == OK:
            wrong.append("register %s is %r (%s), not %r: %s" % (op.key, op.value, told(source), should, told(op)))
    return wrong


def lists(ops):
    wrong, acknowledged, seen = [], {}, {}
    for op in ops:
        for key, element in op.appends or ():
            if changed(op):
                acknowledged.setdefault(key, []).append((op.commit, element))
    for op in ops:
        if op.reads is None:
            continue
        commit = op.reads_commit if op.appends else op.commit
        if commit is None:
            continue
        for key, elements in op.reads.items():
            other, found = seen.setdefault((key, commit), (op, elements))
            if found != elements:
                wrong.append("list %s is %r and %r at one commit: %s; %s" % (key, found, elements, told(other), told(op)))
            there = set(elements)
            for number, element in acknowledged.get(key, ()):
                if number <= commit and element not in there:
                    wrong.append("list %s lacks %d of commit %d at commit %d: %s" % (key, element, number, commit, told(op)))
                if number > commit and element in there:
                    wrong.append("list %s has %d of commit %d at commit %d: %s" % (key, element, number, commit, told(op)))
    return wrong
