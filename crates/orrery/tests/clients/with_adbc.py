"""ADBC's driver for Arrow Flight SQL against a server: `with_adbc.py URI [PASSWORD [tls]]`; fails where something is not as it should be."""

import datetime
import decimal
import sys
import threading
import time

import adbc_driver_flightsql.dbapi as flight
import pyarrow

URI = sys.argv[1]
OPTIONS = {}
if len(sys.argv) > 2:
    OPTIONS["username"] = "tester"
    OPTIONS["password"] = sys.argv[2]
if len(sys.argv) > 3:
    OPTIONS["adbc.flight.sql.client_option.tls_skip_verify"] = "true"


def connect(**options):
    return flight.connect(URI, db_kwargs=OPTIONS, **options)


def refused(state, do):
    try:
        do()
    except flight.Error as error:
        assert f"SQLSTATE {state}" in str(error), (state, str(error))
        return error
    raise AssertionError(f"{state} was expected")


def asked(connection, text, values=None):
    with connection.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall()


def statements():
    with connect(autocommit=True) as connection:
        assert asked(connection, "create table t (a int primary key, b text not null, c numeric(10,2))") == []
        # What is asked as a query is done once.
        assert asked(connection, "insert into t values (1, 'x', 1.5)") == []
        with connection.cursor() as cursor:
            cursor.execute("insert into t values (2, 'ä', null), (3, 'z', -0.25) returning a, c")
            assert cursor.fetchall() == [(2, None), (3, decimal.Decimal("-0.25"))]
            count = cursor.adbc_statement
            count.set_sql_query("update t set c = 0 where a > 1")
            assert count.execute_update() == 2
        assert asked(connection, "select a, b, c from t order by a desc") == [
            (3, "z", decimal.Decimal("0.00")),
            (2, "ä", decimal.Decimal("0.00")),
            (1, "x", decimal.Decimal("1.50")),
        ]
        refused("42703", lambda: asked(connection, "select d from t"))
        refused("42P01", lambda: asked(connection, "select 1 from nothing"))
        refused("23505", lambda: asked(connection, "insert into t values (1, 'again', null)"))
        refused("22012", lambda: asked(connection, "select 1 / (a - a) from t"))
        refused("25001", lambda: asked(connection, "begin"))
        refused("0A000", lambda: asked(connection, "set search_path to public"))
        refused("42601", lambda: asked(connection, "select 1; select 2"))
        # The connection works on.
        assert asked(connection, "select count(*) from t") == [(3,)]


def types():
    zone = datetime.timezone.utc
    values = [
        ("boolean", True), ("smallint", -7), ("int", 2_000_000_000), ("bigint", -(2**62)),
        ("numeric(19,2)", decimal.Decimal("-12345678901234567.89")), ("real", 0.5), ("double precision", 1e300),
        ("date", datetime.date(2026, 11, 23)), ("timestamp", datetime.datetime(1999, 12, 31, 23, 59, 59, 500000)),
        ("timestamptz", datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone)), ("text", "it's ä \u20ac"), ("bytea", b"\x00\xff\\"),
    ]
    with connect(autocommit=True) as connection:
        columns = ", ".join(f"c{i} {name}" for i, (name, _) in enumerate(values))
        asked(connection, f"create table types (id int primary key, {columns})")
        places = ", ".join(f"${i + 1}" for i in range(len(values) + 1))
        with connection.cursor() as cursor:
            rows = [(1, *[value for _, value in values]), (2, *[None] * len(values))]
            cursor.execute(f"insert into types values ({places})", rows[0])
            # A NULL has no type of its own in pyarrow's rows.
            cursor.execute("insert into types (id) values ($1)", (2,))
            cursor.execute("select * from types order by id")
            table = cursor.fetch_arrow_table()
        assert [tuple(row.values()) for row in table.to_pylist()] == rows, table.to_pylist()
        kinds = [str(kind) for kind in table.schema.types]
        assert kinds == [
            "int32", "bool", "int16", "int32", "int64", "decimal128(19, 2)", "float", "double", "date32[day]",
            "timestamp[us]", "timestamp[us, tz=UTC]", "string", "binary",
        ], kinds


def parameters():
    with connect(autocommit=True) as connection:
        asked(connection, "create table p (a int primary key, b text)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into p values ($1, $2)", [(i, f"row {i}") for i in range(100)])
            assert cursor.rowcount == 100, cursor.rowcount
            # All of them or none.
            refused("23505", lambda: cursor.executemany("insert into p values ($1, $2)", [(200, "x"), (7, "y")]))
            assert asked(connection, "select count(*) from p where a = 200") == [(0,)]
            for i in (3, 99):
                cursor.execute("select b from p where a = $1", (i,))
                assert cursor.fetchall() == [(f"row {i}",)]
            refused("22P02", lambda: cursor.execute("select b from p where a = $1", ("no number",)))
            refused("42P02", lambda: asked(connection, "select b from p where a = $1"))
            # A query with several sets of values is asked for each.
            statement = cursor.adbc_statement
            statement.set_sql_query("select a from p where a < $1 order by a")
            statement.prepare()
            batch = pyarrow.RecordBatch.from_pydict({"1": pyarrow.array([1, 2], pyarrow.int64())})
            cursor._bind(batch)
            handle, _ = statement.execute_query()
            rows = pyarrow.RecordBatchReader._import_from_c(handle.address).read_all()
            assert rows.column(0).to_pylist() == [0, 0, 1], rows
            schema = cursor.adbc_prepare("select a from p where a = $1 and b = $2")
            assert schema is not None and len(schema) == 2, schema


