# A person likes a comment.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %person% snvoc:likes _:like .
  _:like snvoc:hasComment %comment% ; snvoc:creationDate %creationDate% .
}
