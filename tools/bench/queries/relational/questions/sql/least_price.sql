-- The least price of each product.
SELECT product.iri, least FROM (SELECT product, min(price) AS least FROM offer GROUP BY product) JOIN product ON product = product.id
