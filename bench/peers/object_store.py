#!/usr/bin/env python3
"""A database in an object store beside the same one in a directory: opened cold and warm, and the explore mix with a cache that has room and with a tenth.

  object_store.py ORRERY DB DIR --bucket s3://bucket/prefix [--mixes 100] [--rounds 5] [--delay 20]

ORRERY is the program, DB a directory with BSBM data, --bucket the same data in a store (`orrery backup --db DB --to BACKUP`, then `orrery restore --from BACKUP --db s3://bucket/prefix`), which is
found by the environment's AWS_ variables as always. DIR takes caches, which are removed. Nothing is written to either database.

With --delay a proxy stands before the store, and each request waits so many milliseconds before it goes on, as across a network; it also counts requests and bytes. It needs AWS_ENDPOINT to be
http://HOST:PORT.

  one query   a process opens the database and answers one query of the explore mix, another one in each round: in the directory, in the store with no cache, and once more with what that left there
  the mix     `orrery bench bsbm explore` at a server of each: in the directory before and after the others, in the store with a cache that has room, and with one for a tenth of the database
"""
import argparse
import csv
import http.client
import io
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

PREFIXES = "PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
PORT = 27901
LOG = "servers.log"


class Proxy:
    """Passes connections on, and holds each request up."""

    def __init__(self, store, delay_ms):
        self.store, self.delay = store, delay_ms / 1e3
        self.requests = self.bytes = 0
        self.counted = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.endpoint = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.pass_on, args=(client,), daemon=True).start()

    def pass_on(self, client):
        try:
            store = socket.create_connection(self.store)
        except OSError:
            client.close()
            return
        for side in (client, store):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # What comes from the client after an answer, or at the beginning, is a new request.
        state = {"is_new": True}

        def requests():
            while data := receive(client):
                if state["is_new"]:
                    state["is_new"] = False
                    with self.counted:
                        self.requests += 1
                    time.sleep(self.delay)
                store.sendall(data)
            end(store)

        def answers():
            while data := receive(store):
                state["is_new"] = True
                with self.counted:
                    self.bytes += len(data)
                client.sendall(data)
            end(client)

        ways = [threading.Thread(target=quietly, args=(way,), daemon=True) for way in (requests, answers)]
        for way in ways:
            way.start()
        for way in ways:
            way.join()
        client.close()
        store.close()

    def counts(self):
        with self.counted:
            return self.requests, self.bytes


def receive(side):
    return side.recv(1 << 18)


def end(side):
    side.shutdown(socket.SHUT_WR)


def quietly(way):
    try:
        way()
    except OSError:
        # One of the two has left.
        pass


class Store:
    """The addresses and the environment of commands that reach the store."""

    def __init__(self, asked):
        self.bucket = asked.bucket
        self.environment = dict(os.environ)
        self.proxy = None
        if asked.delay is not None:
            endpoint = os.environ.get("AWS_ENDPOINT") or os.environ.get("AWS_ENDPOINT_URL")
            parsed = urllib.parse.urlparse(endpoint or "")
            if parsed.scheme != "http" or not parsed.port:
                sys.exit("object_store.py: --delay needs AWS_ENDPOINT=http://HOST:PORT")
            self.proxy = Proxy((parsed.hostname, parsed.port), asked.delay)
            self.environment.pop("AWS_ENDPOINT_URL", None)
            self.environment.update(AWS_ENDPOINT=self.proxy.endpoint, AWS_ALLOW_HTTP="true")

    def counts(self):
        return self.proxy.counts() if self.proxy else (0, 0)


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"object_store.py: {' '.join(command)}: {done.stderr}")
    return done.stdout


