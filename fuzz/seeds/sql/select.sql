WITH dear AS (SELECT id, price FROM item WHERE price > $1)
SELECT d.id, count(*) AS n, sum(p.id) FILTER (WHERE p.note LIKE 'a%') AS s FROM dear d LEFT JOIN part p ON p.item = d.id
WHERE d.id IN (SELECT item FROM part) AND NOT EXISTS (SELECT 1 FROM item i WHERE i.name = 'x''y')
GROUP BY d.id HAVING count(*) > 0 ORDER BY 2 DESC NULLS LAST LIMIT 10 OFFSET 1
