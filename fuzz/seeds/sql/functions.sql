SELECT CASE WHEN flag THEN upper(name) ELSE E'\t' || $tag$q$tag$ END, cast(price AS integer), extract(year FROM day), at::date + interval '1 day',
date_trunc('month', at), coalesce(weight, 1.5e300, -0.0), substring(name FROM 2 FOR 3), row_number() OVER (PARTITION BY flag ORDER BY id), x'0f', U&'\0041' /* a /* b */ */ FROM item -- end
