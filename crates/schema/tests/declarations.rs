//! Mistakes in declarations are reported in words that say what to write instead.

#[test]
fn mistakes_are_explained() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/declarations/*.rs");
}
