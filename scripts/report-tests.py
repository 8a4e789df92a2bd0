#!/usr/bin/env python3
"""Runs `cargo test` and says at its end what ran, what was skipped and why.

    scripts/report-tests.py cargo test --release --workspace ...
    scripts/report-tests.py --times cargo test --release --workspace ...
    scripts/report-tests.py --self-test

Adds `-- --show-output`, so that tests that pass say what they print, and takes from that the lines that begin with
`skipped:`, as each test says that lacks something of this machine. All else of what passing tests print is not shown.
With `--times` it lists the slowest tests, too: an unstable option of the test harness, for which the programs (but not the
compiler, which would build anew) run with RUSTC_BOOTSTRAP=1.

Ends as cargo ends. The last line is for machines: `N passed, N failed, N skipped`.
"""

import contextlib
import io
import os
import re
import subprocess
import sys

SLOWEST = 8  # programs in the list
SLOWEST_TESTS = 40

PROGRAM = re.compile(r"^\s+(?:Running (unittests )?\S+ \((?:.*/)?(\w+)-\w+\)|Doc-tests (\w+))$")
RESULT = re.compile(r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored; .*finished in ([\d.]+)s")
TEST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:, (.*?))?(?: <([\d.]+)s>)?$")
OUTPUT = re.compile(r"^---- (\S+) stdout ----$")
SKIPPED = re.compile(r"^skipped: (.*)$")
MARKUP = re.compile(r"\x1b\[[0-9;]*m")


def name_of(units, program, documents):
    if documents:
        return f"{documents.removeprefix('orrery_')} (examples)"
    return f"{program.removeprefix('orrery_')} (units)" if units else program


class Report:
    """What the lines of cargo and of its programs tell."""

    def __init__(self):
        self.program = "?"
        self.programs = []  # name, tests, seconds
        self.passed = self.failed = 0
        self.failures = []
        self.times = []  # seconds, test
        self.skipped = {}  # reason -> tests
        self.ignored = {}  # reason -> tests
        self.is_output = False  # within what passing tests have printed
        self.of_test = None

    def line(self, text):
        """Takes a line, and says whether it is to be shown."""
        text = MARKUP.sub("", text.rstrip("\n"))
        if found := PROGRAM.match(text):
            self.program = name_of(*found.groups())
            self.is_output = False
        elif found := RESULT.match(text):
            passed, failed, _, seconds = found.groups()
            self.passed += int(passed)
            self.failed += int(failed)
            self.programs.append((self.program, int(passed) + int(failed), float(seconds)))
            self.is_output = False
        elif text == "failures:":
            self.is_output = False
        elif text == "successes:":
            self.is_output = True
        elif found := OUTPUT.match(text):
            self.of_test = f"{self.program} {found[1]}"
        elif found := SKIPPED.match(text):
            self.note(self.skipped, found[1])
        elif self.is_output:
            pass
        elif found := TEST.match(text):
            test, end, reason, seconds = found.groups()
            self.of_test = f"{self.program} {test}"
            if seconds:
                self.times.append((float(seconds), self.of_test))
            if end == "FAILED":
                self.failures.append(self.of_test)
            elif end == "ignored":
                self.note(self.ignored, reason or "no reason given")
        return not self.is_output

    def note(self, reasons, reason):
        tests = reasons.setdefault(reason, [])
        if self.of_test not in tests:
            tests.append(self.of_test)

    def count_skipped(self):
        return len({test for tests in self.skipped.values() for test in tests})

    def summary(self):
        ran = self.passed + self.failed
        seconds = sum(program[2] for program in self.programs)
        lines = ["", f"== ran {ran} tests of {len(self.programs)} programs in {seconds:.0f} s"]
        slowest = sorted(self.programs, key=lambda program: -program[2])[:SLOWEST]
        for program, tests, seconds in slowest:
            lines.append(f"   {seconds:7.1f} s  {program}, {tests} tests")
        if self.times:
            lines.append("== slowest tests, beside others at the same time")
            slowest = sorted(self.times, reverse=True)[:SLOWEST_TESTS]
            lines.extend(f"   {seconds:7.1f} s  {test}" for seconds, test in slowest)
        if self.failures:
            lines.append(f"== failed: {len(self.failures)}")
            lines.extend(f"   {test}" for test in self.failures)
        if self.ignored:
            lines.append("== only run when asked for by name (`-- --ignored NAME`)")
            lines.extend(listed(self.ignored))
        if self.skipped:
            lines.append(f"== skipped, wholly or in part, for what this machine lacks: {self.count_skipped()}")
            lines.extend(listed(self.skipped))
        else:
            lines.append("== skipped: none")
        lines.append(f"{self.passed} passed, {self.failed} failed, {self.count_skipped()} skipped")
        return "\n".join(lines)


