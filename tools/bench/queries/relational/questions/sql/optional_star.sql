-- All ratings of every review, exported.
SELECT iri, rating1, rating2, rating3, rating4 FROM review
