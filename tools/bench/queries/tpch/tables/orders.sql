create table orders (
    o_orderkey bigint not null primary key,
    o_custkey bigint not null references customer (c_custkey),
    o_orderstatus varchar(1) not null,
    o_totalprice decimal(15, 2) not null,
    o_orderdate date not null,
    o_orderpriority varchar(15) not null,
    o_clerk varchar(15) not null,
    o_shippriority integer not null,
    o_comment varchar(79) not null
)
