# A post.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %post% a snvoc:Post ; snvoc:id %id% ; snvoc:creationDate %creationDate% ; snvoc:locationIP %locationIp% ;
    snvoc:browserUsed %browserUsed% ; snvoc:hasCreator %author% ; snvoc:isLocatedIn %country% .
  %forum% snvoc:containerOf %post% .
  %content%
  %language%
  %tags%
}
