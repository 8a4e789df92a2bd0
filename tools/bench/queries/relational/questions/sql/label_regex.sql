-- How many products have a label of this form.
SELECT count(*) FROM product WHERE regexp_matches(label, '^[a-m].*ing', 'i')
