//! How a type travels: field descriptors, message ids and the schema hash.
