create table region (
    r_regionkey bigint not null primary key,
    r_name varchar(25) not null,
    r_comment varchar(152) not null
)
