select name || name, upper(name), concat_ws('-', name, id), case when flag then repeat('x', 20000) end from item;
select sum(id) over (order by id rows between 3 preceding and 9223372036854775807 following), lag(id, 2) over (order by id) from item;
select string_agg(name, ', ' order by id), array_agg(price), percentile_cont(0.5) within group (order by weight) from item join part on part.item = item.id group by flag;
select * from generate_series(1, 100) t(n) order by repeat('x', n % 7) limit 3 offset 2
