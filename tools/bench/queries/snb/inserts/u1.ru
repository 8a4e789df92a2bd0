# A person, with what that one studied and works as.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %person% a snvoc:Person ; snvoc:id %id% ; snvoc:firstName %firstName% ; snvoc:lastName %lastName% ;
    snvoc:gender %gender% ; snvoc:birthday %birthday% ; snvoc:creationDate %creationDate% ;
    snvoc:locationIP %locationIp% ; snvoc:browserUsed %browserUsed% ; snvoc:isLocatedIn %city% .
  %languages%
  %emails%
  %interests%
  %studies%
  %jobs%
}
