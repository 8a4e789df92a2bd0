"""Histories that are wrong, each of which a checker has to find, and right ones in which none may find anything."""
import random
import unittest

from . import commits, lists, registers, sql
from .history import OK, REFUSED, UNKNOWN, Op


def write(start, end, value, outcome=OK, commit=None, key="k"):
    return Op(0, "write", start, 1, end if outcome == OK else float("inf"), outcome, key, value, commit=commit)


def read(start, end, value, commit=None, fresh=True, key="k", asked=None):
    return Op(1, "read", start, 2, end, OK, key, value, commit=commit, is_fresh=fresh, min_commit=asked)


def cas(start, end, expected, value, swapped, outcome=OK, commit=None):
    return Op(2, "cas", start, 3, end if outcome == OK else float("inf"), outcome, "k", value, expected=expected, swapped=swapped, commit=commit)


def txn(start, end, reads=None, appends=None, outcome=OK, client=0, fresh=False, session=False, commit=None, reads_commit=None):
    return Op(client, "txn", start, 1, end, outcome, reads=reads, appends=appends, commit=commit, reads_commit=reads_commit, is_fresh=fresh, is_session=session)


class Sql(unittest.TestCase):
    def wrong(self, outcome, parts, other=None):
        client = sql.SqlClient(1, 0, {}, None, 0)
        client.outcomes = {0: outcome}
        state = {(1, 0): parts} if parts else {}
        return bool(sql.check([client], {1: state, 2: state if other is None else other}))

    def test_right_ones(self):
        for outcome, parts in ((OK, [0, 1]), (REFUSED, []), (UNKNOWN, []), (UNKNOWN, [0, 1])):
            self.assertFalse(self.wrong(outcome, parts))

    def test_lost_halves_and_what_was_refused(self):
        for outcome, parts in ((OK, []), (OK, [0]), (UNKNOWN, [1]), (REFUSED, [0, 1])):
            self.assertTrue(self.wrong(outcome, parts))

    def test_nodes_that_differ_and_rows_of_nobody(self):
        self.assertTrue(self.wrong(OK, [0, 1], {}))
        self.assertTrue(self.wrong(OK, [0, 1], {(1, 0): [0, 1], (2, 7): [0, 1]}))


