"""psycopg 3 against a server whose address (host:port) is the argument; fails where something is not as PostgreSQL does it."""

import datetime
import decimal
import sys
import threading
import time

import psycopg

HOST, PORT = sys.argv[1].rsplit(":", 1)
PASSWORD = sys.argv[2] if len(sys.argv) > 2 else None


def connect(**options):
    options.setdefault("autocommit", True)
    return psycopg.connect(
        host=HOST, port=PORT, user="tester", dbname="orrery", password=PASSWORD, **options
    )


def refused(state, do):
    try:
        do()
    except psycopg.Error as error:
        assert error.sqlstate == state, (error.sqlstate, state, str(error))
        return error
    raise AssertionError(f"{state} was expected")


ROW = (
    True,
    -7,
    2_000_000_000,
    -(2**62),
    decimal.Decimal("-12345678901234567.89"),
    0.5,
    1e300,
    datetime.date(2026, 11, 23),
    datetime.datetime(1999, 12, 31, 23, 59, 59, 500000),
    datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
    "it's ä \u20ac",
    b"\x00\xff\\",
)
TYPES = "boolean, smallint, integer, bigint, numeric(19,2), real, double precision, date, timestamp, timestamptz, text, bytea".split(", ")


def types_in_both_formats(connection):
    columns = ", ".join(f"c{i} {t}" for i, t in enumerate(TYPES))
    connection.execute(f"create table types (id int primary key, {columns})")
    places = ", ".join(["%s"] * (len(TYPES) + 1))
    connection.execute(f"insert into types values ({places})", (1, *ROW))
    connection.execute(f"insert into types values ({places})", (2, *[None] * len(TYPES)))
    binary = ", ".join(["%b"] * len(TYPES))
    connection.execute(f"insert into types values (3, {binary})", ROW)
    for is_binary in (False, True):
        rows = connection.execute("select * from types order by id", binary=is_binary).fetchall()
        assert rows == [(1, *ROW), (2, *[None] * len(TYPES)), (3, *ROW)], (is_binary, rows)
    for i, value in enumerate(ROW):
        for place in ("%s", "%b", "%t"):
            found = connection.execute(f"select id from types where c{i} = {place} order by id", (value,)).fetchall()
            assert found == [(1,), (3,)], (TYPES[i], place, found)
    described = connection.execute("select * from types where false").description
    names = [connection.adapters.types[column.type_code].name for column in described]
    assert names == ["int4", "bool", "int2", "int4", "int8", "numeric", "float4", "float8", "date", "timestamp", "timestamptz", "text", "bytea"], names
    assert connection.execute("select c5, c6 from types where id = 1").fetchone() == (0.5, 1e300)


def statements_and_portions(connection):
    connection.execute("create table many (id bigint primary key, name text not null)")
    with connection.cursor() as cursor:
        cursor.executemany(
            "insert into many values (%s, %s)", [(i, f"name {i}") for i in range(2_000)]
        )
        assert cursor.rowcount == 2_000
        returned = cursor.execute("insert into many values (%s, %s) returning id, upper(name) as n", (5000, "x"))
        assert returned.fetchall() == [(5000, "X")] and cursor.description[1].name == "n"
        # Prepared after a few times, and forgotten on the way.
        for i in range(20):
            found = cursor.execute("select name from many where id = %s", (i,)).fetchone()
            assert found == (f"name {i}",)
        assert cursor.execute("select %s", ("x",)).fetchone() == ("x",)
        assert cursor.execute("select %s::int + 1", (41,)).fetchone() == (42,)
        assert cursor.execute("select 1 where false").fetchall() == []
        rows = list(cursor.stream("select id from many order by id"))
        assert len(rows) == 2_001
        assert cursor.execute("").statusmessage in (None, "")
    many = "select id from many where id < 3 order by id; select 'b'"
    cursor = connection.execute(many)
    assert cursor.fetchall() == [(0,), (1,), (2,)]
    assert cursor.nextset() and cursor.fetchall() == [("b",)]


