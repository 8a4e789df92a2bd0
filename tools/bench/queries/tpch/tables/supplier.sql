create table supplier (
    s_suppkey bigint not null primary key,
    s_name varchar(25) not null,
    s_address varchar(40) not null,
    s_nationkey bigint not null references nation (n_nationkey),
    s_phone varchar(15) not null,
    s_acctbal decimal(15, 2) not null,
    s_comment varchar(101) not null
)
