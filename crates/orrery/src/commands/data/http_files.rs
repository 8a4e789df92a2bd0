//! Upload of files to a running server: one as the body of a request, several as a form. Files are
//! streamed, so none is held in memory.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use reqwest::Body;
use url::Url;

use crate::commands::http::post;
use crate::failure::Failure;

/// Bytes of a file that are read and sent at a time.
const CHUNK_BYTES: usize = 256 << 10;
/// Error texts of servers older than this program, which do not accept such a form.
const OF_OLDER_SERVERS: [&str; 2] = ["body is larger than the limit", "name of `default` tells"];

/// Sends a file, or standard input for `-`.
pub(crate) fn post_file(url: Url, content_type: &str, path: &Path) -> Result<String, Failure> {
    let input = open(path).map_err(|error| Failure::file(path, error))?;
    post(url, content_type, body([Piece::Open(input)].into()))
}

/// A part of a form.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FormPart<'p> {
    /// A field without a value, by its name.
    Field(&'static str),
    /// A file, or standard input for `-`, and its media type.
    File(&'p Path, &'static str),
}

/// Sends several files as one form, which a server treats as one change.
///
/// # Errors
/// When one of the files cannot be read, before anything is sent; else the server's error.
pub(crate) fn post_form(url: Url, parts: &[FormPart<'_>]) -> Result<String, Failure> {
    let boundary = boundary();
    let mut pieces = VecDeque::new();
    for part in parts {
        let head = match part {
            FormPart::Field(name) => format!("name=\"{name}\"\r\n\r\n"),
            FormPart::File(path, media_type) => {
                if !is_stdin(path) {
                    File::open(path).map_err(|error| Failure::file(path, error))?;
                }
                let name = in_a_form(&path.display().to_string());
                format!("name=\"file\"; filename=\"{name}\"\r\nContent-Type: {media_type}\r\n\r\n")
            }
        };
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; {head}");
        pieces.push_back(Piece::Text(head.into_bytes()));
        if let FormPart::File(path, _) = part {
            pieces.push_back(Piece::Path((*path).to_owned()));
        }
        pieces.push_back(Piece::Text(b"\r\n".to_vec()));
    }
    pieces.push_back(Piece::Text(format!("--{boundary}--\r\n").into_bytes()));
    let content_type = format!("multipart/form-data; boundary={boundary}");
    post(url, &content_type, body(pieces)).map_err(|failure| match failure {
        Failure::Refused {
            message,
            place,
            excerpt,
        } if OF_OLDER_SERVERS.iter().any(|it| message.contains(it)) => Failure::Refused {
            message: format!(
                "{message}; a server that is older than this program takes several files only up to 64 MiB, and none of quads beside \
                 others; load the files one at a time"
            ),
            place,
            excerpt,
        },
        other => other,
    })
}

/// A piece of a body.
enum Piece {
    Text(Vec<u8>),
    /// A file that is opened when its turn comes: there may be more files than a process may have
    /// open.
    Path(PathBuf),
    /// The rest of a file.
    Open(Box<dyn Read + Send>),
}

/// The boundary between parts of a form. It is random, so that no part can contain it.
fn boundary() -> String {
    let random = || RandomState::new().hash_one(0_u8);
    format!("orrery-{:016x}{:016x}", random(), random())
}

/// Escapes a name for a form (HTML, 4.10.21.8).
fn in_a_form(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    match is_stdin(path) {
        true => Ok(Box::new(io::stdin())),
        false => Ok(Box::new(File::open(path)?)),
    }
}

fn body(pieces: VecDeque<Piece>) -> Body {
    Body::wrap_stream(futures::stream::unfold(pieces, |mut pieces| async {
        // This runtime runs nothing else that blocking could delay.
        match next_chunk(&mut pieces) {
            Ok(None) => None,
            Ok(Some(chunk)) => Some((Ok(chunk), pieces)),
            Err(error) => Some((Err(error), VecDeque::new())),
        }
    }))
}

/// The next chunk of a body; none at its end.
fn next_chunk(pieces: &mut VecDeque<Piece>) -> io::Result<Option<Vec<u8>>> {
    while let Some(piece) = pieces.pop_front() {
        match piece {
            Piece::Text(text) => return Ok(Some(text)),
            Piece::Path(path) => {
                let input = open(&path).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                })?;
                pieces.push_front(Piece::Open(input));
            }
            Piece::Open(mut input) => {
                let mut chunk = vec![0; CHUNK_BYTES];
                match input.read(&mut chunk) {
                    Ok(0) => {}
                    Ok(length) => {
                        chunk.truncate(length);
                        pieces.push_front(Piece::Open(input));
                        return Ok(Some(chunk));
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {
                        pieces.push_front(Piece::Open(input));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(None)
}
