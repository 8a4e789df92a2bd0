"""Transactions over lists, judged as Elle does it (Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations", 2020).

Each append has an element of its own, so a read tells which transactions came before it, in which order:

    ww    the transaction of an element -> that of the next one of the same list
    wr    the transaction of the last element that was read -> the reader
    rw    the reader -> the transaction of the element after that
    rt    it ended -> it began later, through a chain of ends; `po`: the same client's one before

The order of a list is that of its longest read, of which each other read has to be a beginning. What has no outcome counts as done if any of its elements was read. A cycle is an anomaly:
G0 (ww), G1c (ww, wr), G-single (one rw), G2 (several); with `-realtime` at the end where rt or po is needed for it. Beside cycles: G1a (an element of a transaction that was refused), G1b (a list between two appends of one
transaction), part of a transaction, an element twice, an element of nobody, lists that are no beginnings of each other.
"""
from .history import OK, REFUSED, UNKNOWN

ANOMALIES = (("G0", ("ww",)), ("G1c", ("ww", "wr")), ("G-single", ("ww", "wr", "rw")))


def check(ops, final):
    """`final`: the lists at the end. What is wrong, in sentences, and how many transactions were judged."""
    txns = [op for op in ops if op.kind == "txn"]
    writer, wrong = {}, []
    for op in txns:
        for key, element in op.appends or ():
            writer[(key, element)] = op
    order, found = orders(txns, final)
    wrong += found
    wrong += elements(txns, final, writer, order)
    nodes = [op for op in txns if is_done(op, order)]
    edges = dependencies(nodes, order, writer)
    wrong += cycles(nodes, edges)
    return wrong, len(nodes)


def is_done(op, order):
    """Whether it is part of the history: acknowledged, or seen. What was only read was read, whatever came of the appends."""
    if op.outcome == OK or op.reads is not None:
        return True
    return any(element in order.get(key, ()) for key, element in op.appends or ())


def observed(txns, final):
    for op in txns:
        for key, read in (op.reads or {}).items():
            yield key, read, op
    for key, read in final.items():
        yield key, read, None


def at(op):
    return "at the end" if op is None else "client %d at node %d, %.3f to %.3f, commit %s" % (op.client, op.node, op.start, op.end, op.commit)


def orders(txns, final):
    """The order of each list, and reads that do not fit to it."""
    order, wrong = {}, []
    for key, read, _ in observed(txns, final):
        if len(read) > len(order.get(key, ())):
            order[key] = read
    for key, read, op in observed(txns, final):
        if order.get(key, [])[:len(read)] != read:
            wrong.append("list %s: %r (%s) is no beginning of %r" % (key, read, at(op), order[key]))
    return order, wrong


def elements(txns, final, writer, order):
    wrong = []
    for key, read in order.items():
        if len(set(read)) != len(read):
            wrong.append("list %s has an element twice: %r" % (key, read))
        for element in read:
            op = writer.get((key, element))
            if op is None:
                wrong.append("list %s has %d, which nobody appended" % (key, element))
            elif op.outcome == REFUSED:
                wrong.append("G1a: list %s has %d, which was refused (%s, %s)" % (key, element, at(op), op.detail))
    for key, read, reader in observed(txns, final):
        op = writer.get((key, read[-1])) if read else None
        if op is not None and op is not reader:
            last = [element for of_list, element in op.appends if of_list == key][-1]
            if last != read[-1]:
                wrong.append("G1b: list %s ends with %d, and %d of the same transaction is missing: %s" % (key, read[-1], last, at(reader)))
    for op in txns:
        missing = [(key, element) for key, element in op.appends or () if element not in final.get(key, ())]
        if missing and op.outcome == OK:
            wrong.append("acknowledged and lost: %r (%s)" % (missing, at(op)))
        elif missing and op.outcome == UNKNOWN and len(missing) < len(op.appends):
            wrong.append("part of a transaction: %r of %r is missing (%s)" % (missing, op.appends, at(op)))
    return wrong


