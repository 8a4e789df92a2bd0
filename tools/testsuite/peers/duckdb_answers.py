#!/usr/bin/env python3
"""DuckDB (from PyPI, `bench/peers/relational.py FOLDER setup` installs it) as the oracle of SQL: answers, a line of JSON each.

  duckdb_answers.py [FOLDER]    of packages, beside those that Python has; prints its version, then answers until its input ends:
      {"run": "..."}  ->  {} or {"error": ".."}              statements, on a database in memory
      {"ask": "..."}  ->  {"rows": [[..], ..]} or {"error": ".."}
      {"new": true}   ->  {}                                 an empty database

A value is a text with a letter before it, by what it is: n exact numbers, f floats, b booleans, t texts, d dates, s timestamps, x bytes; or null.
"""
import datetime
import decimal
import json
import sys

# Of a larger answer only so many rows come, and one more.
ROWS_MAX = 20_000
LETTERS = {"DATE": "d", "TIMESTAMP": "s"}


def value(of, kind):
    # Dates beyond those that Python has come as texts.
    if isinstance(of, str) and kind in LETTERS:
        return LETTERS[kind] + of
    if of is None:
        return None
    if isinstance(of, bool):
        return "b1" if of else "b0"
    if isinstance(of, int):
        return f"n{of}"
    if isinstance(of, decimal.Decimal):
        return f"n{of:f}"
    if isinstance(of, float):
        return f"f{of!r}"
    if isinstance(of, datetime.datetime):
        return "s" + of.isoformat(sep=" ", timespec="microseconds")
    if isinstance(of, datetime.date):
        return f"d{of.isoformat()}"
    if isinstance(of, (bytes, bytearray)):
        return "x" + bytes(of).hex()
    return f"t{of}"


def connect(duckdb):
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'")
    return connection


def main():
    sys.path[1:1] = sys.argv[1:]
    try:
        import duckdb
    except ImportError:
        print(json.dumps({"error": "there is no DuckDB"}), flush=True)
        return
    print(json.dumps({"version": duckdb.__version__}), flush=True)
    connection = connect(duckdb)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = {}
        try:
            if "new" in asked:
                connection.close()
                connection = connect(duckdb)
            elif "run" in asked:
                connection.execute(asked["run"])
            else:
                rows = connection.execute(asked["ask"]).fetchmany(ROWS_MAX + 1)
                kinds = [str(column[1]) for column in connection.description]
                answer["rows"] = [[value(*of) for of in zip(row, kinds)] for row in rows]
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


main()
