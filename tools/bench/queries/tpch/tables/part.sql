create table part (
    p_partkey bigint not null primary key,
    p_name varchar(55) not null,
    p_mfgr varchar(25) not null,
    p_brand varchar(10) not null,
    p_type varchar(25) not null,
    p_size integer not null,
    p_container varchar(10) not null,
    p_retailprice decimal(15, 2) not null,
    p_comment varchar(23) not null
)
