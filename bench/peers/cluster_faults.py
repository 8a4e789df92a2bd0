#!/usr/bin/env python3
"""A cluster of three servers on this machine under faults, and clients whose histories are judged.

  cluster_faults.py ORRERY DIR [--faults 60] [--seed S] [--clients 6] [--sql-clients 4] [--relaxed] [--pause 0.03] [--only FAULT ...]
  cluster_faults.py --judge DIR          judges the history of a run once more
  cluster_faults.py --self-test          histories that are wrong, which the checkers have to find

ORRERY is the program; DIR takes the directories of the nodes, their logs and the history, and is made. Faults and what clients do are chosen by the seed, which is printed; what comes of them depends
on time. What is judged is said in cluster_faults/registers.py, lists.py, commits.py and sql.py. With --relaxed clients make changes with durability=relaxed, too, which may be lost: then a number of a commit
says nothing of what is in it, and what goes by these numbers is not judged. Beside that all nodes have to have the same at the end, all that was acknowledged and nothing that was refused,
and no process may end that was not killed. Ends with 1 if anything is wrong.
"""
import argparse
import csv
import io
import json
import os
import random
import re
import resource
import sys
import time

from cluster_faults import commits, lists, registers, selftest, sql
from cluster_faults.clients import Caller, Client, Keys, big_text, numbers
from cluster_faults.history import OK, REFUSED, UNKNOWN, History, load
from cluster_faults.nemesis import Nemesis
from cluster_faults.nodes import NODES, Cluster, until
from cluster_faults.proxy import Network

HEAL_TIME_S = 120


def tell(line):
    print(line, flush=True)


def write_at_all(cluster, history):
    """Whether each node takes a change, and has it."""
    caller = Caller(cluster.server_ports)
    for node in NODES:
        answer = caller.send(node, update="INSERT DATA { <http://e/healed> <http://e/at> %d }" % time.monotonic_ns(), timeout=10)
        if answer.outcome != OK:
            return False
        history.saw(answer.commit)
    return True


def final_state(cluster, history, node):
    """All triples of a node, at a commit that has all that anybody saw."""
    def read():
        answer = Caller(cluster.server_ports).send(node, query="SELECT ?s ?p ?o { ?s ?p ?o }", headers={"Orrery-Min-Commit": str(history.newest)}, timeout=30)
        return answer if answer.outcome == OK else None
    csv.field_size_limit(1 << 20)
    answer = until(read, "all triples of node %d" % node, HEAL_TIME_S)
    return sorted((s.rsplit("/", 1)[1], p.rsplit("/", 1)[1], o) for s, p, o in list(csv.reader(io.StringIO(answer.body)))[1:])


def run(arguments):
    seed = arguments.seed if arguments.seed is not None else int.from_bytes(os.urandom(4), "big")
    tell("seed %d" % seed)
    history, network = History(), Network(NODES)
    cluster = Cluster(arguments.orrery, arguments.directory, network)
    if not cluster.clock_library:
        tell("clocks do not jump: there is no C compiler (cc) for the library that lets them")
    keys = Keys("r", 4), Keys("l", 5)
    clients = [Client(number, seed, cluster.server_ports, history, *keys, arguments.pause) for number in range(arguments.clients + 1)]
    if arguments.relaxed:
        for client in clients:
            client.acts.append((client.relaxed, 15))
    sql_clients = [sql.SqlClient(number, seed, cluster.sql_ports, history, arguments.pause) for number in range(arguments.sql_clients)]
    nemesis = Nemesis(cluster, network, clients.pop(), random.Random(seed), tell)
    tell(", ".join(arguments.only) if arguments.only else "all kinds of faults")
    wrong, finals, begun = [], {}, time.monotonic()
    try:
        until(lambda: write_at_all(cluster, history), "the first changes", HEAL_TIME_S)
        until(lambda: sql.make_table(cluster.sql_ports), "the first table", HEAL_TIME_S)
        for client in clients + sql_clients:
            client.start()
        for _ in range(arguments.faults):
            nemesis.one(arguments.only)
        try:
            cluster.look_after()
            healed = time.monotonic()
            until(lambda: write_at_all(cluster, history), "all nodes take changes again", HEAL_TIME_S)
            tell("all nodes take changes %.1f s after the last fault" % (time.monotonic() - healed))
            for client in clients + sql_clients:
                client.is_over = True
            for client in clients + sql_clients:
                client.join()
            until(lambda: write_at_all(cluster, history), "all nodes take changes at the end", HEAL_TIME_S)
            finals = {node: final_state(cluster, history, node) for node in NODES}
            tables = {node: until(lambda: sql.rows_at(cluster.sql_ports[node]), "the table of node %d" % node, HEAL_TIME_S) for node in NODES}
            wrong += sql.check(sql_clients, tables)
        except TimeoutError as error:
            wrong.append(str(error))
        spent = cluster.processor_seconds()
    finally:
        for client in clients + sql_clients:
            client.is_over = True
        cluster.stop()
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    history.save(os.path.join(arguments.directory, "history"))
    with open(os.path.join(arguments.directory, "finals"), "w") as file:
        json.dump(finals, file)
    wrong += cluster.ended_by_themselves
    wrong += ["client %d failed: %s" % (client.number, client.failure) for client in clients + sql_clients if client.failure]
    tell(sql.told(sql_clients))
    seconds = time.monotonic() - begun
    tell("%d faults in %.0f s: %s" % (arguments.faults, seconds, ", ".join("%s %d" % item for item in sorted(nemesis.counts.items()))))
    tell("processors' time: %.0f s of the servers (the last ones: %.0f s), %.0f s of clients and proxies; %d connections, %.1f MB between nodes, %d of unknown processes"
         % (children.ru_utime + children.ru_stime, spent, own.ru_utime + own.ru_stime, network.counts["connections"], network.counts["bytes"] / 1e6, network.counts["unknown"]))
    return wrong + logs(arguments.directory) + judge(history.ops, finals, arguments.relaxed)


