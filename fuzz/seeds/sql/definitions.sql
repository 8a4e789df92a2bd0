CREATE TABLE IF NOT EXISTS a (id bigint PRIMARY KEY, b text NOT NULL DEFAULT 'x', c numeric(12,4) CHECK (c > 0), UNIQUE (b, c));
ALTER TABLE item ADD COLUMN z interval; CREATE VIEW v AS SELECT 1 AS one; DROP TABLE part CASCADE; CREATE INDEX ON item (name, day)