def transactions():
    with connect() as one, connect(autocommit=True) as other:
        asked(other, "create table tx (a int primary key)")
        asked(one, "insert into tx values (1)")
        assert asked(one, "select a from tx") == [(1,)]
        assert asked(other, "select a from tx") == []
        one.rollback()
        assert asked(one, "select a from tx") == []
        one.commit()
        asked(one, "insert into tx values (2)")
        # What was asked before the end is of then.
        with one.cursor() as cursor:
            cursor.execute("select a from tx")
            one.commit()
            assert cursor.fetchall() == [(2,)]
        assert asked(other, "select a from tx") == [(2,)]
        refused("23505", lambda: asked(one, "insert into tx values (2)"))
        refused("25P02", lambda: asked(one, "select a from tx"))
        one.rollback()
        commits = asked(one, "select count(*) from tx")
        asked(other, "insert into tx values (3)")
        refused("40001", lambda: asked(one, "insert into tx values (4)"))
        one.rollback()
        assert commits == [(1,)]
    # Who goes without an end leaves nothing, and holds nobody up.
    gone = connect()
    asked(gone, "insert into tx values (5)")
    gone.close()
    with connect(autocommit=True) as other:
        asked(other, "insert into tx values (6)")
        assert asked(other, "select a from tx order by a") == [(2,), (3,), (6,)]


def described():
    with connect(autocommit=True) as connection:
        asked(connection, "create schema s")
        asked(connection, "create table s.parent (a int, b text, primary key (a, b))")
        asked(connection, "create table s.child (id bigint primary key, x int, y text not null, constraint up foreign key (x, y) references s.parent (a, b))")
        asked(connection, "create view s.both as select c.id, p.b from s.child c join s.parent p on p.a = c.x and p.b = c.y")
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
        columns = connection.adbc_get_table_schema("child", db_schema_filter="s")
        assert [str(kind) for kind in columns.types] == ["int64", "int32", "string"], columns
        objects = connection.adbc_get_objects(db_schema_filter="s").read_all().to_pylist()
        assert [catalog["catalog_name"] for catalog in objects] == ["orrery"], objects
        tables = objects[0]["catalog_db_schemas"][0]["db_schema_tables"]
        tables = {table["table_name"]: table for table in tables}
        assert sorted(tables) == ["both", "child", "parent"], tables
        assert tables["both"]["table_type"] == "VIEW"
        names = [column["column_name"] for column in tables["both"]["table_columns"]]
        assert names == ["id", "b"], names
        # The driver asks for no keys.
        info = connection.adbc_get_info()
        assert info["vendor_name"] == "Orrery", info


def ingestion():
    table = pyarrow.table({
        "id": pyarrow.array(range(250_000), pyarrow.int64()),
        "name": pyarrow.array([f"name {i}" for i in range(250_000)]),
        "Price": pyarrow.array([decimal.Decimal(i) / 4 for i in range(250_000)], pyarrow.decimal128(12, 2)),
    })
    with connect(autocommit=True) as connection, connection.cursor() as cursor:
        assert cursor.adbc_ingest("big", table, mode="create") == 250_000
        assert asked(connection, 'select count(*), sum(id), max("Price") from big') == [
            (250_000, 250_000 * 249_999 // 2, decimal.Decimal("62499.75"))
        ]
        refused("42P07", lambda: cursor.adbc_ingest("big", table, mode="create"))
        small = table.slice(0, 10)
        assert cursor.adbc_ingest("big", small, mode="append") == 10
        assert asked(connection, "select count(*) from big") == [(250_010,)]
        assert cursor.adbc_ingest("big", small, mode="replace") == 10
        assert asked(connection, "select count(*) from big") == [(10,)]
        refused("42P01", lambda: cursor.adbc_ingest("none", small, mode="append"))
        # Constraints hold, and nothing is left of what fails.
        asked(connection, "create table kept (id int primary key, name text check (length(name) < 8), more int default 7)")
        refused("23514", lambda: cursor.adbc_ingest("kept", table.select(["id", "name"]), mode="append"))
        assert asked(connection, "select count(*) from kept") == [(0,)]
        assert cursor.adbc_ingest("kept", small.select(["name", "id"]), mode="append") == 10
        assert asked(connection, "select id, name, more from kept where id = 3") == [(3, "name 3", 7)]
        refused("42703", lambda: cursor.adbc_ingest("kept", small, mode="append"))


def large_answers():
    with connect(autocommit=True) as connection:
        with connection.cursor() as cursor:
            cursor.execute("select value, repeat('x', 100) as text from generate_series(1, 2000000)")
            rows = 0
            for batch in cursor.fetch_record_batch():
                rows += batch.num_rows
            assert rows == 2_000_000, rows


def cancel():
    """A statement that is canceled, and one whose client goes, leave their places to others."""
    heavy = "select count(*) from generate_series(1, 3000000) a, generate_series(1, 3000000) b"
    with connect(autocommit=True) as connection, connection.cursor() as cursor:
        failed = []

        def run():
            try:
                cursor.execute(heavy)
                cursor.fetchall()
            except Exception as error:  # Whatever the driver makes of it.
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        begin = time.monotonic()
        while thread.is_alive() and time.monotonic() < begin + 60:
            cursor.adbc_cancel()
            thread.join(0.1)
        assert failed and not thread.is_alive(), "it was not canceled"
    # More than may run at the same time: they do not if those of clients that have gone go on.
    for _ in range(40):
        with connect(autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute(heavy)
            cursor.close()
    with connect(autocommit=True) as connection:
        assert asked(connection, "select 1 as one") == [(1,)]


for step in (statements, types, parameters, transactions, described, ingestion, large_answers, cancel):
    step()
    print(f"{step.__name__}: done")