def errors(connection):
    error = refused("42P01", lambda: connection.execute("select * from nowhere"))
    assert "nowhere" in str(error)
    error = refused("42601", lambda: connection.execute("selec 1"))
    assert error.diag.severity_nonlocalized == "ERROR" and error.diag.message_primary
    refused("42703", lambda: connection.execute("select nothing from many"))
    error = refused("23505", lambda: connection.execute("insert into many values (1, 'again')"))
    assert "(1)" in error.diag.message_detail, error.diag.message_detail
    objects = ("schema_name", "table_name", "column_name", "constraint_name")
    named = lambda error: tuple(getattr(error.diag, name) for name in objects)
    assert named(error) == ("public", "many", None, "many_pkey"), named(error)
    error = refused("23502", lambda: connection.execute("insert into many values (9999, null)"))
    assert named(error) == ("public", "many", "name", None), named(error)
    connection.execute("create schema s")
    connection.execute("create table s.part (a int, b bigint constraint of_many references many, c int unique, constraint small check (a < 10))")
    error = refused("23514", lambda: connection.execute("insert into s.part values (11)"))
    assert named(error) == ("s", "part", None, "small"), named(error)
    error = refused("23503", lambda: connection.execute("insert into s.part values (1, -1)"))
    assert named(error) == ("s", "part", None, "of_many"), named(error)
    connection.execute("insert into s.part values (1, 1, 1)")
    error = refused("23503", lambda: connection.execute("delete from many where id = 1"))
    assert named(error) == ("s", "part", None, "of_many"), named(error)
    error = refused("23505", lambda: connection.execute("insert into s.part values (1, 1, 1)"))
    assert named(error) == ("s", "part", None, "part_c_key"), named(error)
    connection.execute("insert into s.part values (1, 1)")
    error = refused("23505", lambda: connection.execute("create unique index twice on s.part (a)"))
    assert named(error) == ("s", "part", None, "twice"), named(error)
    connection.execute("drop table s.part")
    refused("22P02", lambda: connection.execute("insert into many values (%s, 'x')", ("y",)))
    refused("22012", lambda: connection.execute("select 1 / (id - id) from many"))
    # And it goes on.
    assert connection.execute("select 1").fetchone() == (1,)


def transactions(connection):
    # A text of several statements is one transaction.
    refused("23505", lambda: connection.execute("insert into many values (7000, 'a'); insert into many values (1, 'b')"))
    assert connection.execute("select count(*) from many where id = 7000").fetchone() == (0,)
    status = psycopg.pq.TransactionStatus
    with connect(autocommit=False) as other:
        assert other.info.transaction_status == status.IDLE
        other.execute("insert into many values (7001, 'a')")
        assert other.info.transaction_status == status.INTRANS
        other.execute("savepoint s")
        refused("23505", lambda: other.execute("insert into many values (7001, 'a')"))
        assert other.info.transaction_status == status.INERROR
        refused("25P02", lambda: other.execute("select 1"))
        other.execute("rollback to s")
        assert other.info.transaction_status == status.INTRANS
        other.commit()
        assert other.info.transaction_status == status.IDLE
        other.execute("delete from many where id = 7001")
        other.rollback()
    assert connection.execute("select count(*) from many where id = 7001").fetchone() == (1,)
    # Changes of one pipeline are one transaction.
    try:
        with connection.pipeline():
            connection.execute("insert into many values (7002, 'a')")
            connection.execute("insert into many values (7001, 'b')")
    except psycopg.errors.UniqueViolation:
        pass
    assert connection.execute("select count(*) from many where id = 7002").fetchone() == (0,)
    with connection.pipeline():
        connection.execute("insert into many values (7003, 'a')")
        connection.execute("insert into many values (7004, 'b')")
    assert connection.execute("select count(*) from many where id > 7002").fetchone() == (2,)
    # A client that goes leaves nothing, and holds nobody up.
    gone = connect(autocommit=False)
    gone.execute("insert into many values (8000, 'a')")
    gone.pgconn.finish()
    connection.execute("insert into many values (8001, 'a')")
    assert connection.execute("select count(*) from many where id = 8000").fetchone() == (0,)


