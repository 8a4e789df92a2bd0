select 1e-9223372036854775808, 0e99999, 1.5e-40::numeric(38,10);
select length(repeat('x', 1000000)), lpad('x', 2147483647), rpad('x', 9, 'yz');
select array_length(range(0, 250000)), array_resize(array[1], 2000000000), array_repeat('x', 3);
select approx_percentile_cont(0.5, 0.5, 9000000), levenshtein('kitten', 'sitting'), replace('aaa', 'a', 'bbbb');
select arrow_cast(null, 'FixedSizeList(2147483647, Int64)'), null::int[2147483647];
select abs(-9223372036854775808), gcd(-9223372036854775808, 3), round(1.5, 2147483647), power(2, 100000)
