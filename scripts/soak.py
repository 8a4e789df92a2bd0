#!/usr/bin/env python3
"""Serves a database, lets many clients ask heavy queries, and watches the server's memory.

usage: soak.py ORRERY DB [--memory 1G] [--seconds 60] [--clients 16]

Counted are the requests that end within the time; what runs then is given up. An answer that begins
and is broken off (by its time or memory) counts as IncompleteRead, a connection without any answer
(RemoteDisconnected) is a fault, as is a server that ends.

Sampled is RssAnon of /proc/PID/status: memory of the process without the mapped pages of its
files, which are the system's cache. Exit status 1 if it ever was above --memory plus 10 %, or after a fault.
"""
import argparse
import collections
import http.client
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

BSBM = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/"
QUERIES = {
    "sort": "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?o ?s ?p",
    "distinct": "SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?s ?o { ?s ?p ?o } }",
    "concat": "SELECT ?s (COUNT(*) AS ?n) (GROUP_CONCAT(STR(?o)) AS ?t) { ?s ?p ?o } GROUP BY ?s",
    "join, sort": f"SELECT ?a ?b {{ ?a <{BSBM}productFeature> ?f . ?b <{BSBM}productFeature> ?f }} ORDER BY ?a ?b LIMIT 100000",
    "optional": f"SELECT (COUNT(*) AS ?n) {{ ?a <{BSBM}productFeature> ?f OPTIONAL {{ ?a <{BSBM}productPropertyTextual4> ?x }} OPTIONAL {{ ?b <{BSBM}productFeature> ?f . ?b <{BSBM}productPropertyTextual4> ?x }} }}",
    "group": "SELECT ?o (COUNT(?s) AS ?n) { ?s ?p ?o } GROUP BY ?o ORDER BY DESC(?n) LIMIT 10",
    "computed": "SELECT (COUNT(DISTINCT CONCAT(STR(?s),STR(?o))) AS ?n) { ?s ?p ?o }",
    "path": "SELECT (COUNT(*) AS ?n) { ?s (<e:p>|!<e:p>)* ?o }",
    "rows": "SELECT * { ?s ?p ?o . ?s ?q ?r } LIMIT 300000",
    "construct": "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }",
}
FAULTS = {"RemoteDisconnected", "ConnectionResetError", "URLError", "TimeoutError"}
UNITS = {"M": 1 << 20, "G": 1 << 30}


def anonymous_bytes(process):
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    raise SystemExit("the server has ended")


def ask_until(end, address, seed, answers):
    chance = random.Random(seed)
    while time.time() < end:
        name, query = chance.choice(list(QUERIES.items()))
        url = f"http://{address}/sparql?timeout=20&query={urllib.parse.quote(query)}"
        try:
            with urllib.request.urlopen(url, timeout=40) as answer:
                while answer.read(1 << 20) and time.time() < end:
                    pass
            status = 200
        except urllib.error.HTTPError as error:
            status = error.code
            error.close()
        except (OSError, http.client.HTTPException) as error:  # Among others: an answer that was broken off.
            status = type(error).__name__
        # Later the server is stopping, and ends what still runs.
        if time.time() < end:
            answers[name, status] += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("orrery")
    parser.add_argument("db")
    parser.add_argument("--memory", default="1G")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    limit = int(options.memory[:-1]) * UNITS[options.memory[-1]]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [options.orrery, "serve", "--db", options.db, "--memory", options.memory, "--listen", address]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as server:
        try:
            for _ in range(100):
                try:
                    urllib.request.urlopen(f"http://{address}/health", timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            end = time.time() + options.seconds
            answers = collections.Counter()
            clients = [
                threading.Thread(target=ask_until, args=(end, address, seed, answers), daemon=True)
                for seed in range(options.clients)
            ]
            for client in clients:
                client.start()
            samples = []
            while time.time() < end:
                samples.append(anonymous_bytes(server.pid))
                time.sleep(0.05)
        finally:
            server.terminate()
    peak = max(samples)
    print(f"{options.clients} clients, {options.seconds:.0f} s, --memory {options.memory}")
    for (name, status), count in sorted(answers.items(), key=str):
        print(f"  {name}: {count} x {status}")
    median = sorted(samples)[len(samples) // 2]
    print(f"RssAnon: peak {peak >> 20} MiB, median {median >> 20} MiB, limit {int(limit * 1.1) >> 20} MiB")
    faults = sum(count for (_, status), count in answers.items() if status in FAULTS)
    sys.exit(peak > limit * 1.1 or faults > 0)


if __name__ == "__main__":
    main()