def copies(connection):
    connection.execute("create table copied (id int primary key, name text, price numeric(10,2), at date)")
    rows = [(i, None if i % 7 == 0 else f"na\\me\t{i}\n", decimal.Decimal(i) / 4, datetime.date(2026, 1, 1)) for i in range(5_000)]
    with connection.cursor() as cursor:
        with cursor.copy("copy copied (id, name, price, at) from stdin") as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == 5_000, cursor.rowcount
        with cursor.copy("copy (select id, name, price, at from copied order by id) to stdout") as copy:
            copy.set_types(["int4", "text", "numeric", "date"])
            assert list(copy.rows()) == rows
        with cursor.copy("copy copied to stdout (format csv, header)") as copy:
            text = b"".join(copy).decode()
        assert text.startswith("id,name,price,at\n0,,0.00,2026-01-01\n"), text[:60]
        with cursor.copy("copy (select 1 where false) to stdout") as copy:
            assert list(copy) == []
        # As much as goes to new files of the table, in pieces that are cut anywhere.
        with cursor.copy("copy copied from stdin csv") as copy:
            many = "".join(f"{i},name {i},,\n" for i in range(10_000, 160_000)).encode()
            for start in range(0, len(many), 100_001):
                copy.write(many[start : start + 100_001])
        assert cursor.rowcount == 150_000
    assert connection.execute("select count(*), min(id), max(id) from copied").fetchone() == (155_000, 0, 159_999)

    def send(data, statement="copy copied from stdin", end=None):
        with connection.cursor().copy(statement) as copy:
            copy.write(data)
            if end:
                raise end

    error = refused("22P02", lambda: send("200000\tx\t1\t2026-01-01\nno number\tx\t1\t2026-01-01\n"))
    assert "line 2" in error.diag.context, error.diag.context
    error = refused("23505", lambda: send("200000\tx\t1\t2026-01-01\n1\tx\t1\t2026-01-01\n"))
    assert "(1)" in error.diag.message_detail
    refused("0A000", lambda: send("", "copy copied from stdin (format binary)"))
    refused("42P01", lambda: send("", "copy nowhere from stdin"))
    # A client that gives up.
    try:
        send("200000\tx\t1\t2026-01-01\n", end=KeyError("enough"))
    except KeyError:
        pass
    # One that goes in the middle, and one that dawdles: nobody waits for either.
    gone, slow = connect(), connect()
    for other in (gone, slow):
        other.pgconn.send_query(b"copy copied (id) from stdin")
        while other.pgconn.is_busy():
            other.pgconn.consume_input()
        assert other.pgconn.get_result().status == psycopg.pq.ExecStatus.COPY_IN
        other.pgconn.put_copy_data(b"300000\n")
        other.pgconn.flush()
    gone.pgconn.finish()
    connection.execute("insert into copied (id) values (300001)")
    slow.pgconn.put_copy_end()
    result = slow.pgconn.get_result()
    assert (result.status, result.command_tuples) == (psycopg.pq.ExecStatus.COMMAND_OK, 1), result.error_message
    slow.pgconn.finish()
    assert connection.execute("select id from copied where id >= 200000 order by id").fetchall() == [(300000,), (300001,)]
    # Within a transaction, which has failed with it.
    with connect(autocommit=False) as other:
        other.execute("insert into copied (id) values (400000)")
        with other.cursor().copy("copy copied (id) from stdin") as copy:
            copy.write("400001\n")
        other.commit()
        refused("23505", lambda: other.execute("insert into copied (id) values (400000)"))
        other.rollback()
        try:
            with other.cursor().copy("copy copied (id) from stdin") as copy:
                copy.write("400002\n")
                raise KeyError("enough")
        except KeyError:
            pass
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        other.rollback()
    assert connection.execute("select id from copied where id >= 400000 order by id").fetchall() == [(400000,), (400001,)]


def cursors(connection):
    refused("25P01", lambda: connection.execute("declare c cursor for select 1"))
    with connect(autocommit=False) as other:
        with other.cursor(name="portions") as cursor:
            cursor.itersize = 300
            cursor.execute("select id, name from many where id < %s order by id", (2_000,))
            assert [column.name for column in cursor.description] == ["id", "name"]
            assert cursor.fetchone() == (0, "name 0")
            assert cursor.fetchmany(2) == [(1, "name 1"), (2, "name 2")]
            # What is changed meanwhile is not seen.
            other.execute("delete from many where id = 1500")
            assert [row[0] for row in cursor] == list(range(3, 2_000))
            assert cursor.fetchone() is None
        other.rollback()
        with other.cursor(name="binary", binary=True) as cursor:
            cursor.execute("select 7::int as seven, 0.5::double precision")
            assert cursor.fetchall() == [(7, 0.5)]
        other.rollback()
        other.execute("declare one cursor for select 1 union all select 2 order by 1")
        refused("42P03", lambda: other.execute("declare one cursor for select 1"))
        other.rollback()
        other.execute('declare "Two" no scroll cursor without hold for select id from many order by id')
        found = other.execute('fetch 3 from "Two"')
        assert (found.statusmessage, found.fetchall()) == ("FETCH 3", [(0,), (1,), (2,)])
        assert other.execute('fetch next from "Two"').fetchall() == [(3,)]
        assert other.execute('fetch 0 from "Two"').fetchall() == []
        other.execute('close "Two"')
        refused("34000", lambda: other.execute('fetch 1 from "Two"'))
        other.rollback()
        refused("34000", lambda: other.execute("fetch 1 from one"))
        other.rollback()
        refused("0A000", lambda: other.execute("declare c scroll cursor for select 1"))
        other.rollback()
        other.execute("declare c cursor for select 1")
        refused("55000", lambda: other.execute("fetch backward 1 from c"))


