//! Measures what an explore query reads of a database in an object store, without the query engine.
//! With the trace of a proxy before the store it shows which requests wait for each other.
//!
//! ```sh
//! cargo run -p orrery-object-store --example cold_query -- \
//!     s3://bucket/prefix CACHE TYPE FEATURE FEATURE
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use orrery_object_store::{CacheOptions, ObjectOptions};
use orrery_storage::{Database, Permutation};
use orrery_term::{Term, TermId};

const BSBM: &str = "http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/";
/// The column behind the two of a prefix.
const THIRD: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, cache, kind, one, other] = arguments.as_slice() else {
        return Err("cold_query ADDRESS CACHE TYPE FEATURE FEATURE".into());
    };
    let begun = Instant::now();
    let (directory, bytes) = (PathBuf::from(cache), 8 << 30);
    let cache = CacheOptions { directory, bytes };
    let (files, directory) = orrery_object_store::open(address, &ObjectOptions { cache })?;
    let database = Database::open_with(files, directory)?;
    let view = database.view_of_process();
    println!("opened after {:?}", begun.elapsed());

    let id = |iri: &str| -> Result<TermId, Box<dyn Error>> {
        let found = view.id_in_quads(&Term::iri(iri))?;
        found.ok_or_else(|| format!("{iri} is not there").into())
    };
    let of_query = [kind, one, other].map(|iri| Term::iri(iri.as_str()));
    view.snapshot().look_up_together(&of_query);
    let rdf_type = id("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")?;
    let label = id("http://www.w3.org/2000/01/rdf-schema#label")?;
    let feature = id(&format!("{BSBM}productFeature"))?;
    let value = id(&format!("{BSBM}productPropertyNumeric1"))?;
    let patterns = [
        [feature, id(one)?],
        [feature, id(other)?],
        [rdf_type, id(kind)?],
    ];
    println!("constants after {:?}", begun.elapsed());

    let index = |permutation| view.index(permutation).ok_or("a permutation is missing");
    let mut posg = index(Permutation::Posg)?.cursor();
    let ranges = patterns.map(|pattern| posg.seek(&pattern));
    println!("ranges after {:?}", begun.elapsed());
    let mut subjects: Option<Vec<u64>> = None;
    for range in ranges {
        let mut column = Vec::new();
        posg.read(range?, THIRD, &mut column)?;
        subjects = Some(match subjects {
            None => column,
            Some(mut found) => {
                found.retain(|subject| column.binary_search(subject).is_ok());
                found
            }
        });
    }
    let subjects = subjects.unwrap_or_default();
    println!("{} subjects after {:?}", subjects.len(), begun.elapsed());

    let mut psog = index(Permutation::Psog)?.cursor();
    let mut labels = Vec::new();
    for predicate in [value, label] {
        labels.clear();
        let prefixes: Vec<[u64; 2]> = (subjects.iter())
            .map(|&subject| [predicate.bits(), subject])
            .collect();
        if psog.is_cold() {
            psog.will_seek(prefixes.iter().map(|prefix| &prefix[..]))?;
        }
        for &[_, subject] in &prefixes {
            let range = psog.seek(&[predicate, TermId::from_bits(subject)])?;
            psog.read(range, THIRD, &mut labels)?;
        }
    }
    println!("{} labels after {:?}", labels.len(), begun.elapsed());

    let dictionary = view.snapshot().dictionary();
    dictionary.will_find(&[b"S", b"T"])?;
    let strings = dictionary.lower_bound(b"S")?..dictionary.lower_bound(b"T")?;
    println!("kinds of literals after {:?}", begun.elapsed());
    let first = TermId::first_of(orrery_term::TermKind::Literal).bits();
    let mut ranks: Vec<u64> = (labels.iter())
        .filter_map(|label| label.checked_sub(first))
        .filter(|rank| strings.contains(rank))
        .collect();
    ranks.sort_unstable();
    let mut bytes = 0;
    dictionary.keys(&ranks, |_, key| bytes += key.len())?;
    println!(
        "{bytes} bytes of {} labels after {:?}",
        ranks.len(),
        begun.elapsed()
    );
    Ok(())
}
