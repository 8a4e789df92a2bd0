-- The first and the last day of each vendor's offers.
SELECT vendor.iri, strftime(first, '%Y-%m-%dT%H:%M:%S'), strftime(last, '%Y-%m-%dT%H:%M:%S')
FROM (SELECT vendor, min(valid_from) AS first, max(valid_to) AS last FROM offer GROUP BY vendor) JOIN vendor ON vendor = vendor.id
