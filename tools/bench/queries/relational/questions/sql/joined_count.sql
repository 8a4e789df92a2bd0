-- How many offers are of products from one country, by vendors from another one.
SELECT count(*) FROM offer JOIN product ON offer.product = product.id JOIN producer ON product.producer = producer.id
JOIN vendor ON offer.vendor = vendor.id WHERE producer.country <> vendor.country
