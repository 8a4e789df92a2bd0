select date '9999-12-31' + interval '178956970 years', date_trunc('month', at), date_bin(interval '15 minutes', at), day + 3 from item;
select to_timestamp(1e300), make_date(2147483647, 1, 1), extract(epoch from at), to_char(at, '%Y-%m-%d') from item
