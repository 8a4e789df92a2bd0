# A comment.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
INSERT DATA {
  %comment% a snvoc:Comment ; snvoc:id %id% ; snvoc:creationDate %creationDate% ; snvoc:locationIP %locationIp% ;
    snvoc:browserUsed %browserUsed% ; snvoc:content %content% ; snvoc:length %length% ;
    snvoc:replyOf %message% ; snvoc:hasCreator %author% ; snvoc:isLocatedIn %country% .
  %tags%
}
