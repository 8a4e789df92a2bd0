# A person likes a post.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %person% snvoc:likes _:like .
  _:like snvoc:hasPost %post% ; snvoc:creationDate %creationDate% .
}
