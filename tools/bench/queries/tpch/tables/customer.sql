create table customer (
    c_custkey bigint not null primary key,
    c_name varchar(25) not null,
    c_address varchar(40) not null,
    c_nationkey bigint not null references nation (n_nationkey),
    c_phone varchar(15) not null,
    c_acctbal decimal(15, 2) not null,
    c_mktsegment varchar(10) not null,
    c_comment varchar(117) not null
)
