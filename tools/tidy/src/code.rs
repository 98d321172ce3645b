//! Just enough of Rust's grammar to count lines of functions and to look for words outside comments and strings.

/// A function found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Line where it starts, from 1.
    pub line: usize,
    /// Lines from its signature to its closing brace.
    pub lines: usize,
}

/// The text with comments and the inside of strings and characters replaced by spaces; lines stay where they are.
///
/// ```
/// assert_eq!(muse_tidy::code_only("a // b\n\"c\" 'd' 'e"), "a     \n\" \" ' ' 'e");
/// ```
pub fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => line_end(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => comment_end(bytes, at),
            b'r' if is_raw_string(bytes, at) => {
                let (start, end) = raw_string(bytes, at);
                blank(&mut out[start..end]);
                at = end;
                continue;
            }
            b'"' => {
                let end = quoted_end(bytes, at, b'"');
                blank(&mut out[at + 1..end.saturating_sub(1).max(at + 1)]);
                at = end;
                continue;
            }
            b'\'' if is_character(bytes, at) => {
                let end = quoted_end(bytes, at, b'\'');
                blank(&mut out[at + 1..end.saturating_sub(1).max(at + 1)]);
                at = end;
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        blank(&mut out[at..end]);
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The functions with a body in `code`, which is what [`code_only`] gave.
///
/// ```
/// let found = muse_tidy::functions("fn one() {\n}\nfn two(f: fn()) { if f {} }");
/// assert_eq!((found[0].lines, found[1].line, found.len()), (2, 3, 2));
/// ```
pub fn functions(code: &str) -> Vec<Function> {
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    for (start, _) in code.match_indices("fn ") {
        let joined = start > 0 && is_word(bytes[start - 1]);
        let name: String = code[start + 3..]
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        if joined || name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(bytes, start) {
            found.push(Function {
                name,
                line: count_lines(&bytes[..start]) + 1,
                lines: count_lines(&bytes[start..end]) + 1,
            });
        }
    }
    found
}

/// Returns the end of the body of the function whose signature starts at `start`; none for a declaration without one.
fn body_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut brackets = 0i32;
    let mut braces = 0i32;
    for (offset, byte) in bytes[start..].iter().enumerate() {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b';' if brackets == 0 && braces == 0 => return None,
            b'{' => braces += 1,
            b'}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(start + offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    at + rest
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(rest.len())
}

fn comment_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].windows(2);
    rest.enumerate()
        .skip(2)
        .find(|(_, pair)| *pair == b"*/")
        .map_or(bytes.len(), |(offset, _)| at + offset + 2)
}

fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut next = at + 1;
    while next < bytes.len() && bytes[next] != quote {
        next += if bytes[next] == b'\\' { 2 } else { 1 };
    }
    (next + 1).min(bytes.len())
}

/// True if the apostrophe at `at` opens a character and not a lifetime.
fn is_character(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at + 1) {
        Some(b'\\') => true,
        Some(byte) if byte.is_ascii() => bytes.get(at + 2) == Some(&b'\''),
        Some(_) => true,
        None => false,
    }
}

fn is_raw_string(bytes: &[u8], at: usize) -> bool {
    let part_of_word = at > 0 && is_word(bytes[at - 1]) && bytes[at - 1] != b'b';
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    !part_of_word && bytes.get(at + 1 + hashes) == Some(&b'"')
}

/// Inside and end of the raw string at `at`.
fn raw_string(bytes: &[u8], at: usize) -> (usize, usize) {
    let hashes = bytes[at + 1..]
        .iter()
        .take_while(|byte| **byte == b'#')
        .count();
    let start = at + hashes + 2;
    let mut closing = vec![b'"'];
    closing.resize(hashes + 1, b'#');
    let end = bytes[start..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(bytes.len(), |offset| start + offset);
    (start, end + closing.len().min(bytes.len() - end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_no_code() {
        let text =
            "let a = \"unsafe \\\" {\"; /* { */ // }\nlet b = r#\"\" { \"#; 'x: loop { '{' }";
        let code = code_only(text);
        assert_eq!(code.len(), text.len());
        assert!(!code.contains("unsafe"), "{code}");
        assert_eq!(code.matches('{').count(), 1, "{code}");
        assert_eq!(code.matches('\n').count(), 1);
    }

    #[test]
    fn functions_are_measured_with_their_signature() {
        let code =
            "trait T { fn declared(&self); }\nfn long(\n    a: [u8; 3],\n) {\n    inner()\n}\n";
        let expected = Function {
            name: "long".to_owned(),
            line: 2,
            lines: 5,
        };
        assert_eq!(functions(code), [expected]);
    }
}
