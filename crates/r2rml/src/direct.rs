//! The Direct Mapping (W3C, 2012): a triples map for each table of a schema, from its keys.
//!
//! ```text
//! row of a table with a key       <Table/a=1;b=2>      IRIs of the key's values
//! row of a table without one      a blank node of its own
//! column                          <Table#column>       a literal of the value
//! foreign key                     <Table#ref-a;b>      the row that it refers to
//! ```

use orrery_sql::foreign_definitions;
use orrery_storage::table::{ColumnId, ForeignKey, TableDefinition, Tables};

use crate::error::{Error, Result};
use crate::model::{
    Annotation, LogicalTable, Mapping, ObjectMap, Properties, ROW, TermMap, TermType, TermValue,
    TriplesMap,
};
use crate::template::{Piece, Template, encode};

impl Mapping {
    /// The mapping of all tables of a schema, and of those that they refer to.
    ///
    /// # Errors
    /// When there is no such schema, or a relative base.
    pub(crate) fn direct(tables: &Tables, schema: &str, base: &str) -> Result<Self> {
        if !tables.has_schema(schema) {
            return Err(Error::Words(format!("there is no schema {schema}")));
        }
        oxiri::Iri::parse(base).map_err(|error| {
            Error::Words(format!("the base <{base}> is no absolute IRI: {error}"))
        })?;
        let foreign = foreign_definitions(tables, schema)?;
        let own = tables.tables().map(|it| &**it.definition());
        let own = own.filter(|table| table.schema == schema);
        let mut mapped: Vec<&TableDefinition> = own.collect();
        for table in foreign.iter().map(|it| &it.definition) {
            if table.primary_key.is_none() {
                return Err(Error::Words(format!(
                    "the external table {schema}.{} has no primary key to make the IRIs of its rows; create it with columns and PRIMARY KEY (...)",
                    table.name
                )));
            }
            mapped.push(table);
        }
        let mut triples_maps: Vec<TriplesMap> = mapped
            .iter()
            .map(|table| triples_map(table, base))
            .collect();
        for (place, table) in mapped.iter().enumerate() {
            for key in &table.foreign_keys {
                let parent = mapped.iter().position(|other| other.id == key.table);
                // A table of another schema gives no rows here, so nothing to refer to.
                let Some(parent) = parent else { continue };
                let reference = reference(table, key, mapped[parent], parent, base);
                triples_maps[place].properties.extend(reference);
            }
        }
        Ok(Self {
            base: base.to_owned(),
            triples_maps,
        })
    }
}

fn name_of(table: &TableDefinition, id: ColumnId) -> String {
    let column = table.column(id);
    column.map_or_else(String::new, |column| column.name.clone())
}

/// `<base><Table>`, with its name encoded.
fn table_iri(table: &TableDefinition, base: &str) -> String {
    let mut iri = base.to_owned();
    encode(&table.name, &mut iri);
    iri
}

fn triples_map(table: &TableDefinition, base: &str) -> TriplesMap {
    let iri = table_iri(table, base);
    let subject = match &table.primary_key {
        Some(key) => TermMap {
            value: TermValue::Template(row_template(table, &key.columns, base)),
            term_type: TermType::Iri,
        },
        None => TermMap {
            value: TermValue::Template(Template {
                pieces: vec![
                    Piece::Text(format!("{}.{}#", table.schema, table.name)),
                    Piece::Column(ROW.to_owned()),
                ],
            }),
            term_type: TermType::BlankNode,
        },
    };
    let properties = table.columns.iter().map(|column| {
        let mut predicate = format!("{iri}#");
        encode(&column.name, &mut predicate);
        Properties {
            predicates: vec![TermMap::iri(predicate)],
            objects: vec![ObjectMap::Term(TermMap {
                value: TermValue::Column(column.name.clone()),
                term_type: TermType::Literal(Annotation::Natural),
            })],
            graphs: Vec::new(),
        }
    });
    TriplesMap {
        name: format!("of the table {}", table.name),
        table: LogicalTable::Table {
            schema: table.schema.clone(),
            name: table.name.clone(),
            is_numbered: table.primary_key.is_none(),
        },
        subject,
        properties: properties.collect(),
        classes: vec![iri],
        graphs: Vec::new(),
    }
}

/// `<base>Table/a={a};b={b}`.
fn row_template(table: &TableDefinition, key: &[ColumnId], base: &str) -> Template<String> {
    let mut pieces = Vec::new();
    for (place, id) in key.iter().enumerate() {
        let name = name_of(table, *id);
        let mut text = match place {
            0 => format!("{}/", table_iri(table, base)),
            _ => ";".to_owned(),
        };
        encode(&name, &mut text);
        text.push('=');
        pieces.push(Piece::Text(text));
        pieces.push(Piece::Column(name));
    }
    Template { pieces }
}

fn reference(
    table: &TableDefinition,
    key: &ForeignKey,
    parent: &TableDefinition,
    place: usize,
    base: &str,
) -> Option<Properties> {
    let mut predicate = format!("{}#ref-", table_iri(table, base));
    for (place, id) in key.columns.iter().enumerate() {
        if place > 0 {
            predicate.push(';');
        }
        encode(&name_of(table, *id), &mut predicate);
    }
    let of_primary = parent.primary_key.as_ref().and_then(|primary| {
        // The columns of the foreign key in the order of the primary key that they are equal to.
        let own = primary.columns.iter().map(|id| {
            let place = key.referenced.iter().position(|it| it == id)?;
            key.columns.get(place).copied()
        });
        let own: Vec<ColumnId> = own.collect::<Option<_>>()?;
        (own.len() == key.columns.len()).then_some((&primary.columns, own))
    });
    let types = |definition: &TableDefinition, id| {
        let column = definition.column(id);
        column.map(|column| column.column_type)
    };
    let object = match of_primary {
        // The row is there, and its IRI can be made of this one: unless equal values are written
        // otherwise there.
        Some((primary, own))
            if primary
                .iter()
                .zip(&own)
                .all(|(theirs, ours)| types(parent, *theirs) == types(table, *ours)) =>
        {
            let mut template = row_template(parent, primary, base);
            let mut own = own.iter();
            for piece in &mut template.pieces {
                if let Piece::Column(name) = piece
                    && let Some(id) = own.next()
                {
                    *name = name_of(table, *id);
                }
            }
            // Rows that are NULL in a column refer to nothing; all columns are in the template.
            ObjectMap::Term(TermMap {
                value: TermValue::Template(template),
                term_type: TermType::Iri,
            })
        }
        _ => {
            let pairs = key.columns.iter().zip(&key.referenced);
            let pairs =
                pairs.map(|(child, theirs)| (name_of(table, *child), name_of(parent, *theirs)));
            ObjectMap::Parent {
                triples_map: place,
                joins: pairs.collect(),
            }
        }
    };
    Some(Properties {
        predicates: vec![TermMap::iri(predicate)],
        objects: vec![object],
        graphs: Vec::new(),
    })
}
