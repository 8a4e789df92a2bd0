insert into item values (7, 'table', 1e2, '2026-02-03', null, null, '\x01', -0.5) returning repeat(name, 3), id;
update item set name = name || 'x', price = price * 2 where id < 3 returning *;
create table t (a int primary key, b text default repeat('y', 10) check (length(b) < 100)); insert into t select value from generate_series(1, 20);
delete from part where item in (select id from item where name like '%amp%')
