-- The tables of the Berlin SPARQL Benchmark's data as one who knows them would make them: a number for each thing,
-- keys between tables in numbers, a type for each column. They are filled from the CSV files of queries/relational/tables, in
-- the folder of the variable `csv`; IRIs stand once, in the table of their thing.
CREATE MACRO rows_of(name) AS TABLE
  SELECT * FROM read_csv(getvariable('csv') || '/' || name || '.csv', header = true, all_varchar = true, delim = ',', quote = '"', escape = '"', nullstr = '');

CREATE TABLE product_type AS SELECT row_number() OVER ()::INTEGER AS id, * FROM rows_of('product_type');
CREATE TABLE feature AS SELECT row_number() OVER ()::INTEGER AS id, * FROM rows_of('feature');
CREATE TABLE producer AS SELECT row_number() OVER ()::INTEGER AS id, * FROM rows_of('producer');
CREATE TABLE vendor AS SELECT row_number() OVER ()::INTEGER AS id, * FROM rows_of('vendor');
CREATE TABLE person AS SELECT row_number() OVER ()::INTEGER AS id, * FROM rows_of('person');

CREATE TABLE product AS
  SELECT row_number() OVER ()::INTEGER AS id, p.iri, p.label, p.comment, producer.id AS producer,
    numeric1::INTEGER AS numeric1, numeric2::INTEGER AS numeric2, numeric3::INTEGER AS numeric3,
    numeric4::INTEGER AS numeric4, numeric5::INTEGER AS numeric5, numeric6::INTEGER AS numeric6,
    text1, text2, text3, text4, text5, text6
  FROM rows_of('product') AS p JOIN producer ON p.producer = producer.iri;

CREATE TABLE product_feature AS
  SELECT product.id AS product, feature.id AS feature
  FROM rows_of('product_feature') AS r JOIN product ON r.product = product.iri JOIN feature ON r.feature = feature.iri;

CREATE TABLE product_in_type AS
  SELECT product.id AS product, product_type.id AS type
  FROM rows_of('product_in_type') AS r JOIN product ON r.product = product.iri JOIN product_type ON r.type = product_type.iri;

CREATE TABLE offer AS
  SELECT row_number() OVER ()::INTEGER AS id, o.iri, product.id AS product, vendor.id AS vendor, price::DOUBLE AS price,
    valid_from::TIMESTAMP AS valid_from, valid_to::TIMESTAMP AS valid_to, delivery_days::INTEGER AS delivery_days, webpage
  FROM rows_of('offer') AS o JOIN product ON o.product = product.iri JOIN vendor ON o.vendor = vendor.iri;

CREATE TABLE review AS
  SELECT row_number() OVER ()::INTEGER AS id, r.iri, product.id AS product, person.id AS reviewer, date::TIMESTAMP AS date,
    title, text, language, rating1::INTEGER AS rating1, rating2::INTEGER AS rating2, rating3::INTEGER AS rating3,
    rating4::INTEGER AS rating4
  FROM rows_of('review') AS r JOIN product ON r.product = product.iri JOIN person ON r.reviewer = person.iri;

CHECKPOINT;