def listed(reasons):
    for reason in sorted(reasons):
        yield f"   {reason}"
        for test in reasons[reason]:
            yield f"      {test}"


def with_times():
    """An environment in which the programs that cargo runs, and they alone, may use what is unstable."""
    about = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    host = re.search(r"^host: (\S+)$", about, re.MULTILINE)[1].upper().replace("-", "_")
    return {**os.environ, f"CARGO_TARGET_{host}_RUNNER": "env RUSTC_BOOTSTRAP=1"}


def run(command, is_timed=False):
    """The command's own status, whatever becomes of the report."""
    if "--" not in command:
        command = [*command, "--"]
    command = [*command, "--show-output"]
    if is_timed:
        command += ["-Zunstable-options", "--report-time"]
    environment = with_times() if is_timed else None
    report = Report()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as child:
        try:
            for line in child.stdout:
                if report.line(line):
                    sys.stdout.write(line)
                    sys.stdout.flush()
        except KeyboardInterrupt:
            pass
    status = child.returncode
    print(report.summary())
    if status == 0 and report.failed:
        print("report-tests: cargo says that all is well, and tests failed", file=sys.stderr)
        return 1
    return 128 - status if status < 0 else status


EXAMPLE = """\
   Compiling orrery-sql v0.1.0
     Running unittests src/lib.rs (target/release/deps/orrery_sql-1)
     Running tests/sql/main.rs (target/release/deps/sql-2)

running 4 tests
test a::ignored ... ignored, it takes hours
test a::passes ... ok <0.250s>
test b::fails ... FAILED
test b::skips ... ok

successes:

---- a::passes stdout ----
test result: none of ours
much

---- b::skips stdout ----
skipped: no psql

successes:
    a::passes
    b::skips

failures:

---- b::fails stdout ----
why

failures:
    b::fails

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s
   Doc-tests orrery_storage

running 0 tests

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


def self_test():
    report = Report()
    shown = [line for line in EXAMPLE.splitlines() if report.line(line)]
    assert "much" not in shown and "why" in shown and "test b::fails ... FAILED" in shown, shown
    assert (report.passed, report.failed, len(report.programs)) == (2, 1, 2), vars(report)
    assert report.failures == ["sql b::fails"], report.failures
    assert report.skipped == {"no psql": ["sql b::skips"]}, report.skipped
    assert list(report.ignored) == ["it takes hours"], report.ignored
    assert report.summary().endswith("\n2 passed, 1 failed, 1 skipped"), report.summary()
    assert report.times == [(0.25, "sql a::passes")], report.times
    names = [program[0] for program in report.programs]
    assert names == ["sql", "storage (examples)"], names
    with contextlib.redirect_stdout(io.StringIO()):
        for code in (0, 3):
            command = [sys.executable, "-c", f"import sys; print('x'); sys.exit({code})"]
            assert run(command) == code, code
        assert run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]) == 137
    print("report-tests: all well")


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif sys.argv[1:2] == ["--times"]:
        sys.exit(run(sys.argv[2:], is_timed=True))
    elif len(sys.argv) > 1:
        sys.exit(run(sys.argv[1:]))
    else:
        sys.exit(__doc__)
