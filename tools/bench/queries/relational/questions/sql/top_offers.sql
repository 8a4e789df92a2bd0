-- The hundred offers that take longest to arrive and end last.
SELECT iri, delivery_days, strftime(valid_to, '%Y-%m-%dT%H:%M:%S') FROM offer ORDER BY delivery_days DESC, valid_to DESC, iri LIMIT 100