def queries(asked):
    """Query 1 of the explore mix, with types and features of products that are there."""
    find = (
        PREFIXES + "SELECT ?type ?one ?other { { SELECT ?product (MIN(?f) AS ?one) (MAX(?f) AS ?other) { ?product bsbm:productFeature ?f } GROUP BY ?product } "
        "?product a ?type . ?type a bsbm:ProductType FILTER(?one != ?other) } LIMIT 5000"
    )
    rows = list(csv.reader(io.StringIO(run(asked.orrery, "query", "--db", asked.db, "--format", "csv", find))))[1:]
    if not rows:
        sys.exit("object_store.py: there are no products of BSBM in the database")
    step = max(1, len(rows) // asked.rounds)
    for kind, one, other in rows[::step][: asked.rounds]:
        yield (
            PREFIXES + f"SELECT DISTINCT ?product ?label {{ ?product rdfs:label ?label ; a <{kind}> ; bsbm:productFeature <{one}> , <{other}> ; "
            "bsbm:productPropertyNumeric1 ?value FILTER(?value > 100) } ORDER BY ?label LIMIT 10"
        )


def one_query(asked, store):
    times = {"directory": [], "cold": [], "warm": []}
    asked_for = {"cold": [], "warm": []}
    cache = os.path.join(asked.dir, "cache-of-queries")

    def ask(what, database, query, *options):
        before = store.counts()
        start = time.perf_counter()
        answer = run(asked.orrery, "query", "--db", database, "--format", "csv", *options, query, env=store.environment)
        times[what].append((time.perf_counter() - start) * 1e3)
        if what in asked_for:
            asked_for[what].append([now - then for now, then in zip(store.counts(), before)])
        return answer

    for query in queries(asked):
        shutil.rmtree(cache, ignore_errors=True)
        # Once before it counts: the directory's blocks are in the system's file cache then.
        run(asked.orrery, "query", "--db", asked.db, query)
        answers = [
            ask("directory", asked.db, query),
            ask("cold", store.bucket, query, "--cache", cache),
            ask("warm", store.bucket, query, "--cache", cache),
        ]
        if len(set(answers)) != 1:
            sys.exit(f"object_store.py: the store answers otherwise than the directory: {answers}")
    shutil.rmtree(cache, ignore_errors=True)
    print("| one query by a process of its own | median, ms | slowest, ms | requests | KiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for what, name in (("directory", "in the directory"), ("cold", "in the store, nothing in the cache"), ("warm", "in the store, from the cache")):
        requests, kib = "", ""
        if store.proxy and what in asked_for:
            requests, kib = (statistics.median(column) for column in zip(*asked_for[what]))
            requests, kib = f"{requests:.0f}", f"{kib / 1024:,.0f}"
        print(f"| {name} | {statistics.median(times[what]):.0f} | {max(times[what]):.0f} | {requests} | {kib} |")
    print()


def get(path):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
    connection.request("GET", path)
    return connection.getresponse().read().decode()


def figures(names):
    """Sums of families of `/metrics`."""
    sums = dict.fromkeys(names, 0.0)
    for line in get("/metrics").splitlines():
        name = line.split("{")[0].split(" ")[0]
        if name in sums:
            sums[name] += float(line.rsplit(" ", 1)[1])
    return sums


class Server:
    def __init__(self, asked, database, environment, *options):
        command = [asked.orrery, "serve", "--read-only", "--db", database, "--listen", f"127.0.0.1:{PORT}", *options]
        with open(os.path.join(asked.dir, LOG), "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def __enter__(self):
        for _ in range(600):
            try:
                get("/health")
                return self
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.05)
        self.process.kill()
        sys.exit(f"object_store.py: the server did not come up; see {LOG}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def mixes(asked, seed):
    command = ["bench", "bsbm", "explore", "--endpoint", f"http://127.0.0.1:{PORT}/sparql", "--mixes", str(asked.mixes), "--warm-up", "0", "--seed", str(seed), "--report", "json"]
    report = json.loads(run(asked.orrery, *command))
    return report["query_mixes_per_hour"] / 3600


def the_mix(asked, store):
    stats = json.loads(run(asked.orrery, "stats", "--db", asked.db, "--format", "json"))
    database_bytes = stats["bytes"]
    cache = os.path.join(asked.dir, "cache-of-mixes")
    names = ["orrery_object_requests_total", "orrery_object_bytes_total", "orrery_object_cache_bytes"]
    print(f"The mix, {asked.mixes} mixes, {database_bytes / 2**20:,.0f} MiB of files:\n")
    print("| where | mixes/s | of the directory's | requests a mix | KiB a mix | in the cache, MiB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")

    # Others come first, so that what is measured finds a cache in use and not its own blocks.
    def in_directory():
        with Server(asked, asked.db, store.environment):
            mixes(asked, 2)
            return mixes(asked, 1)

    def in_store(size):
        shutil.rmtree(cache, ignore_errors=True)
        with Server(asked, store.bucket, store.environment, "--cache", cache, "--cache-size", str(size)):
            mixes(asked, 2)
            before = figures(names)
            a_second = mixes(asked, 1)
            after = figures(names)
        shutil.rmtree(cache, ignore_errors=True)
        spent = {name: (after[name] - before[name]) / asked.mixes for name in names}
        return a_second, spent, after[names[2]]

    before = in_directory()
    measured = [
        ("in the store, a cache that has room", in_store(4 * database_bytes)),
        ("in the store, a cache for a tenth", in_store(max(database_bytes // 10, 1 << 20))),
    ]
    local = statistics.mean((before, in_directory()))
    print(f"| in the directory | {local:.1f} | 1.00 | | | |")
    for where, (a_second, spent, kept) in measured:
        print(f"| {where} | {a_second:.1f} | {a_second / local:.2f} | {spent[names[0]]:.1f} | {spent[names[1]] / 1024:,.0f} | {kept / 2**20:,.1f} |")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("orrery")
    arguments.add_argument("db")
    arguments.add_argument("dir")
    arguments.add_argument("--bucket", required=True)
    arguments.add_argument("--mixes", type=int, default=100)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--delay", type=float)
    asked = arguments.parse_args()
    os.makedirs(asked.dir, exist_ok=True)
    store = Store(asked)
    one_query(asked, store)
    the_mix(asked, store)


if __name__ == "__main__":
    main()