class Registers(unittest.TestCase):
    def wrong(self, *ops):
        return bool(registers.check(list(ops))[0])

    def test_right_ones(self):
        self.assertFalse(self.wrong(write(0, 1, 1), read(2, 3, 1), write(4, 6, 2), read(5, 7, 1), read(5, 8, 2), read(9, 10, 2)))
        self.assertFalse(self.wrong(read(0, 1, None), write(2, 3, 1), cas(4, 5, 1, 2, True), cas(6, 7, 1, 3, False), read(8, 9, 2)))

    def test_a_stale_read(self):
        self.assertTrue(self.wrong(write(0, 1, 1), write(2, 3, 2), read(4, 5, 1)))
        # The same is no mistake of a read that may be old.
        self.assertFalse(self.wrong(write(0, 1, 1), write(2, 3, 2), read(4, 5, 1, fresh=False)))

    def test_a_lost_write(self):
        self.assertTrue(self.wrong(write(0, 1, 1), read(2, 3, None)))

    def test_reads_that_go_back_while_a_write_is_under_way(self):
        self.assertTrue(self.wrong(write(0, 1, 1), write(2, 9, 2), read(3, 4, 2), read(5, 6, 1)))

    def test_an_unknown_write_happens_late_early_or_never_and_once(self):
        self.assertFalse(self.wrong(write(0, 1, 1), write(2, 0, 2, UNKNOWN), read(3, 4, 1), read(5, 6, 2)))
        self.assertFalse(self.wrong(write(0, 1, 1), write(2, 0, 2, UNKNOWN), read(3, 4, 1)))
        self.assertTrue(self.wrong(write(0, 1, 1), write(2, 0, 2, UNKNOWN), read(3, 4, 2), read(5, 6, 1)))
        self.assertTrue(self.wrong(write(0, 1, 1), read(2, 3, 2), write(4, 0, 2, UNKNOWN)))
        self.assertTrue(self.wrong(write(0, 0, 1, UNKNOWN), write(0, 1, 2), read(2, 3, 1), write(4, 5, 3), read(6, 7, 1)))

    def test_two_that_swapped_the_same(self):
        self.assertTrue(self.wrong(write(0, 1, 1), cas(2, 5, 1, 2, True), cas(3, 6, 1, 3, True)))

    def test_one_that_did_not_swap_though_the_value_was_there(self):
        self.assertTrue(self.wrong(write(0, 1, 1), cas(2, 3, 1, 2, False), read(4, 5, 1)))
        self.assertFalse(registers.check([write(0, 1, 1), cas(2, 3, 1, 2, False), read(4, 5, 1)], with_failed_cas=False)[0])

    def test_an_unknown_swap_explains_what_is_read(self):
        self.assertFalse(self.wrong(write(0, 1, 1), cas(2, 0, 1, 2, False, UNKNOWN), read(3, 4, 2)))
        self.assertTrue(self.wrong(write(0, 1, 1), cas(2, 0, 7, 2, False, UNKNOWN), read(3, 4, 2)))

    def test_two_values_at_once(self):
        self.assertTrue(self.wrong(write(0, 1, 1), write(0, 1, 2), read(2, 3, "1 2")))

    def test_random_histories_of_one_register_are_right_and_one_changed_read_is_found(self):
        for seed in range(40):
            chance, ops, state, now = random.Random(seed), [], None, 0.0
            for value in range(1, 60):
                # The moment at which it happens is within its time, which overlaps with others'.
                now += 1
                before, after = now - chance.uniform(0, 4), now + chance.uniform(0, 4)
                kind = chance.choice(("write", "read", "cas", "lost"))
                if kind == "write":
                    ops.append(write(before, after, value))
                    state = value
                elif kind == "lost":
                    ops.append(write(before, after, value, UNKNOWN))
                    state = value if chance.random() < 0.5 else state
                elif kind == "read":
                    ops.append(read(before, after, state))
                else:
                    expected = state if chance.random() < 0.5 and state else -1
                    ops.append(cas(before, after, expected, value, expected == state))
                    state = value if expected == state else state
            self.assertFalse(self.wrong(*ops), seed)
            ops.append(read(now + 10, now + 11, state))
            ops.append(read(now + 12, now + 13, 1_000))
            self.assertTrue(self.wrong(*ops), seed)
            ops[-1] = write(now + 12, now + 13, 1_000)
            ops.append(read(now + 14, now + 15, state))
            self.assertTrue(self.wrong(*ops), seed)


