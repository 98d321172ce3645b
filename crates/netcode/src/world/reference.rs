//! Names of entities inside states, messages and inputs: as they are, the same everywhere. A client may read the name of an
//! entity that it has not heard of yet; [`Receiver::status`](crate::Receiver::status) tells, and the name holds when it comes.

use muse_schema::{
    BitReader, BitWriter, Blend, ColumnKind, DecodeError, EncodeError, Leaf, Options, RowReader,
    RowWriter, Schema, State, Template, Type,
};

use crate::EntityId;

impl State for EntityId {
    const TYPE: Type = Type::Opaque {
        name: "EntityId",
        columns: &[Template::new("", ColumnKind::Reference, i32::MIN, i32::MAX)],
    };

    fn store(&self, row: &mut RowWriter<'_>) {
        row.put(self.bits().cast_signed());
    }

    fn load(row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self::from_bits(row.take()?.cast_unsigned()))
    }

    fn blend(&self, to: &Self, blend: Blend) -> Self {
        *blend.step(self, to)
    }

    fn differs(&self, other: &Self) -> bool {
        self != other
    }
}

impl Schema for EntityId {
    const TYPE: Type = <u32 as Schema>::TYPE;
    const LEAF: Leaf = Leaf::Other;

    fn bits_min(_: &Options) -> u64 {
        32
    }

    fn write(&self, _: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        self.bits().write(&Options::NONE.fixed(), writer)
    }

    fn read(_: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        u32::read(&Options::NONE.fixed(), reader).map(Self::from_bits)
    }
}