def names(connection):
    def called(text, *values):
        return [column.name for column in connection.execute(text, values or None).description]

    assert called("select 1, 'x', id, max(name), count(*), id::text, 1::int, current_date from many group by id") == [
        "?column?", "?column?", "id", "max", "count", "id", "int4", "current_date"]
    assert connection.execute("select id, id, 1, 1 from many where id = 5").fetchall() == [(5, 5, 1, 1)]
    for _ in range(8):
        found = connection.execute("select id, name, id from many where id = %s", (5,))
        assert found.fetchall() == [(5, "name 5", 5)]
    assert called("select id, name, id from many where id = %s", 5) == ["id", "name", "id"]
    assert called("select *, id from many limit 1") == ["id", "name", "id"]
    assert connection.execute("select count + 1 from (select count(*) from many where id < 3) as c").fetchone() == (4,)
    assert connection.execute("select distinct lower(name) from many where id < 3 order by lower(name)").fetchall() == [("name 0",), ("name 1",), ("name 2",)]
    assert connection.execute("select id % 2, count(*) from many where id < 3 group by id % 2 order by count(*) desc").fetchall() == [(0, 2), (1, 1)]
    assert connection.execute("select id::text from many where id < 12 order by id limit 4").fetchall() == [("0",), ("1",), ("10",), ("11",)]
    assert connection.execute("insert into many values (6000, 'x') returning id, id, 1").fetchall() == [(6000, 6000, 1)]
    refused("42701", lambda: connection.execute("create table twice as select id, id from many"))
    refused("42701", lambda: connection.execute("create view twice as select id, id from many"))
    connection.execute("create view counted as select count(*), max(id) from many")
    assert called("select * from counted") == ["count", "max"]


def settings(connection):
    assert connection.info.parameter_status("server_encoding") == "UTF8"
    assert connection.info.parameter_status("standard_conforming_strings") == "on"
    assert connection.info.server_version >= 150000
    connection.execute("set application_name = 'tester'")
    assert connection.info.parameter_status("application_name") == "tester"
    assert connection.execute("show application_name").fetchone() == ("tester",)
    connection.execute("reset application_name")
    assert connection.execute("show application_name").fetchone() != ("tester",)
    refused("42704", lambda: connection.execute("set nonsense = 1"))
    refused("22023", lambda: connection.execute("set timezone = 'Europe/Berlin'"))
    connection.execute("prepare p (int) as select $1 + 1")
    assert connection.execute("execute p (4)").fetchone() == (5,)
    connection.execute("deallocate p")
    refused("26000", lambda: connection.execute("execute p (4)"))
    with connect(autocommit=False) as other:
        other.execute("set transaction isolation level serializable, read only")
        refused("25006", lambda: other.execute("delete from many"))
    connection.execute("discard all")


def cancel(connection):
    slow = "select count(*) from generate_series(1, 1000000000000) as g (v) where v % 7 = 3"
    timer = threading.Timer(0.3, connection.cancel)
    timer.start()
    refused("57014", lambda: connection.execute(slow))
    timer.join()
    connection.execute("set statement_timeout = '200ms'")
    refused("57014", lambda: connection.execute(slow))
    connection.execute("reset statement_timeout")
    assert connection.execute("select 1").fetchone() == (1,)


def main():
    with connect() as connection:
        for step in (types_in_both_formats, statements_and_portions, errors, transactions, copies, cursors, names, settings, cancel):
            started = time.monotonic()
            step(connection)
            print(f"{step.__name__}: {time.monotonic() - started:.2f} s", flush=True)


main()