class Commits(unittest.TestCase):
    def wrong(self, *ops):
        return commits.check(list(ops))[0]

    def test_right_ones(self):
        self.assertEqual(self.wrong(write(0, 1, 1, commit=1), write(2, 3, 2, commit=2), read(4, 5, 1, 1, fresh=False), read(4, 5, 2, 2, asked=2),
                                    cas(6, 7, 1, 9, False, commit=2), txn(8, 9, appends=[("a", 1)], commit=3), txn(9, 10, {"a": [1]}, commit=3)), [])

    def test_one_number_for_two_changes(self):
        self.assertIn("two acknowledged changes", self.wrong(write(0, 3, 1, commit=1), write(0, 3, 2, commit=1))[0])

    def test_a_number_that_was_known_before(self):
        self.assertIn("known before", self.wrong(write(0, 1, 1, commit=5), write(2, 3, 2, commit=4))[0])

    def test_an_answer_older_than_asked_for(self):
        self.assertIn("asked for", self.wrong(write(0, 1, 1, commit=1), read(2, 3, None, 0, asked=1))[0])

    def test_a_read_of_another_state_than_its_commit(self):
        self.assertTrue(self.wrong(write(0, 1, 1, commit=1), write(2, 3, 2, commit=2), read(4, 5, 2, 1)))
        self.assertTrue(self.wrong(write(0, 1, 1, commit=1), write(2, 3, 2, commit=2), read(4, 5, 1, 2)))
        self.assertTrue(self.wrong(write(0, 0, 1, UNKNOWN), read(4, 5, 1, 3), read(4, 5, None, 3)))

    def test_a_read_of_what_was_refused_or_of_nothing(self):
        self.assertIn("refused", self.wrong(write(0, 1, 1, REFUSED), read(2, 3, 1, 1))[0])
        self.assertIn("not None", self.wrong(read(2, 3, 4, 1))[0])
        self.assertEqual(self.wrong(write(0, 1, 1, UNKNOWN), read(2, 3, 1, 1)), [])

    def test_a_list_of_another_state_than_its_commit(self):
        one, two = txn(0, 1, appends=[("a", 1)], commit=1), txn(2, 3, appends=[("a", 2)], commit=2)
        self.assertIn("lacks", self.wrong(one, two, txn(4, 5, {"a": [1]}, commit=2))[0])
        self.assertIn("has 2", self.wrong(one, two, txn(4, 5, {"a": [1, 2]}, commit=1))[0])
        self.assertIn("one commit", self.wrong(txn(4, 5, {"a": [1]}, commit=1), txn(4, 5, {"a": []}, commit=1))[0])
        # What was read before the own appends.
        self.assertEqual(self.wrong(one, txn(2, 3, {"a": [1]}, [("a", 2)], commit=2, reads_commit=1)), [])


