//! Tests of simulated schedules by seed, and of the clock.

use std::env;
use std::time::Duration;

use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use tokio::time::sleep;

use super::{cluster, random, schedule};
use crate::types::INLINE_BYTES_MAX;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number"))
    })
}

#[test]
fn histories_of_schedules_are_linearizable_and_no_acknowledged_put_is_lost() {
    let (first, number) = (
        setting("QUORUM_FIRST_SEED", 1),
        setting("QUORUM_SCHEDULES", 20),
    );
    let mut total = schedule::Seen::default();
    for seed in first..first + number {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        match runtime.block_on(schedule::run(seed)) {
            Ok(seen) => {
                total.operations += seen.operations;
                total.unknown += seen.unknown;
                total.crashes += seen.crashes;
                total.partitions += seen.partitions;
                total.member_changes += seen.member_changes;
            }
            Err(wrong) => panic!("QUORUM_FIRST_SEED={seed} QUORUM_SCHEDULES=1: {wrong}"),
        }
    }
    println!("{number} schedules: {total:?}");
    assert!(total.operations as u64 > number * 20, "{total:?}");
}

#[tokio::test(start_paused = true)]
async fn files_that_nobody_needs_go_after_a_while_and_those_of_objects_stay() {
    let cluster = cluster::Cluster::start(1, 0, random::Random::new(1)).await;
    let running = cluster.running(1).unwrap();
    let (store, files) = (running.store(), &running.core.files);
    let large = |fill: u8| PutPayload::from(vec![fill; INLINE_BYTES_MAX + 1]);
    store.put(&Path::from("stays"), large(1)).await.unwrap();
    store
        .put(&Path::from("is replaced"), large(2))
        .await
        .unwrap();
    let mut left = store
        .put_multipart(&Path::from("never completed"))
        .await
        .unwrap();
    left.put_part(large(3)).await.unwrap();
    let mut reading = store
        .get(&Path::from("is replaced"))
        .await
        .unwrap()
        .into_stream();
    store
        .put(&Path::from("is replaced"), "small".into())
        .await
        .unwrap();
    assert_eq!(
        files.names().await.unwrap().len(),
        3,
        "who has begun to read goes on"
    );
    assert_eq!(
        futures::StreamExt::next(&mut reading)
            .await
            .unwrap()
            .unwrap()[0],
        2
    );
    sleep(Duration::from_secs(90)).await;
    assert_eq!(files.names().await.unwrap().len(), 2);
    sleep(Duration::from_secs(3_700)).await;
    assert_eq!(files.names().await.unwrap().len(), 1);
    let stays = store
        .get(&Path::from("stays"))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap();
    assert_eq!(stays, vec![1; INLINE_BYTES_MAX + 1]);
    cluster.network.clear();
}
