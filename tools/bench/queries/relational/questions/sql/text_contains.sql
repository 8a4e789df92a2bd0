-- How many reviews have a word in their text.
SELECT count(*) FROM review WHERE contains(text, 'ing ')
