INSERT INTO item (id, name, price, day) VALUES (3, 'bed', 1e2, '2026-02-03'), ($1, $2, DEFAULT, current_date)
ON CONFLICT (id) DO UPDATE SET name = excluded.name RETURNING id, name; UPDATE item SET price = price * 1.1 FROM part WHERE part.item = item.id;
DELETE FROM part USING item WHERE part.item = item.id; TRUNCATE part
