#!/usr/bin/env python3
"""A cluster of three servers on this machine whose leader is killed again and again: how long the next change takes, and whether all that was acknowledged is there.

  cluster.py ORRERY DIR [--rounds 8] [--changes 10]

ORRERY is the program; DIR takes three directories of nodes, and is made. In each round clients change something at all three servers, then the node that leads is killed (SIGKILL), changes are
tried at the other two until one is done, and the killed one is started again. At the end each server has to have every change that was acknowledged.
"""
import argparse
import os
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

NODES = (1, 2, 3)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    def __init__(self, orrery, directory):
        self.orrery, self.directory = orrery, directory
        os.makedirs(directory)
        self.secret = os.path.join(directory, "secret")
        with open(self.secret, "w") as file:
            file.write(os.urandom(16).hex() + "\n")
        self.peers = ",".join("%d=127.0.0.1:%d" % (node, free_port()) for node in NODES)
        self.servers = {node: "127.0.0.1:%d" % free_port() for node in NODES}
        self.processes = {node: self.start(node) for node in NODES}

    def start(self, node):
        log = open(os.path.join(self.directory, "log-%d" % node), "a")
        return subprocess.Popen(
            [self.orrery, "serve", "--cluster", "--node", str(node), "--peers", self.peers, "--cluster-secret-file", self.secret, "--memory", "512M"]
            + ["--db", os.path.join(self.directory, "node-%d" % node), "--listen", self.servers[node]],
            stdout=log, stderr=log)

    def change(self, node, number):
        body = "INSERT DATA { <http://e/s> <http://e/p> %d }" % number
        request = urllib.request.Request("http://%s/sparql" % self.servers[node], body.encode(), {"Content-Type": "application/sparql-update"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def numbers(self, node):
        query = urllib.parse.quote("SELECT ?n { <http://e/s> <http://e/p> ?n }")
        request = urllib.request.Request("http://%s/sparql?query=%s" % (self.servers[node], query), headers={"Accept": "text/csv"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return {int(line) for line in answer.read().split()[1:]}

    def leader(self):
        for node in NODES:
            asked = subprocess.run([self.orrery, "cluster", "status", "--server", "http://" + self.servers[node]], capture_output=True, text=True)
            found = re.search(r"node (\d+): leader", asked.stdout)
            if found:
                return int(found.group(1))
        return None


def until(done, what, seconds=60):
    begun = time.monotonic()
    while True:
        found = done()
        if found:
            return found
        if time.monotonic() - begun > seconds:
            sys.exit("not within %d s: %s" % (seconds, what))
        time.sleep(0.02)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("orrery")
    parser.add_argument("directory")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--changes", type=int, default=10)
    arguments = parser.parse_args()
    cluster = Cluster(arguments.orrery, arguments.directory)
    number, acknowledged, waits = 0, set(), []

    def change_at(nodes):
        nonlocal number
        for node in nodes:
            number += 1
            if cluster.change(node, number):
                acknowledged.add(number)
                return True
        return False

    try:
        until(lambda: change_at(NODES), "the first change")
        for turn in range(arguments.rounds):
            for at in range(arguments.changes):
                change_at([NODES[at % 3]])
            led = until(cluster.leader, "a leader")
            cluster.processes[led].kill()
            cluster.processes[led].wait()
            begun = time.monotonic()
            until(lambda: change_at([node for node in NODES if node != led]), "a change after node %d was killed" % led)
            waits.append(time.monotonic() - begun)
            print("node %d killed, the next change after %.2f s" % (led, waits[-1]), flush=True)
            cluster.processes[led] = cluster.start(led)
            until(lambda: change_at([led]), "a change at the node that came back")
        for node in NODES:
            until(lambda: acknowledged <= cluster.numbers(node), "all that was acknowledged at node %d" % node)
        print("%d kills, %d changes acknowledged, all there on each node; the next change after %.2f s (median), %.2f s at most"
              % (arguments.rounds, len(acknowledged), statistics.median(waits), max(waits)))
    finally:
        for process in cluster.processes.values():
            process.kill()
            process.wait()


if __name__ == "__main__":
    main()
