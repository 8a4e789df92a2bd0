-- How many offers of a quarter arrive within two days.
SELECT count(*) FROM offer WHERE delivery_days <= 2 AND valid_from >= TIMESTAMP '2008-04-01' AND valid_from < TIMESTAMP '2008-07-01'
