-- How many reviews the people of each country wrote.
SELECT person.country, count(*) FROM review JOIN person ON review.reviewer = person.id GROUP BY person.country
