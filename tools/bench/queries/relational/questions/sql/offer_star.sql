-- Four properties of every offer, exported.
SELECT offer.iri, product.iri, vendor.iri, price, delivery_days FROM offer JOIN product ON offer.product = product.id JOIN vendor ON offer.vendor = vendor.id
