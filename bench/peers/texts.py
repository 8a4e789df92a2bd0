#!/usr/bin/env python3
"""Searches in texts and scans of texts, of ours beside OpenLink Virtuoso with its free-text index (Debian's, by virtuoso.sh):

  texts.py ORRERY DIR [--products 8500] [--rounds 15] [--pairs 20]

ORRERY is the program, DIR a folder for data and databases, which are made where they are missing and stay there. The same BSBM data are in both stores, in ours twice: with an
index of texts and without one. All queries are asked of both in turns over HTTP, CSV, one client; the medians are printed as a table, and how many answers there were.

  two words   the best 20 by score of the literals with both words, and with one of them; pairs of words that stand together in some literal, each of the stores warmed with other pairs
  scans       REGEX and CONTAINS over the literals of all predicates or of one, ours without an index, so that nothing but the scan helps
"""
import argparse
import csv
import http.client
import io
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
GRAPH = "http://example.org/bsbm"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
COMMENT = "<http://www.w3.org/2000/01/rdf-schema#comment>"
PORTS = {"with index": 27878, "without": 27879, "virtuoso": 28890}
SQL_PORT = 28111


def run(*command, **more):
    subprocess.run(command, check=True, **more)


def isql(statement):
    command = ["isql-vt", f"127.0.0.1:{SQL_PORT}", "dba", "dba", "ERRORS=STDOUT", "VERBOSE=OFF", "PROMPT=OFF", f"exec={statement}"]
    return subprocess.run(command, capture_output=True, text=True)


class Client:
    def __init__(self, name):
        self.name = name
        self.path = "/sparql" + ("?default-graph-uri=" + urllib.parse.quote(GRAPH) if name == "virtuoso" else "")
        self.connection = http.client.HTTPConnection("127.0.0.1", PORTS[name], timeout=300)

    def ask(self, query):
        """Milliseconds, and the rows."""
        body = urllib.parse.urlencode({"query": query})
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/csv"}
        start = time.perf_counter()
        self.connection.request("POST", self.path, body, headers)
        answer = self.connection.getresponse()
        text = answer.read().decode()
        taken = (time.perf_counter() - start) * 1e3
        if answer.status != 200:
            sys.exit(f"texts.py: {self.name}: {text[:1000]}")
        return taken, list(csv.reader(io.StringIO(text)))[1:]


def start(command, log, name, is_up):
    server = subprocess.Popen(command, stdout=log, stderr=log)
    for _ in range(600):
        if is_up():
            return server
        if server.poll() is not None:
            break
        time.sleep(0.2)
    server.kill()
    sys.exit(f"texts.py: {name} did not come up")


