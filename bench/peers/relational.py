#!/usr/bin/env python3
"""DuckDB (from PyPI) as the peer of `orrery bench relational` and `orrery bench compare --peer duckdb`: asked in SQL, in this process.

  relational.py PACKAGES setup                      installs it into the folder PACKAGES if it is missing there
  relational.py PACKAGES load DATABASE SCHEMA FILES THREADS
                                                    a new database from a script of SQL, which finds the folder of
                                                    files in the variable `csv`; prints its bytes and the seconds
  relational.py PACKAGES ask DATABASE THREADS       answers questions, a line of JSON each, until its input ends:
      {"sql": "..", "runs": 3, "answer": "rows"}  ->  {"seconds": [..], "rows": [[..], ..]}

What is timed is a query with all of its answer: as columns in memory ("columns"), fetched as rows ("rows"), or, of a large
answer ("file"), written as a CSV file in memory. Rows come once more, not timed.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

VERSION = "2.0.0"


def setup(packages):
    if os.path.isdir(os.path.join(packages, f"duckdb-{VERSION}.dist-info")):
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", packages, f"duckdb=={VERSION}"]
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode != 0:
        sys.exit("relational.py: pip could not install DuckDB; please install it: " + " ".join(command))


def load(database, schema, csv, threads):
    import duckdb

    for old in (database, database + ".wal"):
        if os.path.exists(old):
            os.remove(old)
    start = time.perf_counter()
    connection = duckdb.connect(database, config={"threads": threads})
    connection.execute("SET VARIABLE csv = ?", [csv])
    with open(schema, encoding="utf-8") as script:
        connection.execute(script.read())
    connection.close()
    seconds = time.perf_counter() - start
    print(json.dumps({"bytes": os.path.getsize(database), "seconds": seconds}))


def ask(database, threads):
    import duckdb

    connection = duckdb.connect(database, read_only=True, config={"threads": threads})
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        exported = os.path.join(folder, "answer.csv").replace("'", "''")
        for line in sys.stdin:
            question = json.loads(line)
            sql = question["sql"].strip().rstrip(";")
            is_file = question["answer"] == "file"
            timed = f"COPY ({sql}) TO '{exported}' (FORMAT csv)" if is_file else sql
            seconds = []
            for _ in range(question["runs"]):
                start = time.perf_counter()
                done = connection.execute(timed)
                if question["answer"] == "rows":
                    done.fetchall()
                seconds.append(time.perf_counter() - start)
            rows = connection.execute(sql).fetchall()
            print(json.dumps({"seconds": seconds, "rows": rows}, default=str), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    packages, command, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    sys.path.insert(0, packages)
    commands = {"setup": lambda: setup(packages), "load": lambda: load(*arguments), "ask": lambda: ask(*arguments)}
    if command not in commands:
        sys.exit(__doc__)
    commands[command]()
