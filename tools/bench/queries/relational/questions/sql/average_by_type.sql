-- The average ratings of the products of each type.
SELECT product_type.iri, average, number FROM (
  SELECT type, avg(rating1) AS average, count(rating1) AS number FROM review JOIN product_in_type ON review.product = product_in_type.product
  WHERE rating1 IS NOT NULL GROUP BY type) JOIN product_type ON type = product_type.id
