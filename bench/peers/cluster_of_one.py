#!/usr/bin/env python3
"""A cluster of one node beside a plain server of the same data, in turns: the explore mix, the floor of a request, and the analytical queries.

  cluster_of_one.py ORRERY DIR DATA [--rounds 5] [--mixes 100]

ORRERY is the program, DIR is made and takes both databases, DATA is a file of BSBM (`orrery bench bsbm generate --products 2848 -o DATA`). Both servers run all the time; each round measures one, then the other, in another order
each time. What is printed is the median over the rounds of the cluster's time over the plain server's, by processors' time of the server and by the clock.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from cluster import free_port, until

QUERIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench/queries")


def processor_seconds(process):
    """The time that all threads of a process have had, those that have ended too."""
    with open("/proc/%d/stat" % process.pid) as file:
        fields = file.read().rsplit(") ", 1)[1].split(" ")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, orrery, directory, name, options):
        self.address = "127.0.0.1:%d" % free_port()
        log = open(os.path.join(directory, "log-" + name), "a")
        database = ["--db", os.path.join(directory, name), "--listen", self.address]
        self.process = subprocess.Popen([orrery, "serve", "--allow-writes"] + database + options, stdout=log, stderr=log)
        self.endpoint = "http://%s/sparql" % self.address

    def ask(self, query):
        request = urllib.request.Request(self.endpoint, urllib.parse.urlencode({"query": query}).encode(), {"Accept": "text/csv"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()

    def lines(self, query):
        """The answer without its order, which is anybody's choice."""
        return sorted(self.ask(query).splitlines())

    def is_up(self):
        try:
            return self.ask("ASK {}")
        except (urllib.error.URLError, OSError):
            return False

    def timed(self, work):
        before, begun = processor_seconds(self.process), time.monotonic()
        work()
        return processor_seconds(self.process) - before, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("orrery")
    parser.add_argument("directory")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mixes", type=int, default=100)
    arguments = parser.parse_args()
    orrery, directory = arguments.orrery, arguments.directory
    os.makedirs(directory)
    secret = os.path.join(directory, "secret")
    with open(secret, "w") as file:
        file.write(os.urandom(16).hex() + "\n")
    one = ["--cluster", "--node", "1", "--peers", "1=127.0.0.1:%d" % free_port(), "--cluster-secret-file", secret]
    subprocess.run([orrery, "load", "--db", os.path.join(directory, "plain"), arguments.data], check=True, stdout=subprocess.DEVNULL)
    servers = {"plain": Server(orrery, directory, "plain", []), "cluster": Server(orrery, directory, "cluster", one)}
    producer = "<http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromProducer1/Producer1>"
    analytical = [open(path).read().replace("%Producer%", producer) for path in sorted(glob.glob(os.path.join(QUERIES, "analytical/*.rq")))]
    try:
        until(lambda: all(server.is_up() for server in servers.values()), "both are up")
        subprocess.run([orrery, "load", "--server", "http://" + servers["cluster"].address, arguments.data], check=True, stdout=subprocess.DEVNULL)

        def explore(server):
            subprocess.run([orrery, "bench", "bsbm", "explore", "--endpoint", server.endpoint, "--mixes", str(arguments.mixes), "--warm-up", "10"], check=True, stdout=subprocess.DEVNULL)

        def floor(server):
            subprocess.run([orrery, "bench", "floor", "--endpoint", server.endpoint, "--requests", "10000"], check=True, stdout=subprocess.DEVNULL)

        def analyze(server):
            for _ in range(3):
                for query in analytical:
                    server.ask(query)

        works = {"explore": explore, "floor": floor, "analytical": analyze}
        assert all(servers["plain"].lines(query) == servers["cluster"].lines(query) for query in analytical)
        ratios = {name: [] for name in works}
        for turn in range(arguments.rounds):
            names = ["plain", "cluster"] if turn % 2 == 0 else ["cluster", "plain"]
            for work, run in works.items():
                took = {name: servers[name].timed(lambda: run(servers[name])) for name in names}
                ratios[work].append([took["cluster"][at] / took["plain"][at] for at in (0, 1)])
        for work, found in ratios.items():
            print("%-10s processors' time %.3f, time %.3f (medians of %s)"
                  % (work, statistics.median(one[0] for one in found), statistics.median(one[1] for one in found), json.dumps([[round(x, 3) for x in one] for one in found])))
    finally:
        for server in servers.values():
            server.process.kill()
            server.process.wait()


if __name__ == "__main__":
    main()
