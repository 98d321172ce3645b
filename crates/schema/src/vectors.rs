//! Vectors and quaternions of glam: arrays of floats, which they are handed on to.

use glam::{Quat, Vec2, Vec3, Vec3A, Vec4};

use crate::{
    BitReader, BitWriter, Blend, DecodeError, EncodeError, Leaf, Options, Property, RowReader,
    RowWriter, Schema, Type,
};

macro_rules! vector {
    ($type:ident, [$float:ident; $len:literal]) => {
        impl Property for $type {
            const TYPE: Type = <[$float; $len] as Property>::TYPE;

            #[inline]
            fn store(&self, options: &Options, row: &mut RowWriter<'_>) {
                Property::store(&self.to_array(), options, row);
            }

            #[inline]
            fn load(options: &Options, row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
                <[$float; $len] as Property>::load(options, row).map(Self::from_array)
            }

            #[inline]
            fn blend(&self, to: &Self, options: &Options, blend: Blend) -> Self {
                Self::from_array(self.to_array().blend(&to.to_array(), options, blend))
            }

            #[inline]
            fn hermite(
                &self,
                to: &Self,
                velocities: (&Self, &Self),
                options: &Options,
                blend: Blend,
            ) -> Self {
                let velocities = (&velocities.0.to_array(), &velocities.1.to_array());
                let (from, to) = (self.to_array(), to.to_array());
                Self::from_array(from.hermite(&to, velocities, options, blend))
            }

            #[inline]
            fn differs(&self, other: &Self, options: &Options) -> bool {
                self.to_array().differs(&other.to_array(), options)
            }

            #[inline]
            fn distance_squared(&self, other: &Self, options: &Options) -> f32 {
                self.to_array().distance_squared(&other.to_array(), options)
            }
        }

        impl Schema for $type {
            const TYPE: Type = <[$float; $len] as Schema>::TYPE;
            const LEAF: Leaf = <[$float; $len] as Schema>::LEAF;

            fn bits_min(options: &Options) -> u64 {
                <[$float; $len] as Schema>::bits_min(options)
            }

            #[inline]
            fn write(
                &self,
                options: &Options,
                writer: &mut BitWriter<'_>,
            ) -> Result<(), EncodeError> {
                self.to_array().write(options, writer)
            }

            #[inline]
            fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
                <[$float; $len] as Schema>::read(options, reader).map(Self::from_array)
            }
        }
    };
}

vector!(Vec2, [f32; 2]);
vector!(Vec3, [f32; 3]);
vector!(Vec3A, [f32; 3]);
vector!(Vec4, [f32; 4]);
vector!(Quat, [f32; 4]);