class Lists(unittest.TestCase):
    def found(self, name, ops, final):
        wrong = lists.check(ops, final)[0]
        self.assertTrue(any(line.startswith(name) for line in wrong), wrong)

    def test_right_ones(self):
        ops = [txn(0, 1, appends=[("a", 1), ("b", 2)]), txn(2, 5, appends=[("a", 3), ("b", 4)], client=1), txn(3, 4, {"a": [1, 3], "b": [2, 4]}, client=2, fresh=True),
               txn(6, 7, {"a": [1], "b": [2]}, client=3), txn(6, 9, appends=[("a", 5), ("c", 6)], outcome=UNKNOWN), txn(6, 9, appends=[("a", 7)], outcome=REFUSED),
               txn(10, 11, {"a": [1, 3]}, [("a", 8), ("a", 9)], client=2, fresh=True)]
        self.assertEqual(lists.check(ops, {"a": [1, 3, 8, 9], "b": [2, 4]})[0], [])
        self.assertEqual(lists.check(ops, {"a": [1, 3, 8, 9, 5], "b": [2, 4], "c": [6]})[0], [])

    def test_g0(self):
        self.found("G0", [txn(0, 9, appends=[("a", 1), ("b", 1)]), txn(0, 9, appends=[("a", 2), ("b", 2)], client=1)], {"a": [1, 2], "b": [2, 1]})

    def test_g1a(self):
        self.found("G1a", [txn(0, 1, appends=[("a", 1)], outcome=REFUSED), txn(2, 3, {"a": [1]}, client=1)], {"a": []})
        self.found("G1a", [txn(0, 1, appends=[("a", 1)], outcome=REFUSED)], {"a": [1]})

    def test_g1b(self):
        self.found("G1b", [txn(0, 1, appends=[("a", 1), ("a", 2)]), txn(0, 1, {"a": [1]}, client=1)], {"a": [1, 2]})

    def test_g1c(self):
        self.found("G1c", [txn(0, 9, {"b": [2]}, [("a", 1)]), txn(0, 9, {"a": [1]}, [("b", 2)], client=1)], {"a": [1], "b": [2]})

    def test_g_single(self):
        # One saw the other's append to b, and not the one to a.
        self.found("G-single", [txn(0, 9, appends=[("a", 1), ("b", 2)]), txn(0, 9, {"a": [], "b": [2]}, client=1)], {"a": [1], "b": [2]})
        # A lost update: both read the same, both appended.
        self.found("G-single", [txn(0, 9, {"a": []}, [("a", 1)]), txn(0, 9, {"a": []}, [("a", 2)], client=1)], {"a": [1, 2]})

    def test_g2(self):
        # Write skew.
        self.found("G2", [txn(0, 9, {"a": []}, [("b", 1)]), txn(0, 9, {"b": []}, [("a", 2)], client=1)], {"a": [2], "b": [1]})

    def test_long_fork(self):
        self.found("G2", [txn(0, 9, appends=[("a", 1)]), txn(0, 9, appends=[("b", 2)], client=1), txn(0, 9, {"a": [1], "b": []}, client=2), txn(0, 9, {"a": [], "b": [2]}, client=3)],
                   {"a": [1], "b": [2]})

    def test_real_time(self):
        stale = txn(2, 3, {"a": []}, client=1, fresh=True)
        self.found("G-single-realtime", [txn(0, 1, appends=[("a", 1)]), stale], {"a": [1]})
        stale.is_fresh = False
        self.assertEqual(lists.check([txn(0, 1, appends=[("a", 1)]), stale], {"a": [1]})[0], [])
        self.found("G0-realtime", [txn(0, 1, appends=[("a", 1)]), txn(2, 3, appends=[("a", 2)], client=1)], {"a": [2, 1]})

    def test_a_client_that_goes_back(self):
        ops = [txn(0, 9, appends=[("a", 1)]), txn(1, 2, {"a": [1]}, client=1, session=True), txn(3, 4, {"a": []}, client=1, session=True)]
        self.found("G-single-realtime", ops, {"a": [1]})

    def test_lost_torn_doubled_unknown_and_mixed_up(self):
        self.found("acknowledged and lost", [txn(0, 1, appends=[("a", 1)])], {"a": []})
        self.found("part of a transaction", [txn(0, 1, appends=[("a", 1), ("b", 2)], outcome=UNKNOWN)], {"a": [1]})
        self.found("list a has an element twice", [txn(0, 1, appends=[("a", 1)])], {"a": [1, 1]})
        self.found("list a has 7, which nobody", [txn(0, 1, {"a": [7]})], {"a": [7]})
        self.found("list a: [2] (client 1", [txn(0, 9, appends=[("a", 1)]), txn(0, 9, appends=[("a", 2)]), txn(0, 9, {"a": [2]}, client=1)], {"a": [1, 2]})

    def test_random_serial_histories_are_right_and_a_hidden_append_is_found(self):
        for seed in range(40):
            chance, ops, state = random.Random(seed), [], {key: [] for key in "abc"}
            for now in range(100):
                keys = chance.sample("abc", 2)
                start, end = now - chance.uniform(0, 3), now + chance.uniform(0.1, 3)
                if chance.random() < 0.5:
                    appends = [(key, now * 10 + at) for at, key in enumerate(keys)]
                    ops.append(txn(start, end, appends=appends, client=now))
                    for key, element in appends:
                        state[key] = state[key] + [element]
                else:
                    ops.append(txn(start, end, {key: state[key] for key in keys}, client=now, fresh=True))
            self.assertEqual(lists.check(ops, state)[0], [], seed)
            late = txn(200, 201, {"a": state["a"][:-1], "b": state["b"]}, client=1_000, fresh=True)
            self.assertTrue(lists.check(ops + [late], state)[0], seed)


def run():
    """Whether all of them pass."""
    suite = unittest.TestLoader().loadTestsFromModule(__import__(__name__, fromlist=["run"]))
    return unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful()
