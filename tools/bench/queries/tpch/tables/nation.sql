create table nation (
    n_nationkey bigint not null primary key,
    n_name varchar(25) not null,
    n_regionkey bigint not null references region (r_regionkey),
    n_comment varchar(152) not null
)
