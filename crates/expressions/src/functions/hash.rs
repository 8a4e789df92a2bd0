//! Digests of plain strings, in lower-case hexadecimal (SPARQL 1.1, 17.4.6).

use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use crate::values::value::Value;

fn digest<D: Digest>(arguments: &[&Value]) -> Option<Value> {
    let text = arguments.first()?.as_plain_text()?;
    let digest = D::digest(text.as_bytes());
    let mut hexadecimal = String::with_capacity(2 * digest.len());
    super::term::write_hexadecimal(&digest, &mut hexadecimal);
    Some(Value::string(hexadecimal))
}

pub(super) fn md5(arguments: &[&Value]) -> Option<Value> {
    digest::<Md5>(arguments)
}

pub(super) fn sha1(arguments: &[&Value]) -> Option<Value> {
    digest::<Sha1>(arguments)
}

pub(super) fn sha256(arguments: &[&Value]) -> Option<Value> {
    digest::<Sha256>(arguments)
}

pub(super) fn sha384(arguments: &[&Value]) -> Option<Value> {
    digest::<Sha384>(arguments)
}

pub(super) fn sha512(arguments: &[&Value]) -> Option<Value> {
    digest::<Sha512>(arguments)
}
