# Two persons know each other.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %person1% snvoc:knows _:friendship .
  _:friendship snvoc:hasPerson %person2% ; snvoc:creationDate %creationDate% .
}
