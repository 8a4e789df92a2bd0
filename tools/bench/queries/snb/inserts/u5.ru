# A person joins a forum.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %forum% snvoc:hasMember _:membership .
  _:membership snvoc:hasPerson %person% ; snvoc:joinDate %joinDate% .
}
