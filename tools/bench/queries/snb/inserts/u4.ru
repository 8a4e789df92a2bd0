# A forum.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %forum% a snvoc:Forum ; snvoc:id %id% ; snvoc:title %title% ; snvoc:creationDate %creationDate% ;
    snvoc:hasModerator %moderator% .
  %tags%
}
