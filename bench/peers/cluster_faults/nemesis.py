"""Faults, one after the other, at times two at once: chosen by a seed, each ended before the next."""
import time

from .history import OK
from .nodes import NODES
from .proxy import DEAF, DROPPED, STALLED


def name_of(fault):
    return fault.__name__.replace("_", "-")


class Nemesis:
    def __init__(self, cluster, network, client, random, tell):
        """`client` asks where a fault wants it asked; it is no thread."""
        self.cluster, self.network, self.client, self.random, self.tell = cluster, network, client, random, tell
        self.counts = {}
        self.begun = time.monotonic()
        # What, how often (in parts of the sum).
        self.faults = [
            (self.kill_leader, 4), (self.kill_follower, 3), (self.kill_all, 1),
            (self.pause_leader, 4), (self.pause_follower, 2), (self.pause_all, 1),
            (self.cut_off_leader, 4), (self.cut_off_follower, 2), (self.cut_pair, 2), (self.cut_one_way, 3), (self.lose_answers, 3), (self.reset_connections, 1),
            (self.ask_cut_off_leader, 3), (self.kill_paused_leader, 1), (self.pause_leader_and_kill_follower, 2), (self.cut_off_leader_and_pause_it, 2),
        ]
        if cluster.clock_library:
            self.faults += [(self.clock_of_leader, 3), (self.clock_of_follower, 1)]

    def one(self, only=None):
        """A fault, from its begin to its end; of some kinds only, if so asked."""
        self.cluster.look_after()
        leader = self.cluster.leader() or self.random.choice(NODES)
        follower = self.random.choice([node for node in NODES if node != leader])
        faults = [(fault, parts) for fault, parts in self.faults if not only or name_of(fault) in only]
        fault = self.random.choices(*zip(*faults))[0]
        detail = fault(leader, follower)
        name = name_of(fault)
        self.counts[name] = self.counts.get(name, 0) + 1
        self.tell("%7.1f s  %s %s" % (time.monotonic() - self.begun, name, detail))
        self.wait(0.2, 2.0)

    def wait(self, least, most):
        seconds = self.random.uniform(least, most)
        time.sleep(seconds)
        return "%.1f s" % seconds

    # Processes.

    def kill(self, nodes):
        for node in nodes:
            self.cluster.kill(node)
        waited = self.wait(0.0, 2.5)
        for node in nodes:
            self.cluster.start(node)
        return "%s, started again after %s" % (", ".join(map(str, nodes)), waited)

    def kill_leader(self, leader, follower):
        return self.kill([leader])

    def kill_follower(self, leader, follower):
        return self.kill([follower])

    def kill_all(self, leader, follower):
        return self.kill(self.random.sample(NODES, 3))

    def pause(self, nodes):
        for node in nodes:
            self.cluster.pause(node)
        waited = self.wait(0.5, 5.0)
        for node in nodes:
            self.cluster.go_on(node)
        return "%s for %s" % (", ".join(map(str, nodes)), waited)

    def pause_leader(self, leader, follower):
        return self.pause([leader])

    def pause_follower(self, leader, follower):
        return self.pause([follower])

    def pause_all(self, leader, follower):
        return self.pause(list(NODES))

    def kill_paused_leader(self, leader, follower):
        self.cluster.pause(leader)
        self.wait(0.5, 3.0)
        return self.kill([leader])

    def pause_leader_and_kill_follower(self, leader, follower):
        self.cluster.pause(leader)
        self.wait(0.2, 2.0)
        told = self.kill([follower])
        self.wait(0.0, 1.5)
        self.cluster.go_on(leader)
        return "paused %d, killed %s" % (leader, told)

    # The network.

    def cut(self, ways, states):
        state = self.random.choice(states)
        self.network.set(ways, state)
        waited = self.wait(0.5, 5.0)
        self.network.heal()
        return "%s (%s) for %s" % (" ".join("%d>%d" % way for way in ways), state, waited)

    def around(self, node):
        return [way for other in NODES if other != node for way in ((node, other), (other, node))]

    def cut_off_leader(self, leader, follower):
        return self.cut(self.around(leader), (STALLED, DROPPED))

    def cut_off_follower(self, leader, follower):
        return self.cut(self.around(follower), (STALLED, DROPPED))

    def cut_pair(self, leader, follower):
        return self.cut([(leader, follower), (follower, leader)], (STALLED, DROPPED))

    def cut_one_way(self, leader, follower):
        """Nobody hears the requests of a node, or it hears nobody's."""
        node = self.random.choice((leader, leader, follower))
        others = [other for other in NODES if other != node]
        out = self.random.random() < 0.5
        return self.cut([(node, other) if out else (other, node) for other in others], (STALLED, DROPPED))

    def lose_answers(self, leader, follower):
        node = self.random.choice((leader, leader, follower))
        others = [other for other in NODES if other != node]
        out = self.random.random() < 0.5
        return self.cut([(node, other) if out else (other, node) for other in others], (DEAF,))

    def reset_connections(self, leader, follower):
        self.network.set(self.network.ways, DROPPED)
        self.wait(0.0, 0.1)
        self.network.heal()
        return "all"

    def cut_off_leader_and_pause_it(self, leader, follower):
        """It goes on while it is still cut off: it does not know better than that it leads."""
        self.network.set(self.around(leader), self.random.choice((STALLED, DROPPED)))
        self.cluster.pause(leader)
        self.wait(0.5, 3.0)
        self.cluster.go_on(leader)
        waited = self.wait(0.2, 2.0)
        self.network.heal()
        return "%d, which went on %s before it was heard" % (leader, waited)

    def ask_cut_off_leader(self, leader, follower):
        """It is cut off while nothing of its own waits to be committed, so it could answer. What it is asked to swap are values that came after that: it must not say that they are not there."""
        history, registers = self.client.history, self.client.registers
        history.is_quiet = True
        time.sleep(0.5)
        self.network.set(self.around(leader), self.random.choice((STALLED, DROPPED)))
        registers.recent.clear()
        history.spared, history.is_quiet = leader, False
        self.wait(3.0, 6.0)
        asked = 0
        for key in registers.some(self.random, 3):
            if key in registers.recent:
                asked += 1
                if self.client.cas_at(leader, key) != OK:
                    break
        history.spared = None
        self.network.heal()
        return "%d, asked %d times" % (leader, asked)

    # Clocks.

    def jump(self, node):
        offset_s = self.random.choice((-1, 1)) * self.random.choice((self.random.uniform(1, 25), self.random.uniform(40, 900)))
        self.cluster.set_clock(node, int(1000 * offset_s))
        waited = self.wait(0.5, 5.0)
        self.cluster.set_clock(node, 0)
        return "%d by %.0f s for %s" % (node, offset_s, waited)

    def clock_of_leader(self, leader, follower):
        return self.jump(leader)

    def clock_of_follower(self, leader, follower):
        return self.jump(follower)
