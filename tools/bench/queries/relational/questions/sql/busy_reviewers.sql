-- The people with more than thirty reviews.
SELECT name, reviews FROM (SELECT reviewer, count(*) AS reviews FROM review GROUP BY reviewer HAVING count(*) > 30) JOIN person ON reviewer = person.id
