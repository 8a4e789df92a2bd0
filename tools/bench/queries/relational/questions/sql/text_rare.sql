-- The reviews that have a rare sequence of letters in their text.
SELECT iri FROM review WHERE contains(text, 'zzle')
