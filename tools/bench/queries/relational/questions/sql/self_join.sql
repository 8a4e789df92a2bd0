-- How many pairs of products there are for every feature that both have.
SELECT count(*) FROM product_feature AS a JOIN product_feature AS b ON a.feature = b.feature
