-- How many people wrote a review with a first rating.
SELECT count(DISTINCT reviewer) FROM review WHERE rating1 IS NOT NULL
