-- Which vendors offer products of which producers.
SELECT vendor.iri, producer.iri FROM (SELECT DISTINCT vendor, producer FROM offer JOIN product ON offer.product = product.id) AS pair
JOIN vendor ON pair.vendor = vendor.id JOIN producer ON pair.producer = producer.id