def answers(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/")
        connection.getresponse().read()
        return True
    except OSError:
        return False


def prepare(orrery, folder, products):
    data, plain, indexed, virtuoso = (os.path.join(folder, name) for name in ("bsbm.nt", "plain.db", "grams.db", "virtuoso"))
    if not os.path.exists(data):
        run(orrery, "bench", "bsbm", "generate", "--products", str(products), "-o", data)
    if not os.path.exists(plain):
        run(orrery, "load", "--db", plain, data)
    if not os.path.exists(indexed):
        shutil.copytree(plain, indexed + ".new")
        run(orrery, "text", "create", "--db", indexed + ".new", "--grams")
        os.rename(indexed + ".new", indexed)
    script = os.path.join(HERE, "virtuoso.sh")
    environment = dict(os.environ, PORT_HTTP=str(PORTS["virtuoso"]), PORT_SQL=str(SQL_PORT))
    if not os.path.exists(os.path.join(virtuoso, "virtuoso.db")):
        run(script, "setup")
        run(script, "load", virtuoso, data, env=environment)
    return data, plain, indexed, virtuoso, script, environment


def with_free_text(folder):
    """Virtuoso's own index of all literals, made once."""
    done = os.path.join(folder, "free-text-index")
    if os.path.exists(done):
        return
    begun = time.perf_counter()
    for statement in (
        "DB.DBA.RDF_OBJ_FT_RULE_ADD (null, null, 'All');",
        "DB.DBA.RDF_OBJ_FT_RECOVER ();",
        "DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ ();",
        "checkpoint;",
    ):
        done_so = isql(statement)
        if done_so.returncode != 0 or "*** Error" in done_so.stdout:
            sys.exit(f"{statement} failed: {done_so.stdout or done_so.stderr}")
    print(f"Virtuoso's free-text index: {time.perf_counter() - begun:.1f} s", file=sys.stderr)
    open(done, "w").close()


def word_pairs(data, count):
    """Two words of a literal each, of literals here and there in the file."""
    chosen = random.Random(17)
    size = os.path.getsize(data)
    pairs = set()
    with open(data, "rb") as lines:
        while len(pairs) < count:
            lines.seek(chosen.randrange(size))
            lines.readline()
            found = re.search(rb'> "([a-z ]+)"(@en)? \.$', lines.readline().strip())
            words = sorted(set(found.group(1).decode().split())) if found else []
            words = [word for word in words if len(word) > 3]
            if len(words) >= 2:
                pairs.add(tuple(chosen.sample(words, 2)))
    return sorted(pairs)


def in_turns(clients, queries, rounds):
    """Medians of milliseconds over all queries of a name, by client; and the rows of the last."""
    times = {client.name: [] for client in clients}
    rows = {}
    for turn in range(rounds + 1):
        for client in clients:
            taken, rows[client.name] = client.ask(queries[client.name])
            if turn > 0:
                times[client.name].append(taken)
    return {name: statistics.median(all_times) for name, all_times in times.items()}, rows


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("orrery")
    arguments.add_argument("dir")
    arguments.add_argument("--products", type=int, default=8500)
    arguments.add_argument("--rounds", type=int, default=15)
    arguments.add_argument("--pairs", type=int, default=20)
    asked = arguments.parse_args()
    os.makedirs(asked.dir, exist_ok=True)
    data, plain, indexed, virtuoso, script, environment = prepare(asked.orrery, asked.dir, asked.products)
    pairs = word_pairs(data, 2 * asked.pairs)
    warming, pairs = pairs[1::2], pairs[::2]
    servers = []
    with open(os.path.join(asked.dir, "servers.log"), "w") as log:
        try:
            for name, database in (("with index", indexed), ("without", plain)):
                command = [asked.orrery, "serve", "--db", database, "--listen", f"127.0.0.1:{PORTS[name]}"]
                servers.append(start(command, log, name, lambda port=PORTS[name]: answers(port)))
            command = [script, "serve", virtuoso]
            servers.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
            for _ in range(600):
                if isql("status();").returncode == 0 and answers(PORTS["virtuoso"]):
                    break
                time.sleep(0.2)
            with_free_text(virtuoso)
            measure(asked, pairs, warming)
        finally:
            for server in servers:
                server.terminate()
            for server in servers:
                server.wait()


def measure(asked, pairs, warming):
    indexed, plain, peer = (Client(name) for name in PORTS)
    _, rows = plain.ask("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
    print(f"{int(rows[0][0]):,} triples\n")
    print("| what | answers, ours and Virtuoso's | Orrery, ms | Virtuoso, ms | factor |")
    print("| --- | ---: | ---: | ---: | ---: |")

    def line(what, found, ours, theirs):
        print(f"| {what} | {found} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.1f} |")

    def search(pair, operator):
        one, other = pair
        ours = (
            f'SELECT ?s ?l ?score {{ SERVICE text:search {{ [] text:query "{one} {operator} {other}" ; text:entity ?s ; text:literal ?l ; '
            "text:score ?score ; text:limit 20 } } ORDER BY DESC(?score)"
        )
        theirs = (
            f"SELECT ?s ?l ?rank {{ ?s ?p ?l . ?l <bif:contains> \"'{one}' {operator} '{other}'\" OPTION (score ?rank) }} "
            "ORDER BY DESC(?rank) LIMIT 20"
        )
        return {indexed.name: ours, peer.name: theirs}

    nothing = "ASK {}"
    times, _ = in_turns([indexed, peer], {indexed.name: nothing, peer.name: nothing}, 10 * asked.rounds)
    line("a request that asks nothing", "", times[indexed.name], times[peer.name])
    for operator in ("AND", "OR"):
        for pair in warming:
            in_turns([indexed, peer], search(pair, operator), 1)
        medians, found = [], [0, 0]
        for pair in pairs:
            times, rows = in_turns([indexed, peer], search(pair, operator), asked.rounds)
            medians.append((times[indexed.name], times[peer.name]))
            found = [found[0] + len(rows[indexed.name]), found[1] + len(rows[peer.name])]
        ours, theirs = (statistics.median(times) for times in zip(*medians))
        line(f"two words, {operator}, best 20: median of {len(pairs)} pairs", f"{found[0]:,}, {found[1]:,}", ours, theirs)

    def scans(filter_of, where):
        return f"SELECT (COUNT(*) AS ?n) {{ {where} FILTER({filter_of}) }}"

    everything, labels, comments = "?s ?p ?l", f"?s {LABEL} ?l", f"?s {COMMENT} ?l"
    for what, query in (
        ('REGEX(?l, "ing.*ed"), all predicates', scans('REGEX(?l, "ing.*ed")', everything)),
        ('CONTAINS(STR(?l), "zzling"), all literals', scans('isLiteral(?l) && CONTAINS(STR(?l), "zzling")', everything)),
        ('REGEX(?l, "ing.*ed"), rdfs:comment', scans('REGEX(?l, "ing.*ed")', comments)),
        ('CONTAINS(?l, "zzling"), rdfs:comment', scans('CONTAINS(?l, "zzling")', comments)),
        ('REGEX(?l, "ing.*ed"), rdfs:label', scans('REGEX(?l, "ing.*ed")', labels)),
        ('CONTAINS(?l, "zzling"), rdfs:label', scans('CONTAINS(?l, "zzling")', labels)),
    ):
        times, rows = in_turns([plain, peer], {plain.name: query, peer.name: query}, max(3, asked.rounds // 3))
        found = ", ".join(f"{int(rows[client.name][0][0]):,}" for client in (plain, peer))
        line(what, found, times[plain.name], times[peer.name])


if __name__ == "__main__":
    main()
