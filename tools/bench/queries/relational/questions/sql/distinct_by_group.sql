-- How many products each vendor has offers of.
SELECT vendor.iri, products FROM (SELECT vendor, count(DISTINCT product) AS products FROM offer GROUP BY vendor) JOIN vendor ON vendor = vendor.id
