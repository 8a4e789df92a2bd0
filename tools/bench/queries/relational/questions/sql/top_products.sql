-- The ten products with most reviews.
SELECT product.iri, reviews FROM (SELECT product, count(*) AS reviews FROM review GROUP BY product) JOIN product ON product = product.id
ORDER BY reviews DESC, product.iri LIMIT 10
