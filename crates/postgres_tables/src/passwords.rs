//! The passwords of foreign servers, read on demand from places of the process's owner.
//!
//! A file of passwords has libpq's form, `host:port:database:user:password` on each line, `*` for
//! any, `\:` and `\\` for those characters; the first line that fits counts. So a statement that
//! names such a file gets from it only what is meant for the server that it connects to.

use std::path::Path;

use crate::address::{PasswordSource, Server};
use crate::error::{Error, Result};

/// A file of passwords may be so long.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The password for a server, if there is one.
pub(crate) fn password(server: &Server, default_file: Option<&Path>) -> Result<Option<String>> {
    match &server.password {
        PasswordSource::Variable(name) => match std::env::var(name) {
            Ok(password) => Ok(Some(password)),
            Err(_) => Err(Error::Connect {
                server: server.to_string(),
                words: format!("the variable {name} is not set, or no UTF-8"),
            }),
        },
        PasswordSource::File(path) => of_file(path, server),
        PasswordSource::Default => match default_file.filter(|path| path.exists()) {
            Some(path) => of_file(path, server),
            None => Ok(None),
        },
    }
}

fn of_file(path: &Path, server: &Server) -> Result<Option<String>> {
    let failed = |words: String| Error::Connect {
        server: server.to_string(),
        words: format!("the file of passwords {}: {words}", path.display()),
    };
    let meta = path.metadata().map_err(|error| failed(error.to_string()))?;
    if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
        return Err(failed("it is no file of passwords".to_owned()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if meta.permissions().mode() & 0o077 != 0 {
            return Err(failed(
                "others may read it; its permissions should be 0600 or less".to_owned(),
            ));
        }
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    Ok(text.lines().find_map(|line| of_line(line, server)))
}

/// The password of a line, if it is for that server.
fn of_line(line: &str, server: &Server) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut characters = line.trim_end_matches('\r').chars();
    while let Some(character) = characters.next() {
        let fields_before = fields.len() - 1;
        let field = fields.last_mut()?;
        match character {
            '\\' => field.extend(characters.next()),
            // What is behind the fourth is the password.
            ':' if fields_before < 4 => fields.push(String::new()),
            other => field.push(other),
        }
    }
    let [host, port, database, user, password] = fields.as_slice() else {
        return None;
    };
    let fits = |field: &str, wanted: &str| field == "*" || field == wanted;
    let is_it = fits(&host.to_ascii_lowercase(), &server.host)
        && fits(port, &server.port.to_string())
        && fits(database, &server.database)
        && fits(user, &server.user);
    is_it.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let server = Server::parse("postgres://me@db/sales", &[]).unwrap();
        let of = |line| of_line(line, &server);
        assert_eq!(of("db:5432:sales:me:a:b"), Some("a:b".to_owned()));
        assert_eq!(of("*:*:*:me:\\:x\\\\"), Some(":x\\".to_owned()));
        assert_eq!(of("db:5433:sales:me:x"), None);
        assert_eq!(of("#db:5432:sales:me:x"), None);
        assert_eq!(of("db:5432:sales"), None);
        assert_eq!(of("*:*:*:you:x"), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused_without_its_content() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pass");
        std::fs::write(&path, "*:*:*:*:s3cret\n").unwrap();
        let option = [("passfile".to_owned(), path.to_str().unwrap().to_owned())];
        let server = Server::parse("postgres://me@db/sales", &option).unwrap();
        let set = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o644);
        let error = password(&server, None).unwrap_err().to_string();
        assert!(
            error.contains("0600") && !error.contains("s3cret"),
            "{error}"
        );
        set(0o600);
        assert_eq!(password(&server, None).unwrap().as_deref(), Some("s3cret"));
    }
}
