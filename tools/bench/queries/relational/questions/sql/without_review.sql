-- How many products have no review with a second rating of ten.
SELECT count(*) FROM product WHERE NOT EXISTS (SELECT 1 FROM review WHERE review.product = product.id AND rating2 = 10)