def logs(directory):
    """Lines of the servers' logs that nothing excuses."""
    wrong = []
    for node in NODES:
        with open(os.path.join(directory, "log-%d" % node), errors="replace") as log:
            for line in log:
                if re.search(r"panicked|damaged|internal error|bug", line, re.IGNORECASE):
                    wrong.append("log of node %d: %s" % (node, line.strip()))
    return wrong


def judge(ops, finals, has_relaxed=False):
    """What is wrong with a history, and with the nodes' states at its end; with relaxed commits in it, only with these."""
    outcomes = {outcome: sum(1 for op in ops if op.outcome == outcome) for outcome in (OK, REFUSED, UNKNOWN)}
    wrong = []
    states = list(finals.values())
    for node, state in finals.items():
        if state != states[0]:
            other = set(map(tuple, state)) ^ set(map(tuple, states[0]))
            wrong.append("node %s and node %s differ: %s" % (node, next(iter(finals)), [(s, p, o[:100]) for s, p, o in sorted(other)[:10]]))
        wrong += final_values(ops, state, has_relaxed)
    if has_relaxed:
        tell("%d operations: %d done, %d refused, %d unknown; judged: the states of %d nodes: %s"
             % (len(ops), outcomes[OK], outcomes[REFUSED], outcomes[UNKNOWN], len(states), "nothing wrong" if not wrong else "%d things wrong" % len(wrong)))
        return wrong
    final = {s: numbers(o) for s, p, o in states[0] if p == "list"} if states else None
    found, keys, of_registers = registers.check(ops)
    wrong += found
    found, answers = commits.check(ops)
    wrong += found
    txns = 0
    if final is not None:
        found, txns = lists.check(ops, final)
        wrong += found
    tell("%d operations: %d done, %d refused, %d unknown" % (len(ops), outcomes[OK], outcomes[REFUSED], outcomes[UNKNOWN]))
    tell("judged: %d registers with %d operations, %d transactions of %d lists, %d answers by their commits, the states of %d nodes: %s"
         % (keys, of_registers, txns, len(final or ()), answers, len(states), "nothing wrong" if not wrong else "%d things wrong" % len(wrong)))
    return wrong


def final_values(ops, state, has_relaxed=False):
    """Registers and large literals at the end; lists are judged with their history."""
    wrong = []
    there = {(s, p) for s, p, _ in state}
    values = {(s, o) for s, p, o in state if p == "value"}
    if len(there) != len(state) - sum(1 for s, _, _ in state if s == "healed") + ("healed" in {s for s, _, _ in state}):
        wrong.append("a register or a list has two values at the end")
    for op in ops:
        if op.kind == "big":
            found = [o for s, p, o in state if s == "big%d" % op.value]
            if found and (found != [big_text(op.value)] or op.outcome == REFUSED) or not found and op.outcome == OK:
                wrong.append("a large literal, %s, is %s at the end" % (op, "there" if found else "lost"))
        elif op.kind in ("write", "cas") and (op.key, str(op.value)) in values:
            if op.outcome == REFUSED or op.kind == "cas" and op.outcome == OK and not op.swapped:
                wrong.append("register %s is %d at the end, which was refused" % (op.key, op.value))
    if has_relaxed:
        return wrong
    # The last acknowledged change of each register, or one of unknown outcome that came later.
    last = {}
    for op in filter(commits.changed, ops):
        if op.kind in ("write", "cas") and op.commit > last.get(op.key, (0, 0))[0]:
            last[op.key] = (op.commit, op.value)
    unknown = {(op.key, str(op.value)) for op in ops if op.outcome == UNKNOWN and op.kind in ("write", "cas")}
    for key, (commit, value) in last.items():
        now = {o for s, o in values if s == key}
        if now != {str(value)} and not any((key, o) in unknown for o in now):
            wrong.append("register %s is %s at the end, not %d of commit %d" % (key, now, value, commit))
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("orrery", nargs="?")
    parser.add_argument("directory", nargs="?")
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--sql-clients", type=int, default=4)
    parser.add_argument("--relaxed", action="store_true", help="changes with durability=relaxed, too")
    parser.add_argument("--pause", type=float, default=0.03, help="seconds that a client waits between requests, in the mean")
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="kinds of faults, such as ask-cut-off-leader")
    parser.add_argument("--judge", metavar="DIR")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(0 if selftest.run() else 1)
    if arguments.judge:
        csv.field_size_limit(1 << 20)
        with open(os.path.join(arguments.judge, "finals")) as file:
            finals = json.load(file)
        wrong = logs(arguments.judge) + judge(load(os.path.join(arguments.judge, "history")), finals)
    elif arguments.directory:
        wrong = run(arguments)
    else:
        parser.error("the program and a directory")
    for line in wrong:
        tell("WRONG: %s" % line[:2000])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
