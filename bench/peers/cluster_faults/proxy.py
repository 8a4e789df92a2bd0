"""What stands between the nodes: for each node one proxy before its cluster address and one before its server, in one thread (asyncio).

    node i ── connection ──> proxy of node j ──> node j      i is known by the process that has the other end (sock_diag)

A way (i, j) is what i asks j, with its answers. It is open, or
    stalled    nothing goes on, either way; what was sent arrives when it is opened again, as on a network that loses packets for a while
    deaf       what i asks arrives, the answers wait: j has done what i does not know of
    dropped    connections end at once, new ones too
Clients go around the proxies.
"""
import asyncio
import os
import socket
import struct
import threading

OPEN, STALLED, DEAF, DROPPED = "open", "stalled", "deaf", "dropped"
CHUNK = 1 << 16
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST = 4, 20, 1


def inode(port, own_port):
    """Of the socket whose connection goes from `port` to `own_port` of this machine; 0 where none has it any more.

    The kernel is asked for this one connection (sock_diag(7)): its table in /proc/net/tcp has thousands of lines of those that have ended, and
    every new connection would wait until it is read. Behind such a queue each request of a busy machine came too late, and none ever in time again.
    """
    here = socket.inet_aton("127.0.0.1")
    asked = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
    asked += struct.pack("!HH16s16s", port, own_port, here, here) + struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.send(struct.pack("=IHHII", 16 + len(asked), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0) + asked)
        told = kernel.recv(4096)
    # A header of 16 bytes, then inet_diag_msg, whose last member is the inode; or the error that there is none.
    return struct.unpack_from("=I", told, 84)[0] if struct.unpack_from("=H", told, 4)[0] == SOCK_DIAG_BY_FAMILY else 0


def owner(port, own_port, pids):
    """Whose process has the connection from `port` to `own_port` of this machine."""
    found = "socket:[%d]" % inode(port, own_port)
    if found == "socket:[0]":
        return None
    for node, pid in list(pids.items()):
        try:
            for name in os.listdir("/proc/%d/fd" % pid):
                try:
                    if os.readlink("/proc/%d/fd/%s" % (pid, name)) == found:
                        return node
                except OSError:
                    pass
        except OSError:
            pass
    return None


class Network:
    def __init__(self, nodes):
        self.ways = {(i, j): OPEN for i in nodes for j in nodes if i != j}
        self.connections = {way: set() for way in self.ways}
        self.pids = {}
        self.counts = {"connections": 0, "bytes": 0, "unknown": 0}
        self.loop = asyncio.new_event_loop()
        self.changed = None
        ready = threading.Event()
        threading.Thread(target=self.run, args=(ready,), daemon=True).start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.changed = asyncio.Event()
        self.loop.call_soon(ready.set)
        self.loop.run_forever()

    def listen(self, node, target):
        """A port of this machine that leads to `target` of a node."""
        started = asyncio.run_coroutine_threadsafe(self.start(node, target), self.loop)
        return started.result()

    async def start(self, node, target):
        server = await asyncio.start_server(lambda reader, writer: self.accepted(node, target, reader, writer), "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    async def accepted(self, node, target, reader, writer):
        peer, own = writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1]
        source = owner(peer, own, self.pids)
        way = (source, node)
        self.counts["connections"] += 1
        if source is None or way not in self.ways or self.ways[way] == DROPPED:
            self.counts["unknown"] += source is None
            writer.transport.abort()
            return
        pair = [writer]
        self.connections[way].add(tuple(pair))
        try:
            # The system takes connections of a network that is cut, for a while; here the asker waits as it would for a lost packet.
            await self.until(way, (OPEN, DEAF))
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            self.connections[way].discard((writer,))
            writer.transport.abort()
            return
        self.connections[way].discard((writer,))
        both = (writer, to_writer)
        self.connections[way].add(both)
        asked = self.pump(way, reader, to_writer, (OPEN, DEAF))
        answered = self.pump(way, to_reader, writer, (OPEN,))
        tasks = [asyncio.ensure_future(asked), asyncio.ensure_future(answered)]
        # A client that has closed its side is not waiting for an answer any more.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        self.connections[way].discard(both)
        for each in both:
            each.transport.abort()

    async def pump(self, way, reader, writer, lets_pass):
        try:
            while True:
                data = await reader.read(CHUNK)
                if self.ways[way] not in lets_pass:
                    await self.until(way, lets_pass)
                if not data:
                    return
                self.counts["bytes"] += len(data)
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass

    async def until(self, way, states):
        while self.ways[way] not in states:
            if self.ways[way] == DROPPED:
                raise ConnectionResetError
            await self.changed.wait()

    def set(self, ways, state):
        """Cuts ways, or opens them."""
        self.loop.call_soon_threadsafe(self.apply, list(ways), state)

    def apply(self, ways, state):
        for way in ways:
            self.ways[way] = state
            if state == DROPPED:
                for both in list(self.connections[way]):
                    for each in both:
                        each.transport.abort()
        before, self.changed = self.changed, asyncio.Event()
        before.set()

    def heal(self):
        self.set(self.ways, OPEN)


