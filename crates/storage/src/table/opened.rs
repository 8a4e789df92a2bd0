//! The open projection files of a table.

use std::path::Path;
use std::sync::Arc;

use super::definition::{ProjectionLayout, RelationId};
use super::file::ProjectionFile;
use super::projection::Projection;
use super::state::TableState;
use crate::Result;
use crate::files::components::DirectoryComponents;
use crate::files::io::FileSystem;
use crate::files::listed_files::check_summary;

/// Begins the names of directories with a table's projections.
pub(crate) const TABLE_PREFIX: &str = "table-";
/// Name of a projection's file.
pub(crate) fn rows_file(relation: RelationId) -> String {
    format!("{:06}.rows", relation.0)
}

/// Lays the projections of a table over the files of a directory.
pub(crate) fn open_files(
    file_system: &dyn FileSystem,
    directory: &Path,
    state: TableState,
    files: &DirectoryComponents,
) -> Result<TableState> {
    let of_table = directory.join(&files.name);
    let initial = state.definition().initial_values()?;
    let over_file = |projection: &Projection| -> Result<Projection> {
        let layout: ProjectionLayout = projection.layout().clone();
        let name = rows_file(layout.relation);
        let Some(listed) = files.files().find(|file| file.name == name) else {
            return Ok(projection.clone());
        };
        let path = of_table.join(&name);
        let file = ProjectionFile::open(file_system, &path, &layout, &initial)?;
        check_summary(&path, listed, file.summary())?;
        Ok(Projection::new(layout, Some(Arc::new(file))))
    };
    let projections = state.projections().map(over_file);
    let projections: Vec<Projection> = projections.collect::<Result<_>>()?;
    let next_row_number = state.next_row_number();
    Ok(state
        .with_projections(projections.into_iter(), next_row_number)
        .with_files(Arc::new(files.clone())))
}