def dependencies(nodes, order, writer):
    """Edges by kind: kind -> number of a node -> numbers of others. Moments of time are nodes, too, behind the transactions."""
    number = {id(op): at for at, op in enumerate(nodes)}
    edges = {kind: {} for kind in ("ww", "wr", "rw", "rt")}

    def add(kind, source, target):
        if source != target:
            edges[kind].setdefault(source, set()).add(target)

    def of(key, element):
        return number.get(id(writer.get((key, element))))

    for key, read in order.items():
        for one, next_one in zip(read, read[1:]):
            if of(key, one) is not None and of(key, next_one) is not None:
                add("ww", of(key, one), of(key, next_one))
    for me, op in enumerate(nodes):
        for key, read in (op.reads or {}).items():
            if read and of(key, read[-1]) is not None:
                add("wr", of(key, read[-1]), me)
            following = order.get(key, [])[len(read):len(read) + 1]
            if following and of(key, following[0]) is not None:
                add("rw", me, of(key, following[0]))
    in_real_time(nodes, add)
    in_sessions(nodes, add)
    return edges


def in_real_time(nodes, add):
    """A chain of ends: each end leads to the next one, and the last end before a start to what starts there."""
    events = [(op.end, 1, at) for at, op in enumerate(nodes) if op.outcome == OK]
    events += [(op.start, 0, at) for at, op in enumerate(nodes) if op.is_fresh or op.appends]
    moment, last = len(nodes), None
    for _, is_end, at in sorted(events):
        if is_end:
            add("rt", at, moment)
            if last is not None:
                add("rt", last, moment)
            last, moment = moment, moment + 1
        elif last is not None:
            add("rt", last, at)


def in_sessions(nodes, add):
    before = {}
    for at in sorted(range(len(nodes)), key=lambda at: nodes[at].start):
        op = nodes[at]
        if op.outcome == OK and (op.is_session or op.is_fresh or op.appends):
            if op.client in before:
                add("rt", before[op.client], at)
            before[op.client] = at


def components(starts, successors):
    """Tarjan's strongly connected components of more than one node, without recursion."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for start in starts:
        if start in index:
            continue
        work = [(start, iter(successors(start)))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(successors(target))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set()
                    while node not in component:
                        top = stack.pop()
                        on_stack.discard(top)
                        component.add(top)
                    if len(component) > 1:
                        found.append(component)
    return found


def path(source, target, successors, within):
    """The shortest path within a component, or None."""
    before, wave = {source: None}, [source]
    while wave:
        following = []
        for node in wave:
            for next_node in successors(node):
                if next_node in within and next_node not in before:
                    before[next_node] = node
                    if next_node == target:
                        steps = [target]
                        while before[steps[-1]] is not None:
                            steps.append(before[steps[-1]])
                        return steps[::-1]
                    following.append(next_node)
        wave = following
    return None


def cycles(nodes, edges):
    """The first kind of cycle that there is in each component, and an example of it."""
    wrong = []
    for suffix, time in (("", ()), ("-realtime", ("rt",))):
        for name, kinds in ANOMALIES:
            kinds = kinds + time
            plain = [kind for kind in kinds if kind != "rw"]

            def over(wanted):
                return lambda node: [to for kind in wanted for to in edges[kind].get(node, ())]

            sources = {source for kind in kinds for source in edges[kind]}
            for component in components(sources, over(kinds)):
                label, example = name, None
                if "rw" in kinds:
                    label, example = "G2", None
                    for source in component:
                        for target in edges["rw"].get(source, ()):
                            if target in component and example is None:
                                back = path(target, source, over(plain), component)
                                if back:
                                    label, example = "G-single", [source] + back
                if example is None:
                    start = next(iter(component))
                    step = next(to for to in over(kinds)(start) if to in component)
                    example = [start] + (path(step, start, over(kinds), component) or [])
                steps = ["%s %r + %r" % (at(nodes[node]), nodes[node].reads, nodes[node].appends) for node in example if node < len(nodes)]
                wrong.append("%s%s: %s" % (label, suffix, " -> ".join(steps)))
            if wrong:
                # What needs fewer kinds of edges is told alone.
                return wrong
    return wrong
