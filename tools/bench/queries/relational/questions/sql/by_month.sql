-- Reviews and their average rating by month.
SELECT year(date) AS y, month(date) AS m, count(*), avg(rating1) FROM review WHERE rating1 IS NOT NULL GROUP BY y, m
