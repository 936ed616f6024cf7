//! Ids as parameters and columns: `bigint` or `uuid`, whichever the deployment uses.

use std::error::Error;

use bytes::BytesMut;
use kinfolk_core::{Id, IdKind};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

/// An id in PostgreSQL's binary format: 8 or 16 bytes, big-endian. Both types order as ids do: integer ids have 63 bits, so
/// that none is negative, and UUIDs are compared byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdValue(pub Id);

impl ToSql for IdValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self.0, kind) {
            (Id::Integer(value), &Type::INT8) => out.extend_from_slice(&value.to_be_bytes()),
            (Id::Uuid(value), &Type::UUID) => out.extend_from_slice(&value.to_be_bytes()),
            (id, kind) => return Err(format!("{id} is not a {kind}").into()),
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::UUID)
    }

    to_sql_checked!();
}

impl FromSql<'_> for IdValue {
    fn from_sql(kind: &Type, bytes: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT8 => Id::Integer(u64::from_be_bytes(bytes.try_into()?)),
            _ => Id::Uuid(u128::from_be_bytes(bytes.try_into()?)),
        }))
    }

    fn accepts(kind: &Type) -> bool {
        <Self as ToSql>::accepts(kind)
    }
}

/// The lowest id.
pub(crate) fn id_min(kind: IdKind) -> Id {
    match kind {
        IdKind::Integer => Id::Integer(0),
        IdKind::Uuid => Id::Uuid(0),
    }
}

/// The highest id.
pub(crate) fn id_max(kind: IdKind) -> Id {
    match kind {
        IdKind::Integer => Id::Integer(i64::MAX as u64),
        IdKind::Uuid => Id::Uuid(u128::MAX),
    }
}
