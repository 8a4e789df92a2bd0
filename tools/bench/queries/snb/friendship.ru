# What two persons replied to each other: 1 for each reply to a post, a half for one to a comment.
PREFIX snvoc: <http://www.ldbc.eu/ldbc_socialnet/1.0/vocabulary/>
CREATE OR REPLACE EDGE WEIGHT <urn:snb:friendship> START ?one END ?other BOTH WAYS
FROM { ?reply snvoc:hasCreator ?one ; snvoc:replyOf ?message . ?message snvoc:hasCreator ?other ; a ?type }
AS SUM(IF(?type = snvoc:Post, 1.0, 0.5))
