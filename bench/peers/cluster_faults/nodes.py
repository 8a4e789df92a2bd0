"""The three processes: started, killed, stopped for a while, and given clocks that jump.

Clocks: a small library in C is compiled by `cc` and loaded before the C library (LD_PRELOAD). It answers `clock_gettime` for the wall clock with the system's time and an offset that stands in a file; clocks that only
measure (monotonic) stay as they are, as on a machine whose clock is set. It needs neither root nor a package. Where there is no `cc`, clocks do not jump.
"""
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

NODES = (1, 2, 3)
START_OPTIONS = ["--memory", "512M", "--threads", "1", "--checkpoint-bytes", "256K", "--checkpoint-quads", "400", "--compact-quads", "400"]

CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset_ms;
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FAULTS_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *map = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) offset_ms = map;
    close(file);
}
int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && offset_ms && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t nanoseconds = time->tv_nsec + *offset_ms % 1000 * 1000000;
        time->tv_sec += *offset_ms / 1000;
        if (nanoseconds < 0) { nanoseconds += 1000000000; time->tv_sec--; }
        if (nanoseconds >= 1000000000) { nanoseconds -= 1000000000; time->tv_sec++; }
        time->tv_nsec = nanoseconds;
    }
    return failed;
}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Cluster:
    def __init__(self, orrery, directory, network):
        self.orrery, self.directory, self.network = orrery, directory, network
        os.makedirs(directory)
        self.secret = os.path.join(directory, "secret")
        with open(self.secret, "w") as file:
            file.write(os.urandom(16).hex() + "\n")
        self.cluster_ports = {node: free_port() for node in NODES}
        self.server_ports = {node: free_port() for node in NODES}
        self.sql_ports = {node: free_port() for node in NODES}
        self.peers = ",".join("%d=127.0.0.1:%d" % (node, network.listen(node, self.cluster_ports[node])) for node in NODES)
        self.advertised = {node: "http://127.0.0.1:%d" % network.listen(node, self.server_ports[node]) for node in NODES}
        self.clock_library = self.make_clocks()
        self.processes, self.lock, self.ended_by_themselves = {}, threading.Lock(), []
        for node in NODES:
            self.start(node)

    def make_clocks(self):
        for node in NODES:
            self.set_clock(node, 0)
        compiler = shutil.which("cc")
        if not compiler:
            return None
        source, library = (os.path.join(self.directory, name) for name in ("clock.c", "clock.so"))
        with open(source, "w") as file:
            file.write(CLOCK)
        made = subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source])
        return library if made.returncode == 0 else None

    def clock_file(self, node):
        return os.path.join(self.directory, "clock-%d" % node)

    def set_clock(self, node, offset_ms):
        """Lets a node's wall clock jump; its file stays the same one, for the node has mapped it."""
        file = os.open(self.clock_file(node), os.O_CREAT | os.O_WRONLY)
        os.pwrite(file, struct.pack("=q", offset_ms), 0)
        os.close(file)

    def log(self, node):
        return os.path.join(self.directory, "log-%d" % node)

    def start(self, node):
        environment = dict(os.environ)
        if self.clock_library:
            environment.update(LD_PRELOAD=self.clock_library, FAULTS_CLOCK=self.clock_file(node))
        with open(self.log(node), "a") as log:
            process = subprocess.Popen(
                [self.orrery, "serve", "--cluster", "--node", str(node), "--peers", self.peers, "--cluster-secret-file", self.secret]
                + ["--cluster-address", "127.0.0.1:%d" % self.cluster_ports[node], "--db", os.path.join(self.directory, "node-%d" % node)]
                + ["--listen", "127.0.0.1:%d" % self.server_ports[node], "--advertise", self.advertised[node]]
                + ["--pg", "127.0.0.1:%d" % self.sql_ports[node]] + START_OPTIONS,
                stdout=log, stderr=log, env=environment)
        with self.lock:
            self.processes[node] = process
        self.network.pids[node] = process.pid

    def kill(self, node):
        with self.lock:
            process = self.processes.pop(node, None)
        if process:
            self.note_end(node, process)
            process.kill()
            process.wait()

    def pause(self, node):
        self.signal(node, signal.SIGSTOP)

    def go_on(self, node):
        self.signal(node, signal.SIGCONT)

    def signal(self, node, number):
        with self.lock:
            process = self.processes.get(node)
            if process and process.poll() is None:
                process.send_signal(number)

    def note_end(self, node, process):
        if process.poll() is not None:
            self.ended_by_themselves.append("node %d ended by itself with %s: %s" % (node, process.returncode, self.last_line(node)))

    def last_line(self, node):
        with open(self.log(node), errors="replace") as log:
            lines = log.read().splitlines()
        return lines[-1] if lines else "no line in its log"

    def look_after(self):
        """Starts again what ended by itself, which is told at the end."""
        for node in NODES:
            with self.lock:
                process = self.processes.get(node)
            if process and process.poll() is not None:
                self.note_end(node, process)
                self.start(node)

    def leader(self):
        """The node that leads, as one says that answers."""
        for node in NODES:
            connection = http.client.HTTPConnection("127.0.0.1", self.server_ports[node], timeout=1)
            try:
                connection.request("GET", "/cluster")
                leader = json.loads(connection.getresponse().read()).get("leader")
                if leader:
                    return leader
            except (OSError, ValueError, http.client.HTTPException, AttributeError):
                pass
            finally:
                connection.close()
        return None

    def processor_seconds(self):
        """Of the processes that run now."""
        ticks = 0
        for process in self.processes.values():
            with open("/proc/%d/stat" % process.pid) as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self):
        for node in NODES:
            self.kill(node)


def until(done, what, seconds):
    """Waits until something is so; gives it, or fails."""
    begun = time.monotonic()
    while True:
        found = done()
        if found:
            return found
        if time.monotonic() - begun > seconds:
            raise TimeoutError("not within %d s: %s" % (seconds, what))
        time.sleep(0.05)
