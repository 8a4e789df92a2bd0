create table partsupp (
    ps_partkey bigint not null references part (p_partkey),
    ps_suppkey bigint not null references supplier (s_suppkey),
    ps_availqty integer not null,
    ps_supplycost decimal(15, 2) not null,
    ps_comment varchar(199) not null,
    primary key (ps_partkey, ps_suppkey)
)
