-- Five properties of every product, exported.
SELECT product.iri, product.label, producer.iri, numeric1, numeric2, text1 FROM product JOIN producer ON producer = producer.id
