PREFIX e: <http://example.com/>
INSERT DATA { e:s e:p "x", 1 . GRAPH e:g { [] e:q (1 2 _:b) {| e:by e:me |} } } ;
WITH e:g DELETE { ?s ?p ?o } INSERT { ?s e:was ?o } USING NAMED e:h WHERE { ?s ?p ?o } ;
DELETE WHERE { ?s a e:Old } ; LOAD SILENT <http://e/a> INTO GRAPH e:g ; CLEAR NAMED ; COPY DEFAULT TO e:g ; DROP ALL
