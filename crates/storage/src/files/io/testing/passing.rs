//! The calls that a test's file system forwards to the local one: all but creating and mapping
//! files.

/// The methods of [`FileSystem`](crate::files::io::FileSystem) but `create` and `map`, within the
/// `impl` of one that changes these.
macro_rules! all_else_of_this_machine {
    () => {
        fn read(&self, path: &std::path::Path) -> crate::Result<Vec<u8>> {
            crate::files::io::LocalFileSystem.read(path)
        }

        fn open(&self, path: &std::path::Path) -> crate::Result<Box<dyn std::io::Read + Send>> {
            crate::files::io::LocalFileSystem.open(path)
        }

        fn open_at(
            &self,
            path: &std::path::Path,
            offset: u64,
        ) -> crate::Result<Box<dyn std::io::Read + Send>> {
            crate::files::io::LocalFileSystem.open_at(path, offset)
        }

        fn create_log(
            &self,
            path: &std::path::Path,
        ) -> crate::Result<std::sync::Arc<dyn crate::files::io::LogFile>> {
            crate::files::io::LocalFileSystem.create_log(path)
        }

        fn open_log(
            &self,
            path: &std::path::Path,
        ) -> crate::Result<std::sync::Arc<dyn crate::files::io::LogFile>> {
            crate::files::io::LocalFileSystem.open_log(path)
        }

        fn rename(&self, from: &std::path::Path, to: &std::path::Path) -> crate::Result<()> {
            crate::files::io::LocalFileSystem.rename(from, to)
        }

        fn remove_file(&self, path: &std::path::Path) -> crate::Result<()> {
            crate::files::io::LocalFileSystem.remove_file(path)
        }

        fn remove_dir_all(&self, path: &std::path::Path) -> crate::Result<()> {
            crate::files::io::LocalFileSystem.remove_dir_all(path)
        }

        fn create_dir_all(&self, path: &std::path::Path) -> crate::Result<()> {
            crate::files::io::LocalFileSystem.create_dir_all(path)
        }

        fn sync_dir(&self, path: &std::path::Path) -> crate::Result<()> {
            crate::files::io::LocalFileSystem.sync_dir(path)
        }

        fn list(&self, path: &std::path::Path) -> crate::Result<Vec<std::path::PathBuf>> {
            crate::files::io::LocalFileSystem.list(path)
        }

        fn metadata(
            &self,
            path: &std::path::Path,
        ) -> crate::Result<Option<crate::files::io::FileMetadata>> {
            crate::files::io::LocalFileSystem.metadata(path)
        }

        fn lock(
            &self,
            path: &std::path::Path,
        ) -> crate::Result<Box<dyn crate::files::io::FileLock>> {
            crate::files::io::LocalFileSystem.lock(path)
        }
    };
}

pub(crate) use all_else_of_this_machine;
