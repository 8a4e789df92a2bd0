"""SQLAlchemy 2 with psycopg against a server whose address (host:port) is the argument: reflection, and rows by its own classes."""

import decimal
import sys

import sqlalchemy as sa
from sqlalchemy import orm

engine = sa.create_engine(f"postgresql+psycopg://tester@{sys.argv[1]}/orrery")
DEFINITIONS = """
create table maker (id integer primary key, name varchar(40) not null unique, since date default '2026-01-01');
create table item (
    id bigint primary key, maker integer not null references maker (id), price numeric(10,2) check (price > 0), note text);
create index item_maker_price on item (maker, price);
create view dear as select id, price from item where price > 10
"""

with engine.begin() as connection:
    connection.exec_driver_sql(DEFINITIONS)

inspector = sa.inspect(engine)
assert "public" in inspector.get_schema_names()
assert sorted(inspector.get_table_names()) == ["item", "maker"], inspector.get_table_names()
assert inspector.get_view_names() == ["dear"], inspector.get_view_names()
assert inspector.has_table("item") and not inspector.has_table("nothing")
columns = {column["name"]: column for column in inspector.get_columns("item")}
assert list(columns) == ["id", "maker", "price", "note"], columns
assert isinstance(columns["id"]["type"], sa.BIGINT) and not columns["id"]["nullable"]
assert (columns["price"]["type"].precision, columns["price"]["type"].scale) == (10, 2)
assert columns["note"]["nullable"]
columns = {column["name"]: column for column in inspector.get_columns("maker")}
assert columns["name"]["type"].length == 40
assert "2026-01-01" in columns["since"]["default"], columns["since"]
assert inspector.get_pk_constraint("item")["constrained_columns"] == ["id"]
(key,) = inspector.get_foreign_keys("item")
assert (key["constrained_columns"], key["referred_table"], key["referred_columns"]) == (["maker"], "maker", ["id"]), key
indexes = {index["name"]: index for index in inspector.get_indexes("item")}
assert indexes["item_maker_price"]["column_names"] == ["maker", "price"], indexes
assert [it["column_names"] for it in inspector.get_unique_constraints("maker")] == [["name"]]
(check,) = inspector.get_check_constraints("item")
assert "price" in check["sqltext"], check
assert [column["name"] for column in inspector.get_columns("dear")] == ["id", "price"]

metadata = sa.MetaData()
metadata.reflect(engine)
assert set(metadata.tables) == {"item", "maker"}


class Base(orm.DeclarativeBase):
    pass


class Maker(Base):
    __table__ = metadata.tables["maker"]
    items = orm.relationship("Item", back_populates="by")


class Item(Base):
    __table__ = metadata.tables["item"]
    by = orm.relationship("Maker", back_populates="items")


with orm.Session(engine) as session:
    session.add(Maker(id=1, name="Ada", items=[Item(id=10, price=decimal.Decimal("12.50")), Item(id=11, price=decimal.Decimal("3"))]))
    session.commit()
with orm.Session(engine) as session:
    dear = session.scalars(sa.select(Item).join(Item.by).where(Maker.name == "Ada", Item.price > 10)).all()
    assert [(item.id, item.price, item.by.name) for item in dear] == [(10, decimal.Decimal("12.50"), "Ada")]
    session.delete(session.get(Item, 11))
    session.commit()
    assert session.scalar(sa.select(sa.func.count()).select_from(Item)) == 1
print("reflected")
