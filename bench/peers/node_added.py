#!/usr/bin/env python3
"""A node added to a cluster of three under load: how long until it has everything, until it does its share of a divided query, and whether a read failed meanwhile.

  node_added.py ORRERY DIR DATA [--readers 2]

ORRERY is the program, DIR is made and takes the nodes' directories, DATA is a file of BSBM (`orrery bench bsbm generate --products 28482 -o DATA`: 10 million triples). Readers ask all three nodes all the time, for a
product's label and for the dearest offer of each producer, which the nodes divide among them. Each answer has to be the one that there was before.
"""
import argparse
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from cluster import NODES, Cluster, free_port, until

PREFIX = "PREFIX bsbm: <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/> PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
SHORT = PREFIX + "SELECT ?label { <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromProducer1/Product1> rdfs:label ?label }"
LONG = PREFIX + "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT ?producer (COUNT(?offer) AS ?offers) (MAX(xsd:integer(xsd:float(xsd:string(?price)))) AS ?most) { ?offer bsbm:product ?product ; bsbm:price ?price . ?product bsbm:producer ?producer } GROUP BY ?producer ORDER BY ?producer"


class Shared(Cluster):
    """Nodes with a thread each, which divide what handles a hundred thousand rows."""

    def start(self, node):
        peers = ["--peers", self.peers] if node in NODES else ["--cluster-address", self.address]
        with open(os.path.join(self.directory, "log-%d" % node), "a") as log:
            return subprocess.Popen(
                [self.orrery, "serve", "--cluster", "--node", str(node), "--cluster-secret-file", self.secret, "--memory", "1G", "--threads", "1", "--divide-from", "100000"]
                + peers + ["--db", os.path.join(self.directory, "node-%d" % node), "--listen", self.servers[node]],
                stdout=log, stderr=log)

    def ask(self, node, query):
        request = urllib.request.Request("http://%s/sparql?query=%s" % (self.servers[node], urllib.parse.quote(query)), headers={"Accept": "text/csv"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def worked(self, node):
        """For how many divided queries a node has worked."""
        with urllib.request.urlopen("http://%s/metrics" % self.servers[node], timeout=10) as answer:
            found = re.search(rb"^orrery_divided_worked_total (\d+)", answer.read(), re.MULTILINE)
        return int(found.group(1)) if found else 0


class Readers:
    """Clients that compare what they get with what there was before."""

    def __init__(self, cluster, count):
        self.cluster, self.stop = cluster, threading.Event()
        self.expected = {query: cluster.ask(1, query) for query in (SHORT, LONG)}
        self.answers, self.failed = 0, []
        self.counted = threading.Lock()
        self.threads = [threading.Thread(target=self.read, args=(at,)) for at in range(count)]
        for thread in self.threads:
            thread.start()

    def read(self, at):
        turn = at
        while not self.stop.is_set():
            turn += 1
            node, query = NODES[turn % 3], (SHORT, SHORT, SHORT, SHORT, LONG)[turn % 5]
            try:
                answer = self.cluster.ask(node, query)
                wrong = None if answer == self.expected[query] else "another answer at node %d" % node
            except (urllib.error.URLError, OSError) as error:
                wrong = "node %d: %s" % (node, error)
            with self.counted:
                self.answers += 1
                if wrong:
                    self.failed.append(wrong)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("orrery")
    parser.add_argument("directory")
    parser.add_argument("data")
    parser.add_argument("--readers", type=int, default=2)
    arguments = parser.parse_args()
    cluster = Shared(arguments.orrery, arguments.directory)
    readers = None
    try:
        until(lambda: all(cluster.change(node, 1) for node in NODES), "a change at each node")
        begun = time.monotonic()
        subprocess.run([cluster.orrery, "load", "--server", "http://" + cluster.servers[1], arguments.data], check=True, stdout=subprocess.DEVNULL)
        print("loaded after %.1f s" % (time.monotonic() - begun), flush=True)
        expected = cluster.ask(1, LONG)
        until(lambda: all(cluster.ask(node, LONG) == expected for node in NODES), "the same answer at all nodes")
        readers = Readers(cluster, arguments.readers)
        time.sleep(5)
        before = readers.answers
        cluster.address = "127.0.0.1:%d" % free_port()
        cluster.servers[4] = "127.0.0.1:%d" % free_port()
        begun = time.monotonic()
        cluster.processes[4] = cluster.start(4)
        add = [cluster.orrery, "cluster", "add", "4=" + cluster.address, "--server", "http://" + cluster.servers[1]]

        def added():
            return subprocess.run(add, capture_output=True, text=True).returncode == 0

        until(added, "the node is added")
        print("it has everything and votes after %.1f s" % (time.monotonic() - begun), flush=True)

        def shares():
            try:
                return cluster.worked(4) > 0
            except OSError:
                return False

        until(shares, "it works for a query")
        print("it does its share after %.1f s" % (time.monotonic() - begun), flush=True)
        during = readers.answers - before
        same = cluster.ask(4, LONG) == expected and cluster.ask(4, SHORT) == readers.expected[SHORT]
        time.sleep(5)
        readers.end()
        print("%d reads meanwhile, %d in all, %d failed; its own answers are %s" % (during, readers.answers, len(readers.failed), "the same" if same else "OTHERS"))
        for text in readers.failed[:10]:
            print("  " + text)
        sys.exit(1 if readers.failed or not same else 0)
    finally:
        if readers:
            readers.end()
        for process in cluster.processes.values():
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
